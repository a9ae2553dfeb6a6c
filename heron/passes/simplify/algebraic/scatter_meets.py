"""Scatters that meet sums, slices and other scatters."""

from __future__ import annotations

from heron.analysis.values.splat import is_splat
from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.rules import Builder, rule


@rule("add", operand="scatter", floats="reassociating")
def add_scattered(i: Instruction, b: Builder) -> Instruction | None:
    """scatter(x, n, u) + y == scatter(x + y, n, u), for floats up to rounding; XLA does it by default

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b)
    }

    s = f32[8] scatter(f32[8] x, s32[3] n, f32[3] u), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
    ROOT r = f32[8] add(s, f32[8] y)
    ->
    z = f32[8] add(x, y)
    ROOT r = f32[8] scatter(z, n, u), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
    """
    for n, s in enumerate(i.operands):
        if s.opcode != "scatter" or len(s.operands) != 3 or len(s.users) > 1 or combiner(s.to_apply) != "add":
            continue
        x, indices, u = s.operands
        total = b.add("add", [x, i.operands[1 - n]], i.shape)
        return b.like(s, [total, indices, u], i.shape)
    return None


@rule("add", operand="scatter")
def sum_of_scattered(i: Instruction, b: Builder) -> Instruction | None:
    """scatter(0, m, u) + scatter(0, n, v) == scatter(scatter(0, m, u), n, v), for floats up to rounding

    XLA does it by default. Sums of 16 bits and fewer stay: their rounding would be seen.

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    z = f32[8] broadcast(zero), dimensions={}
    s = f32[8] scatter(z, s32[3] m, f32[3] u), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
    t = f32[8] scatter(z, s32[3] n, f32[3] v), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
    ROOT r = f32[8] add(s, t)
    ->
    ROOT r = f32[8] scatter(s, n, v), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
    """
    t = i.shape.element_type
    if t.is_float and t.bits < 32:
        return None
    first, second = (_on_nothing(o) for o in i.operands)
    if not first or not second or first[0] is second[0]:
        return None
    total = first[0]
    for s in reversed(second):
        total = b.like(s, [total, *s.operands[1:]], i.shape)
    return total


def _on_nothing(i: Instruction) -> list[Instruction]:
    """The scatters, the last one first, that only add to zeros what `i` is, each read by the next alone; or none."""
    found: list[Instruction] = []
    while i.opcode == "scatter":
        if len(i.operands) != 3 or len(i.users) > 1 or combiner(i.to_apply) != "add":
            return []
        found.append(i)
        i = i.operands[0]
    return found if is_splat(i, 0.0) else []


@rule("scatter", operand="scatter", floats="reassociating")
def scatter_of_scatter(i: Instruction, b: Builder) -> Instruction | None:
    """scatter(scatter(x, m, u), n, v) == scatter(x, concatenate(m, n), concatenate(u, v)) by one op, few updates

    sum {
      a = s32[] parameter(0)
      b = s32[] parameter(1)
      ROOT c = s32[] add(a, b)
    }

    s = s32[16] scatter(s32[16] x, s32[3] m, s32[3] u), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
    ROOT r = s32[16] scatter(s, s32[4] n, s32[4] v), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
    ->
    mn = s32[7] concatenate(m, n), dimensions={0}
    uv = s32[7] concatenate(u, v), dimensions={0}
    ROOT r = s32[16] scatter(x, mn, uv), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
    """
    s = i.operands[0]
    if len(i.operands) != 3 or s.opcode != "scatter" or len(s.operands) != 3 or len(s.users) > 1:
        return None
    (x, m, u), (_, n, v) = s.operands, i.operands
    op = combiner(i.to_apply)
    if op is None or op != combiner(s.to_apply) or i.input_batching_dims or _dimensions(s) != _dimensions(i):
        return None
    if m.shape.element_type is not n.shape.element_type:
        return None
    if u.shape.num_elements + v.shape.num_elements > i.shape.num_elements:
        return None
    outer = [d for d in range(n.shape.rank) if d != i.index_vector_dim]
    places = [d for d in range(v.shape.rank) if d not in i.update_window_dims]
    unequal = [d for d in range(v.shape.rank) if u.shape.dims[d] != v.shape.dims[d]]
    if not outer or any(d not in places for d in unequal) or len(unequal) > 1:
        return None
    at = places.index(unequal[0]) if unequal else 0
    indices, updates = _joined(m, n, outer[at], b), _joined(u, v, places[at], b)
    attrs = {**i.attrs, "indices_are_sorted": False, "unique_indices": False}
    return b.add("scatter", [x, indices, updates], i.shape, **attrs)


def _dimensions(i: Instruction) -> tuple[tuple[int, ...] | int, ...]:
    windows = (i.update_window_dims, i.inserted_window_dims, i.input_batching_dims)
    return (*windows, i.scatter_dims_to_operand_dims, i.index_vector_dim)


def _joined(x: Instruction, y: Instruction, d: int, b: Builder) -> Instruction:
    dims = list(x.shape.dims)
    dims[d] += y.shape.dims[d]
    return b.add("concatenate", [x, y], x.shape.with_dims(tuple(dims)), dimensions=(d,))


@rule("slice", operand="scatter")
def slice_of_scatter(i: Instruction, b: Builder) -> Instruction | None:
    """slice(scatter(x, n, u)) == scatter(slice(x), n, u) from the start of dimensions where single elements are updated

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b)
    }

    s = f32[9] scatter(f32[9] x, s32[3] n, f32[3] u), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
    ROOT r = f32[8] slice(s), slice={[0:8]}
    ->
    y = f32[8] slice(x), slice={[0:8]}
    ROOT r = f32[8] scatter(y, n, u), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
    """
    s = i.operands[0]
    if s.opcode != "scatter" or len(s.operands) != 3 or len(s.users) > 1:
        return None
    for d, (start, limit, stride) in enumerate(i.attrs["slice"]):
        whole = (start, limit, stride) == (0, s.shape.dims[d], 1)
        if not whole and (start or stride > 1 or d not in s.inserted_window_dims or not limit):
            return None
    x, n, u = s.operands
    # what falls beyond the slice now falls outside of the array, where updates do nothing
    return b.like(s, [b.slice(x, i.attrs["slice"]), n, u], i.shape)
