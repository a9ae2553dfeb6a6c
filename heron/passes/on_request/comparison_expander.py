"""comparison-expander: total order of floats as order of integers."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F8E8M0FNU, by_name
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import bits_of, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ComparisonExpander(Expander):
    """Compares floats in total order by their bits.

    Read as a signed integer, a float of positive sign ranks right already; among the negative ones a larger magnitude
    must rank lower, so all bits but the sign are flipped. The fnuz types have a NaN in place of -0, which ranks lowest.
    No pipeline has it: kernels compare in total order in just this way.

    ROOT r = pred[4] compare(f32[4] x, f32[4] y), direction=LT, type=TOTALORDER
    ->
    a = s32[4] bitcast-convert(x)
    n = s32[] constant(31)
    shift = s32[4] broadcast(n), dimensions={}
    m = s32[] constant(2147483647)
    magnitude = s32[4] broadcast(m), dimensions={}
    sa = s32[4] shift-right-arithmetic(a, shift)
    fa = s32[4] and(sa, magnitude)
    ra = s32[4] xor(a, fa)
    b = s32[4] bitcast-convert(y)
    n2 = s32[] constant(31)
    shift2 = s32[4] broadcast(n2), dimensions={}
    m2 = s32[] constant(2147483647)
    magnitude2 = s32[4] broadcast(m2), dimensions={}
    sb = s32[4] shift-right-arithmetic(b, shift2)
    fb = s32[4] and(sb, magnitude2)
    rb = s32[4] xor(b, fb)
    ROOT r = pred[4] compare(ra, rb), direction=LT
    """

    name = "comparison-expander"
    opcodes = frozenset({"compare"})

    def matches(self, i: Instruction) -> bool:
        return i.type == "TOTALORDER" and i.operands[0].shape.element_type.is_float

    def expand(self, i: Instruction) -> Instruction:
        ranks = [_rank(x) for x in i.operands]
        return home(i).add("compare", ranks, i.shape, like=i, direction=i.direction)


def _rank(x: Instruction) -> Instruction:
    t = x.shape.element_type
    if t is F8E8M0FNU:  # has no sign
        return bits_of(x, by_name("u8"))
    bits = bits_of(x, by_name(f"s{t.bits}"))
    sign = bits >> (t.bits - 1)
    rank = bits ^ (sign & ((1 << t.bits - 1) - 1))
    if not t.name.endswith("fnuz"):
        return rank
    lowest = splat(home(x), bits.shape, -(1 << t.bits - 1))
    return home(x).add("select", [bits.eq(lowest), lowest, rank - sign])
