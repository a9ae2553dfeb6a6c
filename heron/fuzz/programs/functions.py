"""Steps of `program` that apply functions with a known slope, look at bits, or go by way of complex numbers."""

from __future__ import annotations

from collections.abc import Callable

from heron.fuzz.programs.state import State, epsilon, exact_limit, top
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, F64, S8, S16, S32, S64, U8, U16, U32, U64

#: functions of numbers from 1 on with their largest slope there
_FROM_ONE = {"sqrt": 0.5, "rsqrt": 0.5, "log": 1.0, "log-plus-one": 0.5, "cbrt": 1 / 3}
_OTHER_SIGN = {S8: U8, S16: U16, S32: U32, S64: U64, U8: S8, U16: S16, U32: S32, U64: S64}


def _from_one(s: State) -> Instruction | None:
    x = s.pick("float")
    if x is None:
        return None
    facts, element_type = s.facts[x], x.shape.element_type
    low = s.keep(s.b.full(1, x.shape), 1)
    size = s.add("abs", [s.within(x, 2.0**15 if element_type.bits < 32 else 2.0**20)], facts.bound, facts.error)
    size = s.add("maximum", [size, low], max(s.facts[size].bound, 1), facts.error)
    opcode = s.one_of(sorted(_FROM_ONE))
    bound = max(s.facts[size].bound ** 0.5, 16)
    return s.add(opcode, [size], bound, _FROM_ONE[opcode] * facts.error + epsilon(element_type) * bound)


def _atan2(s: State) -> Instruction | None:
    y = s.pick("float")
    if y is None:
        return None
    x = s.keep(s.b.full(s.one_of((1, 2, 7)), y.shape), 7)  # right of the axis, where the slope is at most 1
    return s.add("atan2", [y, x], 1.6, s.facts[y].error + 2 * epsilon(y.shape.element_type))


def _power(s: State) -> Instruction | None:
    x = s.pick("signed unsigned")
    if x is None:
        return None
    exponent = s.b.full(s.integer(0, 5), x.shape)
    return s.add("power", [x, exponent], top(x.shape.element_type))


def _is_finite(s: State) -> Instruction | None:
    x = s.pick("float")
    return None if x is None else s.add("is-finite", [x], 1)


def _other_sign(s: State) -> Instruction | None:
    """The same bits as the integer type of the other signedness."""
    x = s.pick(fits=lambda v: v.shape.element_type in _OTHER_SIGN)
    if x is None:
        return None
    to = x.shape.with_type(_OTHER_SIGN[x.shape.element_type])
    return s.keep(s.b.bitcast_convert(x, shape=to), top(to.element_type))


def _reduce_precision(s: State) -> Instruction | None:
    x = s.pick("float", exact=True)
    if x is None:
        return None
    x = s.within(x, exact_limit(x.shape.element_type) / 2)
    attributes = {"exponent_bits": s.one_of((8, 11)), "mantissa_bits": s.integer(1, 12)}
    return s.add("reduce-precision", [x], 2 * s.facts[x].bound, **attributes)


def _complex(s: State) -> Instruction | None:
    """A part of the sum, difference or product of two complex numbers with whole parts."""
    x = s.pick(exact=True, fits=lambda v: v.shape.element_type in (F32, F64))
    if x is None:
        return None
    limit = 2.0**10 if x.shape.element_type is F32 else 2.0**20
    a, b, c = (s.within(v, limit) for v in (x, s.like(x, exact=True), s.like(x, exact=True)))
    left, right = s.b.complex(a, b), s.b.complex(b, c)
    result = getattr(s.b, s.one_of(("add", "subtract", "multiply")))(left, right)
    if s.integer(0, 1):
        result = s.b.negate(result)
    return s.add(s.one_of(("real", "imag")), [result], 2 * limit * limit)


def _largest(s: State) -> Instruction | None:
    """The first elements of sorted rows, or where they were."""
    x = s.pick("float signed unsigned", exact=True, fits=lambda v: v.shape.rank > 0 and v.shape.dims[-1] > 0)
    if x is None:
        return None
    both = s.b.topk(x, k=s.integer(1, x.shape.dims[-1]), largest=bool(s.integer(0, 1)))
    part = s.integer(0, 1)
    return s.keep(s.b.get_tuple_element(both, index=part), x.shape.dims[-1] if part else s.facts[x].bound)


def _barrier(s: State) -> Instruction | None:
    x = s.pick()
    y = s.like(x)
    held = s.b.computation.add("opt-barrier", [s.b.tuple(x, y)])
    n = s.integer(0, 1)
    facts = s.facts[(x, y)[n]]
    return s.keep(s.b.get_tuple_element(held, index=n), facts.bound, facts.error)


FUNCTIONS: dict[str, Callable[[State], Instruction | None]] = {
    "from_one": _from_one,
    "atan2": _atan2,
    "power": _power,
    "is_finite": _is_finite,
    "other_sign": _other_sign,
    "reduce_precision": _reduce_precision,
    "complex": _complex,
    "largest": _largest,
    "barrier": _barrier,
}
