"""Laws of the elementwise ops, on numbers Hypothesis picks."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.evaluator import Evaluator
from heron.hlo.ir import shape as shapes
from heron.hlo.ir import types
from heron.hlo.ir.instruction import make
from heron.hlo.ir.types import F32, S32, ElementType

INTEGERS = [types.by_name(n) for n in "s2 s4 s8 s16 s32 s64 u2 u4 u8 u16 u32 u64".split()]
EV = Evaluator()


def apply(
    opcode: str, t: ElementType, *values: float, result: ElementType | None = None, **attrs: object
) -> int | float:
    """One op on scalars of type `t`."""
    operands = [make("parameter", (), shapes.scalar(t), number=n) for n in range(len(values))]
    i = make(opcode, operands, shapes.scalar(result) if result else None, **attrs)
    return EV.run_instruction(i, [np.array(v).astype(t.dtype) for v in values]).item()


def wrapped(value: int, t: ElementType) -> int:
    value %= 1 << t.bits
    return value - (1 << t.bits) if t.is_signed and value >> (t.bits - 1) else value


@st.composite
def integer_pairs(draw: st.DrawFn) -> tuple[ElementType, int, int]:
    t = draw(st.sampled_from(INTEGERS))
    low, high = wrapped(1 << (t.bits - 1), t) if t.is_signed else 0, (1 << (t.bits - t.is_signed)) - 1
    return t, draw(st.integers(low, high)), draw(st.integers(low, high))


@settings(max_examples=150)
@given(integer_pairs())
def test_integers_wrap(pair: tuple[ElementType, int, int]) -> None:
    t, a, b = pair
    assert apply("add", t, a, b) == wrapped(a + b, t)
    assert apply("subtract", t, a, b) == wrapped(a - b, t)
    assert apply("multiply", t, a, b) == wrapped(a * b, t)
    assert apply("negate", t, a) == wrapped(-a, t)
    assert apply("mulhi", t, a, b) == (a * b) >> t.bits
    exponent = b % (8 if t.bits > 4 else 2)
    assert apply("power", t, a, exponent) == wrapped(a**exponent, t)


@settings(max_examples=150)
@given(integer_pairs())
def test_division_truncates_and_its_remainder_completes_it(pair: tuple[ElementType, int, int]) -> None:
    t, a, b = pair
    quotient, rest = apply("divide", t, a, b), apply("remainder", t, a, b)
    if b == 0:
        assert (quotient, rest) == (wrapped(-1, t), a)
    else:
        exact = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        assert quotient == wrapped(exact, t)
        assert rest == a - exact * b


@settings(max_examples=150)
@given(integer_pairs())
def test_bits(pair: tuple[ElementType, int, int]) -> None:
    t, a, b = pair
    pattern, amount = a % (1 << t.bits), b % (1 << t.bits)
    assert apply("not", t, a) == wrapped(~a, t)
    assert apply("xor", t, a, b) == wrapped(a ^ b, t)
    assert apply("shift-left", t, a, b) == (wrapped(pattern << amount, t) if amount < t.bits else 0)
    assert apply("shift-right-logical", t, a, b) == (wrapped(pattern >> amount, t) if amount < t.bits else 0)
    signed = pattern - (1 << t.bits) if pattern >> (t.bits - 1) else pattern
    assert apply("shift-right-arithmetic", t, a, b) == wrapped(signed >> min(amount, t.bits - 1), t)
    assert apply("popcnt", t, a) == wrapped(pattern.bit_count(), t)
    assert apply("count-leading-zeros", t, a) == wrapped(t.bits - pattern.bit_length(), t)


@settings(max_examples=150)
@given(st.floats(width=32), st.floats(width=32))
def test_order_of_floats(a: float, b: float) -> None:
    largest, smallest = apply("maximum", F32, a, b), apply("minimum", F32, a, b)
    if math.isnan(a) or math.isnan(b):
        assert math.isnan(largest) and math.isnan(smallest)
    else:
        assert (largest, smallest) == (max(a, b), min(a, b))
    total = [apply("compare", F32, *pair, direction="LE", type="TOTALORDER") for pair in ((a, b), (b, a))]
    assert any(total)
    same_bits = np.float32(a).tobytes() == np.float32(b).tobytes()
    assert all(total) == same_bits


@settings(max_examples=150)
@given(st.floats(width=32))
def test_float_to_integer_saturates(a: float) -> None:
    want = 0 if math.isnan(a) else int(max(-(2.0**31), min(2.0**31 - 1, a)))
    assert apply("convert", F32, a, result=S32) == want


@settings(max_examples=150)
@given(st.floats(-1e6, 1e6, width=32))
def test_rounding(a: float) -> None:
    assert apply("floor", F32, a) == math.floor(a) and apply("ceil", F32, a) == math.ceil(a)
    assert apply("round-nearest-even", F32, a) == round(a)
    assert apply("round-nearest-afz", F32, a) == math.copysign(math.floor(abs(a) + 0.5), a)
