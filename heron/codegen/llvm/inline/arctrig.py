"""asin, acos, atan, atan2."""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import Body, Value, inline
from heron.codegen.llvm.inline.hyperbolic import odd_poly

#: π, π/2, π/4 as hi + lo
PI = {"f32": (3.1415927410125732, -8.742277657347586e-08), "f64": (3.141592653589793, 1.2246467991473532e-16)}
PI_2 = {"f32": (1.5707963705062866, -4.371138828673793e-08), "f64": (1.5707963267948966, 6.123233995736766e-17)}
PI_4 = {"f32": (0.7853981852531433, -2.1855694143368964e-08), "f64": (0.7853981633974483, 3.061616997868383e-17)}
#: (asin x - x) / x³ in x², |x| <= 1/2; error 2^-31 and 2^-63
ASIN = {
    "f32": (0.16666662693023682, 0.07500430196523666, 0.04452338442206383, 0.031801674515008926, 0.014326212927699089,
            0.037819456309080124),
    "f64": (0.16666666666666663, 0.07500000000001261, 0.04464285714089275, 0.03038194458747685, 0.022372153190749502,
            0.017352917253873106, 0.013962202822980007, 0.01158335167307773, 0.00949617833107026,
            0.009968446605066577, 0.0007636303039827651, 0.024763016439394287, -0.02620464076483245,
            0.0337482801178946),
}  # fmt: skip
#: (atan x - x) / x³ in x², |x| <= tan(π/8); error 2^-34 and 2^-68
ATAN = {
    "f32": (-0.3333333134651184, 0.1999991238117218, -0.14282064139842987, 0.11043693125247955,
            -0.08464009314775467, 0.047086428850889206),
    "f64": (-0.3333333333333333, 0.1999999999999993, -0.1428571428570055, 0.1111111110984487, -0.09090909024730558,
            0.07692305520982283, -0.06666619201571625, 0.0588163714414419, -0.05255577334016298,
            0.04705311368644624, -0.040529286206801914, 0.029545748963282527, -0.012903248794041408),
}  # fmt: skip
TAN_PI_8 = 0.4142135623730951


def half_angle(f: Body, a: Value) -> tuple[Value, Value, Value]:
    """For a > 1/2: s + low = √((1-a)/2), and asin(s) - s. asin a = π/2 - 2·asin s."""
    z = (1.0 - a) * 0.5
    s = f.at_least(z, 0.0).sqrt()
    low = f.select(s > 0.0, f.fma(-s, s, z) / (s * 2.0), 0.0)
    return s, low, s * z * f.poly(z, ASIN[a.type])


@inline("asin")
def asin(f: Body, x: Value) -> Value:
    a = x.abs()
    s, low, cubic = half_angle(f, a)
    hi, lo = PI_2[x.type]
    top, error = f.fast_two_sum(f.constant(hi, x.type), s * -2.0)
    far = top + (error - (low + cubic) * 2.0 + lo)
    result = f.select(a <= 0.5, odd_poly(f, a, ASIN[x.type]), far)
    return f.select(a <= 1.0, result, float("nan")).copysign(x)


@inline("acos")
def acos(f: Body, x: Value) -> Value:
    a = x.abs()
    hi, lo = PI_2[x.type]
    z = x * x
    middle, error = f.fast_two_sum(f.constant(hi, x.type), -x)
    middle = middle + (error - f.fma(x * z, f.poly(z, ASIN[x.type]), -lo))
    s, low, cubic = half_angle(f, a)
    positive = (s + (low + cubic)) * 2.0
    top, error = f.fast_two_sum(f.constant(PI[x.type][0], x.type), s * -2.0)
    negative = top + (error - (low + cubic) * 2.0 + PI[x.type][1])
    far = f.select(x > 0.0, positive, negative)
    return f.select(a <= 1.0, f.select(a <= 0.5, middle, far), float("nan"))


def atan_ratio(f: Body, low: Value, high: Value) -> tuple[Value, Value, Value]:
    """atan(low/high) for 0 <= low <= high as (offset, offset's low part, rest): offset is 0 or π/4."""
    shifted = low > high * TAN_PI_8
    t = f.select(shifted, low - high, low) / f.select(shifted, low + high, high)
    hi, lo = PI_4[t.type]
    zero = f.constant(0.0, t.type)
    return f.select(shifted, f.constant(hi, t.type), zero), f.select(shifted, f.constant(lo, t.type), zero), t


def angle(f: Body, smaller: Value, larger: Value, swap: Value) -> tuple[Value, Value]:
    """atan(smaller/larger), or π/2 minus it where ``swap``, as hi + lo."""
    offset, offset_low, t = atan_ratio(f, smaller, larger)
    z = t * t
    cubic = t * z * f.poly(z, ATAN[t.type])
    hi, lo = PI_2[t.type]
    zero = f.constant(0.0, t.type)
    sign = lambda v: f.select(swap, -v, v)  # noqa: E731
    base, base_low = (
        f.select(swap, f.constant(hi, t.type) - offset, offset),
        f.select(swap, lo - offset_low, offset_low),
    )
    base = f.select(smaller.eq(larger), offset, base)
    base_low = f.select(smaller.eq(larger), offset_low, base_low)
    top, error = f.fast_two_sum(base, sign(t))
    top, error = f.select(base.eq(zero), sign(t), top), f.select(base.eq(zero), zero, error)
    return top, error + (base_low + sign(cubic))


@inline("atan")
def atan(f: Body, x: Value) -> Value:
    a = x.abs()
    swap = a > 1.0
    one = f.constant(1.0, x.type)
    finite = f.at_most(a, 1e30)
    high, low = angle(f, f.select(swap, one, finite), f.select(swap, finite, one), swap)
    return (high + low).copysign(x)


@inline("atan2", arity=2)
def atan2(f: Body, y: Value, x: Value) -> Value:
    """The angle of (x, y); signed zeros and infinities as C99's atan2."""
    t = y.type
    ay, ax = y.abs(), x.abs()
    inf = f.constant(float("inf"), t)
    both_infinite = f.both(ay.eq(inf), ax.eq(inf))
    one = f.constant(1.0, t)
    ay, ax = f.select(both_infinite, one, ay), f.select(both_infinite, one, ax)
    swap = ay > ax
    smaller, larger = f.select(swap, ax, ay), f.select(swap, ay, ax)
    smaller, larger = in_range(f, smaller, larger)
    high, low = angle(f, smaller, larger, swap)
    # the left half plane: π - angle
    negative = (x.bits() >> (x.format.width - 1)).ne(0)
    pi, pi_low = PI[t]
    top, error = f.fast_two_sum(f.constant(pi, t), -high)
    left = top + (error + (pi_low - low))
    result = f.select(negative, left, high + low).copysign(y)
    return f.select(f.either(x.is_nan(), y.is_nan()), x + y, result)


def in_range(f: Body, smaller: Value, larger: Value) -> tuple[Value, Value]:
    """Both scaled by a power of two so that sums do not overflow and quotients keep their bits; 0/0 becomes 0/1."""
    bias = larger.format.bias
    scale = f.select(larger > 2.0 ** (bias - 2), f.constant(0.25, larger.type), 1.0)
    scale = f.select(larger < 2.0 ** (-bias // 2), f.constant(2.0 ** (bias // 2), larger.type), scale)
    smaller, larger = smaller * scale, larger * scale
    larger = f.select(larger.eq(0.0), f.constant(1.0, larger.type), larger)
    infinite = larger.eq(float("inf"))
    zero, one = f.constant(0.0, larger.type), f.constant(1.0, larger.type)
    return f.select(infinite, zero, smaller), f.select(infinite, one, larger)
