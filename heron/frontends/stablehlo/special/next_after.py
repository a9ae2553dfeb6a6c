"""The neighbour of a floating-point number."""

from __future__ import annotations

import math

from heron.frontends.stablehlo.special.expression import Expression, where
from heron.hlo.ir import types


def next_after(x: Expression, y: Expression) -> Expression:
    """The number next to x on the way to y: one more or less as bits, signs apart."""
    width = x.type.bits
    unsigned = types.by_name(f"u{width}")
    sign_bit = 1 << (width - 1)
    a, b = x.bits(unsigned), y.bits(unsigned)
    size_a, size_b = a.apply("and", sign_bit - 1), b.apply("and", sign_bit - 1)
    sign_a, sign_b = a.apply("and", sign_bit), b.apply("and", sign_bit)
    smallest = sign_b.apply("or", 1)  # what follows a zero
    inwards = size_a.compare("GT", size_b) | sign_a.compare("NE", sign_b)
    step = where(inwards, a - 1, a + 1)
    moved = where(size_a.equals(0), smallest, step)
    same = size_a.equals(0) & size_b.equals(0) | a.equals(b)
    result = where(same, b, moved).bits(x.type)
    return where(x.compare("NE", x) | y.compare("NE", y), math.nan, result)
