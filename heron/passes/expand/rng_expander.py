"""rng-expander: draws from distributions by random bits."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

from heron.hlo.instruction import Instruction
from heron.hlo.shape import tuple_
from heron.hlo.types import F32, F64, S32, S64, U32, U64, ElementType
from heron.passes.base import Constraint
from heron.passes.building import array, bits_of, convert, reshape, splat
from heron.passes.expand.expander import Expander, home
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class RngExpander(Expander):
    """Draws by Philox bits from the module's random state, which advances by what is used.

    Uniform floats are the upper 24 (f64: 53) bits as a fraction of the range; uniform integers the remainder of the
    bits by the range. Normal numbers are made by Box and Muller's transformation, of two uniform ones each.

    a = s32[] constant(3)
    b = s32[] constant(4)
    ROOT r = s32[4] rng(a, b), distribution=rng_uniform
    ->
    ...
    """

    name = "rng-expander"
    opcodes = frozenset({"rng"})
    constraints = (Constraint("rng-expander", "rng-bit-generator-expander", "it draws bits", all_runs=True),)

    def matches(self, i: Instruction) -> bool:
        return i.shape.element_type.kind != "pred"

    def expand(self, i: Instruction) -> Instruction:
        if i.shape.element_type.is_integer:
            return _uniform_integers(i)
        return _normal(i) if i.distribution == "rng_normal" else _uniform_floats(i)


def _bits(i: Instruction, t: ElementType, dims: tuple[int, ...]) -> Instruction:
    c = home(i)
    shape = array(t, dims)
    counters = -(-shape.num_elements * t.bits // 128)
    state = c.add("rng-get-and-update-state", [], array(U64, (2,)), like=i, delta=max(counters, 1))
    # the state is a counter of 128 bits, the upper half first; Philox takes (key, counter)
    result = tuple_([state.shape, shape])
    both = c.add("rng-bit-generator", [state], result, like=i, algorithm="rng_philox")
    return c.add("get-tuple-element", [both], shape, index=1)


def _spread(x: Instruction, dims: tuple[int, ...]) -> Instruction:
    return home(x).add("broadcast", [x], array(x.shape.element_type, dims), dimensions=()) if dims else x


def _uniform_integers(i: Instruction) -> Instruction:
    dims, t = i.shape.dims, i.shape.element_type
    word, signed = (U64, S64) if t.bits > 32 else (U32, S32)
    a, b = (convert(x, signed if t.is_signed else word) for x in i.operands)
    low = bits_of(a, word)
    span = bits_of(b, word) - low
    drawn = _bits(i, word, dims) % _spread(span, dims) + _spread(low, dims)
    # an empty range, [a, a), gives a
    empty = _spread(a.ge(b), dims)
    return convert(home(i).add("select", [empty, _spread(low, dims), drawn]), t)


def _fractions(i: Instruction, wide: ElementType, dims: tuple[int, ...]) -> Instruction:
    """Floats of equal distance in [0, 1)."""
    word, kept = (U64, 53) if wide is F64 else (U32, 24)
    bits = _bits(i, word, dims)
    return convert(bits >> (word.bits - kept), wide) * 2.0**-kept


def _uniform_floats(i: Instruction) -> Instruction:
    dims, t = i.shape.dims, i.shape.element_type
    wide = F64 if t is F64 else F32
    low, high = (_spread(convert(x, wide), dims) for x in i.operands)
    drawn = convert(_fractions(i, wide, dims) * (high - low) + low, t)
    low, high = (_spread(x, dims) for x in i.operands)
    outside = drawn.ge(high) & high.gt(low)  # what rounds up to the limit is outside
    return home(i).add("select", [outside, low, drawn])


def _normal(i: Instruction) -> Instruction:
    dims, t, c = i.shape.dims, i.shape.element_type, home(i)
    wide = F64 if t is F64 else F32
    mean, deviation = (_spread(convert(x, wide), dims) for x in i.operands)
    pair = _fractions(i, wide, (2, *dims))
    first, second = (reshape(pair[n : n + 1], dims) for n in range(2))
    size = c.add("sqrt", [c.add("log", [splat(c, first.shape, 1) - first]) * -2.0])
    turned = size * c.add("cosine", [second * (2 * pi)])
    return convert(turned * deviation + mean, t)
