"""The code of a scatter's updates: the place of an update in the operand, and how it is combined there."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from heron.analysis.fusion.scatter import Scatter
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental import FunctionEmitter, Value
from heron.codegen.elemental.control import apply
from heron.codegen.elemental.movement import scalar_to_index
from heron.codegen.emitters.base import Frame
from heron.hlo.ir.instruction import Instruction


def place_of(e: FunctionEmitter, s: Scatter, index: Index) -> tuple[Index, list[Constraint]]:
    """The target of the update element at `index`, and the condition that its window is inside."""
    i, dims = s.i, s.target_dims
    gone = {*i.inserted_window_dims, *(i.input_batching_dims or ())}
    where: list[Expr] = [Const(0)] * len(dims)
    sizes = [1] * len(dims)
    for at, d in zip(s.window, [d for d in range(len(dims)) if d not in gone], strict=True):
        where[d], sizes[d] = index[at], s.sizes[at]
    batch_index = [index[d] for d in s.batch]
    batching = zip(i.input_batching_dims or (), i.scatter_indices_batching_dims or (), strict=True)
    for d, at in batching:
        where[d] = batch_index[at - (at > i.index_vector_dim)]
    constraints: list[Constraint] = []
    for component, d in enumerate(i.scatter_dims_to_operand_dims):
        read = list(batch_index)
        if i.index_vector_dim < s.indices.shape.rank:
            read.insert(i.index_vector_dim, Const(component))
        start = _start(e, s.indices, tuple(read))
        constraints.append((start, 0, dims[d] - sizes[d]))
        where[d] = where[d] + start
    return e.simplify(tuple(where)), constraints


def _start(e: FunctionEmitter, indices: Instruction, read: Index) -> Expr:
    """A start index as a variable of the range its type has (64-bit ones are cut to 62 bits)."""
    t = indices.shape.element_type
    read = e.simplify(read)

    def make() -> Expr:
        value = scalar_to_index(e, e.scalar(indices, read), t)
        bits = min(t.bits, 62)
        lo, hi = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if t.is_signed else (0, (1 << bits) - 1)
        if t.is_unsigned and t.bits == 64:
            lo = -(1 << 62)  # the largest values turn negative and so fall outside as well
        return e.variable(value, lo, hi)

    return e.once(("scatter start", indices, read), make)


def combined(frame: Frame, s: Scatter, current: Sequence[Value], values: Sequence[Value]) -> tuple[Value, ...]:
    """The elements of all operands with one more update."""
    result = apply(frame.e, s.i.to_apply, [*current, *values])
    return result if isinstance(result, tuple) and s.i.shape.is_tuple else (result,)


def combine(
    frame: Frame, s: Scatter, where: Index, values: Sequence[Value], tensors: Sequence[SSAValue]
) -> list[SSAValue]:
    """The updates combined into the tensors at `where`, not atomically."""
    e = frame.e
    results = combined(frame, s, [e.extract(t, where) for t in tensors], values)
    return [e.insert(v, t, where) for v, t in zip(results, tensors, strict=True)]
