"""stable-sort-expander: sorts that keep the order of equals, by a sort that need not."""

from __future__ import annotations

from heron.hlo.ir import shape
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import PRED_SCALAR
from heron.hlo.ir.types import S32, S64
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class StableSortExpander(Expander):
    """Sorts positions along and lets them decide between equals, for sorting algorithms that are not stable themselves.

    The GPU's bitonic sort needs it; the CPU's merge sort is stable. Positions that are sorted anyway decide, and none
    are needed where only equal bits are equal: integers compared as they are, floats in total order.

    less {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT l = pred[] compare(a, b), direction=LT
    }

    ROOT r = f32[8] sort(f32[8] x), dimensions={0}, is_stable=true, to_apply=less
    ->
    less {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      l = pred[] compare(a, b), direction=LT
      g = pred[] compare(b, a), direction=LT
      same = pred[] compare(l, g), direction=EQ
      m = s32[] parameter(2)
      n = s32[] parameter(3)
      first = pred[] compare(m, n), direction=LT
      ROOT r = pred[] select(same, first, l)
    }

    positions = s32[8] iota(), iota_dimension=0
    s = (f32[8], s32[8]) sort(x, positions), dimensions={0}, to_apply=less
    ROOT r = f32[8] get-tuple-element(s), index=0
    """

    name = "stable-sort-expander"
    opcodes = frozenset({"sort"})

    def matches(self, i: Instruction) -> bool:
        return bool(i.is_stable)

    def expand(self, i: Instruction) -> Instruction:
        c = home(i)
        assert c.module is not None
        if tells_all_apart(i):
            return c.add("sort", i.operands, i.shape, dimensions=i.dimensions, to_apply=i.to_apply)
        known = next((n for n, o in enumerate(i.operands) if counts_along(o, i.dimensions[0])), None)
        if known is not None:
            comparator = c.module.add_computation(with_tie_break(i.to_apply, known, i.operands[known]))
            return c.add("sort", i.operands, i.shape, dimensions=i.dimensions, to_apply=comparator)
        first, (d,) = i.operands[0], i.dimensions
        index_type = S32 if first.shape.dims[d] < 1 << 31 else S64
        positions = c.add("iota", [], array(index_type, first.shape.dims), like=i, iota_dimension=d)
        comparator = c.module.add_computation(with_tie_break(i.to_apply, len(i.operands), positions))
        operands = [*i.operands, positions]
        result = shape.tuple_([o.shape.with_default_layout() for o in operands])
        both = c.add("sort", operands, result, like=i, dimensions=i.dimensions, to_apply=comparator)
        parts = [c.add("get-tuple-element", [both], o.shape, index=n) for n, o in enumerate(i.operands)]
        return c.add("tuple", parts, like=i) if i.shape.is_tuple else parts[0]


def needs_positions(i: Instruction) -> bool:
    """Whether positions are sorted along that would not be otherwise."""
    d = i.dimensions[0]
    return bool(i.is_stable) and not tells_all_apart(i) and not any(counts_along(o, d) for o in i.operands)


def tells_all_apart(i: Instruction) -> bool:
    """Whether elements are equal only if all their bits are."""
    root = i.to_apply.root
    if len(i.operands) > 1 or root.opcode != "compare" or root.direction not in ("LT", "GT"):
        return False
    t = i.operands[0].shape.element_type
    exact = t.is_integer or (t.is_float and root.attrs.get("type") == "TOTALORDER")
    return exact and {o for o in root.operands if o.opcode == "parameter"} == set(i.to_apply.parameters)


def counts_along(i: Instruction, d: int) -> bool:
    """Whether `i` is a position along dimension `d`, in a type that holds them all."""
    while i.opcode == "broadcast" and d in i.dimensions:
        i, d = i.operands[0], i.dimensions.index(d)
    t = i.shape.element_type
    holds = t.is_integer and i.shape.rank > 0 and i.shape.dims[d] <= 1 << (t.bits - t.is_signed)
    return i.opcode == "iota" and i.iota_dimension == d and holds


def with_tie_break(old: Computation, operand: int, positions: Instruction) -> Computation:
    """`old(a, b)`, or where neither comes first, whether a's position, which is that operand, is less than b's."""
    new = old.clone()
    forward = new.root
    # the comparison the other way round: the same instructions on swapped parameters
    swapped = {p: new.parameters[p.attrs["number"] ^ 1] for p in new.parameters}
    for i in new.post_order():
        if i not in swapped:
            swapped[i] = new.attach(i.clone([swapped[o] for o in i.operands]))
    index = shape.scalar(positions.shape.element_type)
    for n in range(len(new.parameters), 2 * operand + 2):
        new.add("parameter", (), index, number=n)
    m, n = new.parameters[2 * operand : 2 * operand + 2]
    first = new.add("compare", [m, n], PRED_SCALAR, direction="LT")
    same = new.add("compare", [forward, swapped[forward]], PRED_SCALAR, direction="EQ")
    new.root = new.add("select", [same, first, forward], PRED_SCALAR)
    return new
