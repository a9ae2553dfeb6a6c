"""log, log1p, log2, log10: x = 2^k·m with m in [√½, √2), a polynomial or rational in a = m - 1.

`log_sum(hi, lo)` takes its argument as an unevaluated sum, which is what log1p, asinh, acosh and atanh need.
"""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import Body, Value, inline, int_bits
from heron.codegen.llvm.inline.exp import LN2

SQRT_HALF = 0.7071067811865476
#: (log(1+f) - f + f²/2) / f³ on [√½-1, √2-1]; relative error of the log 2^-30
LOG_F32 = (
    0.3333331048488617, -0.24999986588954926, 0.20002223551273346, -0.16669264435768127, 0.14218708872795105,
    -0.12384150177240372, 0.11872492730617523, -0.11790730804204941, 0.06917371600866318,
)  # fmt: skip
#: (log((1+s)/(1-s))/s - 2) / s² in s², s = f/(2+f); relative error of the log 2^-64
LOG_F64 = (
    0.6666666666666666, 0.4000000000000481, 0.2857142856935891, 0.22222222625642954, 0.18181776199180907,
    0.15387104843728197, 0.13249168730354863, 0.1326431004821966,
)  # fmt: skip
#: constants as unevaluated sums hi + lo
LOG2_E = {"f32": (1.4426950216293335, 1.925963033500011e-08), "f64": (1.4426950408889634, 2.0355273740931033e-17)}
LOG10_E = {"f32": (0.4342944920063019, -1.0103049952192578e-08), "f64": (0.4342944819032518, 1.098319650216765e-17)}
LOG10_2 = {"f32": (0.3010300099849701, -1.4320988898361702e-08), "f64": (0.3010299956639812, -2.8037281277851704e-18)}


def normalise(f: Body, x: Value) -> tuple[Value, Value]:
    """(x scaled into the normal range, exponent to add back) for positive x."""
    t = x.format
    tiny = x < 2.0 ** (1 - t.bias)
    shift = t.mantissa + 2
    exponent = f.select(tiny, f.constant(-shift, t.integer), f.constant(0, t.integer))
    return f.select(tiny, x * 2.0**shift, x), exponent


def split(x: Value) -> tuple[Value, Value]:
    """Normal x = 2^k·(1 + a): (k as an integer, a in [√½-1, √2-1))."""
    t = x.format
    bits = x.bits() + (int_bits(1.0, t.name) - int_bits(SQRT_HALF, t.name))
    k = (bits >> t.mantissa) - t.bias
    mantissa = (bits & ((1 << t.mantissa) - 1)) + int_bits(SQRT_HALF, t.name)
    return k, mantissa.as_float(t.name) - 1.0


def to_float(n: Value, type_: str) -> Value:
    """A small integer as a float, by the magic-number addition (every vector unit has it, unlike i64 conversion)."""
    magic = 1.5 * 2.0 ** {"f32": 23, "f64": 52}[type_]
    return (n + int_bits(magic, type_)).as_float(type_) - magic


def tail(f: Body, a: Value) -> Value:
    """log(1+a) - a for a in [√½-1, √2-1]."""
    square = a * a * 0.5
    if a.type == "f32":
        return f.fma(a * a * a, f.poly(a, LOG_F32), -square)
    s = a / (a + 2.0)
    z = s * s
    return s * f.fma(z, f.poly(z, LOG_F64), square) - square


def log_parts(f: Body, x: Value, low: Value | None = None) -> tuple[Value, Value, Value]:
    """(k, a, b) with log(x + low) = k·ln2 + a + b, |b| < |a|, for positive finite x."""
    scaled, shift = normalise(f, x)
    k, a = split(scaled)
    k = k + shift
    if low is None:
        return to_float(k, x.type), a, tail(f, a)
    # low·2^-k joins a; what that rounds off, e, goes on linearly: log(1+a+e) = log(1+a) + e/(1+a)
    a, rest = f.fast_two_sum(a, f.scale(low, -k))
    return to_float(k, x.type), a, f.fma(rest, f.fma(a, a - 1.0, 1.0), tail(f, a))


def log_sum(f: Body, x: Value, low: Value | None = None) -> Value:
    """log(x + low) for positive finite x; low is the rounding error of x."""
    hi, lo = LN2[x.type]
    k, a, b = log_parts(f, x, low)
    return f.fma(k, hi, a + f.fma(k, lo, b))


def log_scaled(f: Body, x: Value, base: tuple[float, float], two: tuple[float, float]) -> Value:
    """log_b(x): ``base`` = 1/ln b and ``two`` = log_b 2, both as hi + lo."""
    k, a, b = log_parts(f, x)
    high, low = f.fast_two_sum(a, b)
    product, error = f.two_prod(high, base[0])
    error = f.fma(low, base[0], f.fma(high, base[1], error))
    whole, whole_error = f.two_prod(k, two[0])
    total, carry = f.two_sum(whole, product)
    return total + (carry + (error + f.fma(k, two[1], whole_error)))


def specials(f: Body, x: Value, result: Value) -> Value:
    """Special values of logarithms: log(0) = -inf, log(inf) = inf, log(negative) = log(nan) = nan."""
    result = f.select(x < float("inf"), result, x)
    edge = f.select(x.eq(0.0), f.constant(float("-inf"), x.type), float("nan"))
    return f.select(x > 0.0, result, edge)


@inline("log")
def log(f: Body, x: Value) -> Value:
    return specials(f, x, log_sum(f, x))


@inline("log1p")
def log1p(f: Body, x: Value) -> Value:
    total, low = f.two_sum(f.constant(1.0, x.type), x)
    return specials(f, total, log_sum(f, total, low)).copysign(x)


@inline("log2")
def log2(f: Body, x: Value) -> Value:
    return specials(f, x, log_scaled(f, x, LOG2_E[x.type], (1.0, 0.0)))


@inline("log10")
def log10(f: Body, x: Value) -> Value:
    return specials(f, x, log_scaled(f, x, LOG10_E[x.type], LOG10_2[x.type]))
