"""pow: 2^(y·log2|x|), with the logarithm to more digits than the result needs; corner cases as C99."""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import Body, Value, inline
from heron.codegen.llvm.inline.exp import EXP2, EXP2_RANGE, clamp
from heron.codegen.llvm.inline.log import LOG2_E, normalise, split, to_float

INF = float("inf")
#: (log((1+s)/(1-s))/s - 2)/s² in s²: 2/3 + s²·TAIL, error 2^-65; and the whole to 2^-43 for float results
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
TAIL = (0.40000000000002267, 0.28571428570093266, 0.2222222252115508, 0.18181784251139266, 0.1538676300376487,
        0.13256678883287243, 0.1319767356362757)  # fmt: skip
SHORT = (0.6666666667387969, 0.39999995844902464, 0.28572116124776226, 0.22175005499876294, 0.1961039602761468)
#: 2^r on [-1/2, 1/2] to 2^-34 relative, for float results
EXP2_SHORT = EXP2["f32"]


def log2_pair(f: Body, x: Value) -> tuple[Value, Value]:
    """log2(x) as hi + lo, relative error about 2^-65, for positive finite double x."""
    scaled, shift = normalise(f, x)
    k_int, a = split(scaled)
    k = to_float(k_int + shift, "f64")
    d, d_low = f.two_sum(a, 2.0)
    inverse = 1.0 / d
    s = a * inverse
    s_low = (f.fma(-s, d, a) - s * d_low) * inverse
    z, z_low = f.two_prod(s, s)
    z_low = f.fma(s * 2.0, s_low, z_low)
    r, r_low = f.fast_two_sum(f.constant(TWO_THIRDS[0], "f64"), z * f.poly(z, TAIL))
    r_low = r_low + TWO_THIRDS[1]
    w, w_low = f.two_prod(z, r)
    w_low = w_low + f.fma(z, r_low, z_low * r)
    g, g_low = f.fast_two_sum(f.constant(2.0, "f64"), w)
    g_low = g_low + w_low
    ln, ln_low = f.two_prod(s, g)
    ln_low = ln_low + f.fma(s, g_low, s_low * g)
    hi, lo = f.two_prod(ln, LOG2_E["f64"][0])
    lo = lo + f.fma(ln, LOG2_E["f64"][1], ln_low * LOG2_E["f64"][0])
    total, error = f.fast_two_sum(k, hi)
    return f.fast_two_sum(total, error + lo)


def infinite_log(f: Body, a: Value, log: Value) -> Value:
    """The logarithm with its ends: log2(0) = -inf, log2(inf) = inf."""
    log = f.select(a.eq(0.0), f.constant(-INF, log.type), log)
    return f.select(a.eq(INF), f.constant(INF, log.type), log)


def corners(f: Body, x: Value, y: Value, result: Value) -> Value:
    """Sign and special cases around |x|^y (C99 F.9.4.4)."""
    integer = y.trunc().eq(y)
    half = y * 0.5
    odd = f.both(integer, half.trunc().ne(half))
    negative = (x.bits() >> (x.format.width - 1)).ne(0)
    result = f.select(f.both(negative, odd), -result, result)
    root = f.both(f.both(x < 0.0, x > -INF), f.invert(integer))
    result = f.select(root, float("nan"), result)
    result = f.select(f.both(x.abs().eq(1.0), y.abs().eq(INF)), 1.0, result)
    result = f.select(f.either(x.is_nan(), y.is_nan()), x + y, result)
    return f.select(f.either(x.eq(1.0), y.eq(0.0)), 1.0, result)


@inline("pow", arity=2, types=("f64",))
def pow_f64(f: Body, x: Value, y: Value) -> Value:
    a = x.abs()
    log, log_low = log2_pair(f, a)
    log = infinite_log(f, a, log)
    exponent, error = f.two_prod(log, y)
    error = f.fma(log_low, y, error)
    low, high = EXP2_RANGE["f64"]
    inside = f.both(exponent > low, exponent < high)
    error = f.select(inside, error, 0.0)
    n, whole = f.round_to_int(bounded := clamp(f, exponent, (low, high)))
    r = (bounded - whole) + error
    return corners(f, x, y, f.scale_positive(f.fma(r, f.poly(r, EXP2["f64"]), 1.0), n))


@inline("pow", arity=2, types=("f32",))
def pow_f32(f: Body, x: Value, y: Value) -> Value:
    """In double, where plain arithmetic carries enough digits for a float result."""
    a = x.abs().extend()
    k, m = split(a)
    s = m / (m + 2.0)
    z = s * s
    log = f.fma(s * f.fma(z, f.poly(z, SHORT), 2.0), LOG2_E["f64"][0], to_float(k, "f64"))
    bounded = clamp(f, infinite_log(f, a, log) * y.extend(), EXP2_RANGE["f32"])
    n, whole = f.round_to_int(bounded)
    r = bounded - whole
    return corners(f, x, y, (f.fma(r, f.poly(r, EXP2_SHORT), 1.0) * f.pow2(n, "f64")).narrow())
