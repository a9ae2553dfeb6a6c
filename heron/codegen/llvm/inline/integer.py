"""Integer power."""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import REGISTRY, Body, Definition, Value


def ipow(f: Body, x: Value, n: Value) -> Value:
    """x^n with wrap-around, by squaring. Negative exponents: 1 and -1 have powers, every other base gives 0."""
    bits = int(x.type[1:])
    result, base, rest = f.constant(1, x.type), x, n
    for i in range(bits - 1):
        result = f.select((rest & 1).ne(0), result * base, result)
        rest = rest.shr(1)
        if i < bits - 2:
            base = base * base
    unit = f.select(x.eq(1), f.constant(1, x.type), 0)
    odd = f.select((n & 1).ne(0), f.constant(-1, x.type), 1)
    unit = f.select(x.eq(-1), odd, unit)
    return f.select(n < 0, unit, result)


for _bits in (8, 16, 32, 64):
    _type = f"i{_bits}"
    REGISTRY[f"heron.ipow.{_type}"] = Definition(f"heron.ipow.{_type}", (_type, _type), _type, ipow)
