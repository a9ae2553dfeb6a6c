"""ragged-dot-rewriter: ragged products by whole ones and masks."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import S32, S64
from heron.hlo.meaning.products import outer_dims
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, array, convert, scalar, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class RaggedDotRewriter(Expander):
    """Writes a ragged-dot as a dot with a dimension for the groups, and masks that say which elements a group covers.

    A free ragged dimension: all rows meet all groups, and of the results those of a row's own group are kept. A
    contracting one: each group sums over all elements, those of the others being zero. A batch one: a dot.

    ROOT r = f32[6,5] ragged-dot(f32[6,4] x, f32[3,4,5] y, s32[3] sizes),
      lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
    ->
    ...
    """

    name = "ragged-dot-rewriter"
    opcodes = frozenset({"ragged-dot"})

    def expand(self, i: Instruction) -> Instruction:
        x, y, sizes = i.operands
        ragged: int = i.lhs_ragged_dims[0]
        if ragged in i.lhs_batch_dims:
            return _dot(i, x, y, i.shape.dims)
        if ragged in i.lhs_contracting_dims:
            return _contracting(i, x, y, sizes, ragged)
        return _free(i, x, y, sizes, ragged)


def _dot(i: Instruction, x: Instruction, y: Instruction, dims: Sequence[int], **numbers: object) -> Instruction:
    attrs = {n: v for n, v in i.attrs.items() if n not in ("lhs_ragged_dims", "rhs_group_dims")}
    return home(i).add("dot", [x, y], array(i.shape.element_type, dims), like=i, **{**attrs, **numbers})


def _free(i: Instruction, x: Instruction, y: Instruction, sizes: Instruction, ragged: int) -> Instruction:
    c, t = home(i), i.shape.element_type
    (group_dim,) = i.rhs_group_dims
    x_free = [d for d in range(x.shape.rank) if d not in i.lhs_batch_dims and d not in i.lhs_contracting_dims]
    y_free = [d for d in range(y.shape.rank) if d not in i.rhs_batch_dims and d not in i.rhs_contracting_dims]
    batch = [x.shape.dims[d] for d in i.lhs_batch_dims]
    dims = [*batch, *(x.shape.dims[d] for d in x_free), *(y.shape.dims[d] for d in y_free)]
    whole = _dot(i, x, y, dims)
    group_at = len(batch) + len(x_free) + y_free.index(group_dim)
    places = {d: n for n, d in enumerate((*i.lhs_batch_dims, *x_free))}
    outer = [places[d] for d in _outer(i, sizes, ragged)]
    covered = _covered(sizes, dims[places[ragged]])
    mask = c.add(
        "broadcast",
        [covered],
        array(covered.shape.element_type, dims),
        dimensions=(*outer, group_at, places[ragged]),
    )
    own = c.add("select", [mask, whole, splat(c, whole.shape, 0)])
    assert c.module is not None
    adder = applied(c.module, "add", t)
    return c.add("reduce", [own, scalar(c, t, 0)], i.shape, like=i, dimensions=(group_at,), to_apply=adder)


def _contracting(i: Instruction, x: Instruction, y: Instruction, sizes: Instruction, ragged: int) -> Instruction:
    pairs = dict(zip(i.lhs_batch_dims, i.rhs_batch_dims, strict=True))
    pairs.update(zip(i.lhs_contracting_dims, i.rhs_contracting_dims, strict=True))
    covered = _covered(sizes, x.shape.dims[ragged])
    outer = _outer(i, sizes, ragged)
    left = _of_each_group(x, covered, [*outer, ragged])
    right = _of_each_group(y, covered, [pairs[d] for d in (*outer, ragged)])
    numbers: dict[str, object] = {}
    for name in ("lhs_batch_dims", "rhs_batch_dims"):
        numbers[name] = (0, *(d + 1 for d in getattr(i, name)))
    for name in ("lhs_contracting_dims", "rhs_contracting_dims"):
        numbers[name] = tuple(d + 1 for d in getattr(i, name))
    return _dot(i, left, right, i.shape.dims, **numbers)


def _outer(i: Instruction, sizes: Instruction, ragged: int) -> list[int]:
    """The dimensions of the lhs that those of the sizes, but the last, run along."""
    numbers = (i.lhs_batch_dims, i.lhs_contracting_dims, i.rhs_batch_dims, i.rhs_contracting_dims)
    return outer_dims(numbers, ragged)[: sizes.shape.rank - 1]


def _of_each_group(x: Instruction, covered: Instruction, dims: Sequence[int]) -> Instruction:
    """[group, ...]: `x` with zeros where a group does not cover it; `dims` are those `covered` speaks of."""
    c = home(x)
    wide = array(x.shape.element_type, (covered.shape.dims[-2], *x.shape.dims))
    spread = c.add("broadcast", [x], wide, dimensions=tuple(range(1, wide.rank)))
    where = (*(d + 1 for d in dims[:-1]), 0, dims[-1] + 1)
    mask = c.add("broadcast", [covered], array(covered.shape.element_type, wide.dims), dimensions=where)
    return c.add("select", [mask, spread, splat(c, wide, 0)])


def _covered(sizes: Instruction, length: int) -> Instruction:
    """pred[outer..., group, position]: whether a group covers a position; each begins where the one before ends."""
    c = home(sizes)
    sizes = convert(sizes, S64 if sizes.shape.element_type.bits > 32 else S32)
    t, (*outer, groups) = sizes.shape.element_type, sizes.shape.dims
    # ends[g] is the sum of sizes[0..g]
    square = array(t, (*outer, groups, groups))
    n = len(outer)
    spread = c.add("broadcast", [sizes], square, dimensions=(*range(n), n + 1))
    upto = c.add("iota", [], square, iota_dimension=n + 1).le(c.add("iota", [], square, iota_dimension=n))
    counted = c.add("select", [upto, spread, splat(c, square, 0)])
    assert c.module is not None
    adder = applied(c.module, "add", t)
    ends = c.add("reduce", [counted, scalar(c, t, 0)], sizes.shape, dimensions=(n + 1,), to_apply=adder)
    wide = array(t, (*outer, groups, length))
    kept = tuple(range(n + 1))
    position = c.add("iota", [], wide, iota_dimension=n + 1)
    first = c.add("broadcast", [ends - sizes], wide, dimensions=kept)
    limit = c.add("broadcast", [ends], wide, dimensions=kept)
    return position.ge(first) & position.lt(limit)
