"""tanh, sinh, cosh and their inverses."""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import Body, Value, inline
from heron.codegen.llvm.inline.exp import expm1_reduced, reduce
from heron.codegen.llvm.inline.log import log_sum

INF = float("inf")
#: (tanh x - x) / x³ in x², |x| <= 0.625; relative error of tanh 2^-32 and 2^-65
TANH = {
    "f32": (-0.3333333134651184, 0.13333220779895782, -0.053947459906339645, 0.021700244396924973,
            -0.008168870583176613, 0.0021303086541593075),
    "f64": (-0.3333333333333333, 0.1333333333333323, -0.05396825396816599, 0.021869488532586745,
            -0.008863235447829269, 0.0035921268515932154, -0.0014558229886809282, 0.0005899518078984759,
            -0.000238776717668047, 9.575811824532648e-05, -3.662652518538326e-05, 1.1787460705593045e-05,
            -2.2660453928968223e-06),
}  # fmt: skip
#: (sinh x - x) / x³ in x², |x| <= 1; relative error 2^-33 and 2^-72
SINH = {
    "f32": (0.1666666716337204, 0.008333350531756878, 0.000198358713532798, 2.819029077727464e-06),
    "f64": (0.16666666666666666, 0.008333333333333333, 0.0001984126984126962, 2.7557319224113396e-06,
            2.5052108346198194e-08, 1.6059050734494812e-10, 7.64646947816313e-13, 2.8486834749661655e-15),
}  # fmt: skip
#: from here tanh rounds to 1
TANH_ONE = {"f32": 10.0, "f64": 20.0}
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
    """1 - 2/(e^2x + 1) away from 0, a polynomial near it."""
    a = x.abs()
    n, r = reduce(f, f.at_most(a, TANH_ONE[x.type]) * 2.0)
    power = f.pow2(n, x.type)
    e = f.fma(power, expm1_reduced(f, r), power)
    far = 1.0 - 2.0 / (e + 1.0)
    return f.select(a < 0.625, odd_poly(f, a, TANH[x.type]), far).copysign(x)


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
