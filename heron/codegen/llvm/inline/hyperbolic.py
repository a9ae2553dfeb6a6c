"""tanh, sinh, cosh and their inverses."""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import Body, Value, inline
from heron.codegen.llvm.inline.exp import EXP, LN2, LOG2_E, expm1_reduced, reduce
from heron.codegen.llvm.inline.log import log_sum

INF = float("inf")
#: (sinh x - x) / x³ in x², |x| <= 1; relative error 2^-33 and 2^-72
SINH = {
    "f32": (0.1666666716337204, 0.008333350531756878, 0.000198358713532798, 2.819029077727464e-06),
    "f64": (0.16666666666666666, 0.008333333333333333, 0.0001984126984126962, 2.7557319224113396e-06,
            2.5052108346198194e-08, 1.6059050734494812e-10, 7.64646947816313e-13, 2.8486834749661655e-15),
}  # fmt: skip
#: from here tanh rounds to 1
TANH_ONE = {"f32": 10.0, "f64": 20.0}
#: up to this (e^2x - 1) / 2 x is near 0
TANH_NEAR = 0.5
#: sinh and cosh are inf beyond
SINH_MAX = {"f32": 90.0, "f64": 711.0}
#: beyond, asinh x = log 2x to the last bit
LARGE = {"f32": 2.0**14, "f64": 2.0**28}
LN2_ROUNDED = 0.6931471805599453


def odd_poly(f: Body, x: Value, coefficients: tuple[float, ...]) -> Value:
    """x + x³·P(x²)."""
    z = x * x
    return f.fma(x * z, f.poly(z, coefficients), x)


@inline("tanh")
def tanh(f: Body, x: Value) -> Value:
    """t = h / (h + 1) for h = (e^2x - 1) / 2; near 0 h - t·h, in which the roundings of t count less.

    With r = 2s, (e^r - 1) / 2 is a polynomial in s whose coefficients are those of e^r - 1 times powers of two.
    """
    hi, lo = LN2[x.type]
    a = f.at_most(x.abs(), TANH_ONE[x.type])
    n, rounded = f.round_to_int(a, 2.0 * LOG2_E)
    first = f.fma(rounded, -0.5 * hi, a)
    s = f.fma(rounded, -0.5 * lo, first)
    higher = f.poly(s, [c * 2.0 ** (k + 1) for k, c in enumerate(EXP[x.type])])
    if x.type == "f32":
        q = f.fma(s * s, higher, s)
    else:  # s was rounded by a quarter of an ULP of the result
        q = f.fma(s * s, higher, f.fma(rounded, -0.5 * lo, first - s)) + s
    power = f.pow2(n, x.type)
    h = f.fma(power, q, f.fma(power, 0.5, -0.5))
    t = h / (h + 1.0)
    return f.select(h < TANH_NEAR, f.fma(-h, t, h), t).copysign(x)


def half_exp(f: Body, a: Value) -> Value:
    """e^a / 2 for a >= 0, without overflow before the result does."""
    n, r = reduce(f, f.at_most(a, SINH_MAX[a.type]))
    return f.scale(expm1_reduced(f, r) + 1.0, n - 1)


@inline("sinh")
def sinh(f: Body, x: Value) -> Value:
    a = x.abs()
    e = half_exp(f, a)
    return f.select(a < 1.0, odd_poly(f, a, SINH[x.type]), e - 0.25 / e).copysign(x)


@inline("cosh")
def cosh(f: Body, x: Value) -> Value:
    e = half_exp(f, x.abs())
    return e + 0.25 / e


def sqrt_sum(f: Body, s: Value, low: Value) -> tuple[Value, Value]:
    """√(s + low) as an unevaluated sum: one Newton step gives the low part."""
    root = s.sqrt()
    rest = (f.fma(-root, root, s) + low) / (root * 2.0)
    return root, f.select(root > 0.0, rest, 0.0)


def log_of_root_sum(f: Body, a: Value, sign: float) -> Value:
    """log(a + √(a² + sign)): arguments beyond LARGE use log(a) + ln 2, so a² cannot overflow."""
    large = a > LARGE[a.type]
    small = f.select(large, f.constant(1.0, a.type), a)
    square, error = f.two_prod(small, small)
    total, carry = f.two_sum(square, sign)
    root, root_low = sqrt_sum(f, total, carry + error)
    u, low = f.two_sum(small, root)
    u = f.select(large, a, u)
    low = f.select(large, f.constant(0.0, a.type), low + root_low)
    result = log_sum(f, u, low) + f.select(large, f.constant(LN2_ROUNDED, a.type), 0.0)
    return f.select(a.eq(INF), a, result)


@inline("asinh")
def asinh(f: Body, x: Value) -> Value:
    return log_of_root_sum(f, x.abs(), 1.0).copysign(x)


@inline("acosh")
def acosh(f: Body, x: Value) -> Value:
    return f.select(x >= 1.0, log_of_root_sum(f, f.at_least(x, 1.0), -1.0), float("nan"))


@inline("atanh")
def atanh(f: Body, x: Value) -> Value:
    """½·log(1 + 2a/(1-a)), the quotient carried as an unevaluated sum."""
    a = x.abs()
    inside = f.select(a < 1.0, a, f.constant(0.5, a.type))
    d, d_low = f.two_sum(f.constant(1.0, a.type), -inside)
    q = inside * 2.0 / d
    rest = (f.fma(-q, d, inside * 2.0) - q * d_low) / d
    u, low = f.two_sum(f.constant(1.0, a.type), q)
    result = log_sum(f, u, low + rest) * 0.5
    edge = f.select(a.eq(1.0), f.constant(INF, a.type), float("nan"))
    return f.select(a < 1.0, result, edge).copysign(x)
