"""stochastic-convert-decomposer: rounding by chance as arithmetic."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import convert, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class StochasticConvertDecomposer(Expander):
    """Cuts the magnitude to a whole number, adds one where the random bits are below its fraction, and converts.

    The fraction is compared as a number of as many bits as the random ones. Conversions to floats stay: what they mean
    is open.

    ROOT r = s8[4] stochastic-convert(f32[4] x, u32[4] bits)
    ->
    size = f32[4] abs(x)
    whole = f32[4] floor(size)
    fraction = f32[4] subtract(size, whole)
    range = f32[] constant(4294967296)
    ranges = f32[4] broadcast(range), dimensions={}
    scaled = f32[4] multiply(fraction, ranges)
    chance = u32[4] convert(scaled)
    up = pred[4] compare(bits, chance), direction=LT
    step = f32[4] convert(up)
    rounded = f32[4] add(whole, step)
    zero = f32[] constant(0)
    zeros = f32[4] broadcast(zero), dimensions={}
    below = pred[4] compare(x, zeros), direction=LT
    minus = f32[4] negate(rounded)
    signed = f32[4] select(below, minus, rounded)
    ROOT r = s8[4] convert(signed)
    """

    name = "stochastic-convert-decomposer"
    opcodes = frozenset({"stochastic-convert"})

    def matches(self, i: Instruction) -> bool:
        return i.shape.element_type.is_signed

    def expand(self, i: Instruction) -> Instruction:
        c, bits = home(i), i.operands[1]
        x = i.operands[0]
        if x.shape.element_type.bits < 32:  # 2**bits is no number of narrow types
            x = convert(x, F32)
        size = abs(x)
        whole = c.add("floor", [size])
        chance = convert((size - whole) * float(2**bits.shape.element_type.bits), bits.shape.element_type)
        rounded = whole + convert(bits.lt(chance), x.shape.element_type)
        signed = c.add("select", [x.lt(splat(c, x.shape, 0)), -rounded, rounded])
        return convert(signed, i.shape.element_type)
