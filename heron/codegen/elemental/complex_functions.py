"""Transcendental functions of complex numbers, by real ones.

Each result's error is a few units of the last place of its modulus. Special values are those of C's Annex G.
Source: W. Kahan, "Branch cuts for complex elementary functions", 1987.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, math

from heron.codegen.elemental.complex import binary, divide, infinite, ordered
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.real import Real, Truth, joined, parts
from heron.codegen.elemental.values import Pair
from heron.codegen.ir.types import F32, F64

INFINITY = float("inf")
RIGHT_ANGLE = 1.5707963267948966
LOG_2 = 0.6931471805599453
#: from here on exp is taken in two steps, which keeps results in range that a sine or cosine makes small: f32, f64
_LARGE = (80.0, 700.0)
#: the logarithm of the second step's factor, and the factor
_STEP = (32.0, 78962960182680.69)
#: the square of its inverse is less than the last place of 1: f32, f64
_FAR = (1e5, 1e9)


def _limit(x: Real) -> float:
    return _LARGE[x.is_double]


def _exp_in_steps(x: Real, factor: float = 1.0) -> tuple[Real, Real]:
    """``factor * exp(x)`` as a product."""
    far = x > _limit(x)
    first = far.choose(x - _STEP[0], x).apply(math.ExpOp)
    return first * factor, far.choose(x.of(_STEP[1]), 1.0)


def _one(z: Real) -> Real:
    return z.of(1.0)


def exponential(e: FunctionEmitter, z: Pair) -> Pair:
    """exp(x)·(cos y + i·sin y); real arguments stay real."""
    x, y = parts(e, z)
    size, more = _exp_in_steps(x)
    re, im = size * y.apply(math.CosOp) * more, size * y.apply(math.SinOp) * more
    endless = ~y.is_finite()
    re = (x.equals(INFINITY) & endless).choose(x, (x.equals(-INFINITY) & endless).choose(x.of(0.0), re))
    im = y.equals(0).choose(y, (x.equals(-INFINITY) & endless).choose(x.of(0.0).copysign(y), im))
    return joined(re, im)


def exponential_minus_one(e: FunctionEmitter, z: Pair) -> Pair:
    """expm1(x)·cos y - 2·sin²(y/2), so that nothing cancels near 0; far out the exponential itself, NaN at its ends."""
    x, y = parts(e, z)
    half = (y * 0.5).apply(math.SinOp)
    re = x.apply(math.ExpM1Op) * y.apply(math.CosOp) - half * half * 2.0
    im = x.apply(math.ExpOp) * y.apply(math.SinOp)
    whole_re, whole_im = parts(e, exponential(e, z))
    near = y.is_finite() & (x < _limit(x))
    re, im = near.choose(re, whole_re - 1.0), near.choose(im, whole_im)
    re, im = (y.is_infinite().choose(x.of(float("nan")), part) for part in (re, im))
    on_axis = y.equals(0)
    return joined(on_axis.choose(x.apply(math.ExpM1Op), re), on_axis.choose(y, im))


def _log_modulus(x: Real, y: Real) -> Real:
    """log|x + iy| with no square that overflows, and by log1p where the modulus is near 1."""
    large, small, ratio = ordered(x, y)
    plain = large.apply(math.LogOp) + (ratio * ratio).apply(math.Log1pOp) * 0.5
    near = ((large - 1.0) * (large + 1.0) + small * small).apply(math.Log1pOp) * 0.5
    result = ((large > 0.7) & (large < 1.5)).choose(near, plain)
    return infinite(x, y).choose(large.of(INFINITY), result)


def log(e: FunctionEmitter, z: Pair) -> Pair:
    """log|z| + i·arg z."""
    x, y = parts(e, z)
    return joined(_log_modulus(x, y), y.atan2(x))


def log_plus_one(e: FunctionEmitter, z: Pair) -> Pair:
    """Near 0 by |1+z|² - 1 = x·(2+x) + y²."""
    x, y = parts(e, z)
    near = (abs(x) + abs(y)) < 1e3
    a, b = near.choose(x, 0.0), near.choose(y, 0.0)
    beyond = a * (2.0 + a) + b * b
    shifted = x + 1.0
    small = beyond.apply(math.Log1pOp) * 0.5
    re = (near & (beyond > -0.5)).choose(small, _log_modulus(shifted, y))
    return joined(re, y.atan2(shifted))


def sqrt(e: FunctionEmitter, z: Pair) -> Pair:
    """The root of half the modulus plus half the real part, whichever sum does not cancel; the other by division."""
    x, y = parts(e, z)
    large, _, ratio = ordered(x, y)
    is_x = abs(y) < abs(x)
    length = (1.0 + ratio * ratio).apply(math.SqrtOp)
    root = large.apply(math.SqrtOp) * ((length + is_x.choose(_one(x), ratio)) * 0.5).apply(math.SqrtOp)
    is_zero = large.equals(0)
    other = is_zero.choose(x.of(0.0), abs(y) / (root * 2.0))  # half of a denormal may be 0
    root = is_zero.choose(x.of(0.0), root)
    left = x < 0
    re, im = left.choose(other, root), left.choose(root, other)
    # infinities
    right_end, left_end = x.equals(INFINITY), x.equals(-INFINITY)
    re = right_end.choose(x, left_end.choose(y.is_nan().choose(y, 0.0), re))
    im = right_end.choose(y.is_nan().choose(y, 0.0), left_end.choose(-x, im))
    re = y.is_infinite().choose(abs(y), re)
    im = y.is_infinite().choose(abs(y), im)
    return joined(re, im.copysign(y))


def rsqrt(e: FunctionEmitter, z: Pair) -> Pair:
    """1 / sqrt(z); zeros that stand for numbers too small have the signs of those."""
    x, y = parts(e, z)
    re, im = parts(e, divide(e, joined(_one(x), x.of(0.0)), sqrt(e, z)))
    off_axis = x.is_finite() & y.is_finite() & ~y.equals(0)
    return joined(off_axis.choose(abs(re), re), off_axis.choose(im.copysign(-y), im))


def _hyperbolic(x: Real) -> tuple[Real, Real, Real]:
    """sinh x, cosh x, both to be multiplied by the third."""
    size = abs(x)
    far = size > _limit(x)
    half, more = _exp_in_steps(size, 0.5)
    near = far.choose(x.of(0.0), x)
    sinh = far.choose(half.copysign(x), near.apply(math.SinhOp))
    return sinh, far.choose(half, near.apply(math.CoshOp)), far.choose(more, 1.0)


def sinh(e: FunctionEmitter, z: Pair) -> Pair:
    """sinh x·cos y + i·cosh x·sin y."""
    x, y = parts(e, z)
    s, c, more = _hyperbolic(x)
    re, im = s * y.apply(math.CosOp) * more, c * y.apply(math.SinOp) * more
    keeps = (x.equals(0) | x.is_infinite()) & ~y.is_finite()
    return joined(keeps.choose(x, re), y.equals(0).choose(y, im))


def cosh(e: FunctionEmitter, z: Pair) -> Pair:
    """cosh x·cos y + i·sinh x·sin y."""
    x, y = parts(e, z)
    s, c, more = _hyperbolic(x)
    re, im = c * y.apply(math.CosOp) * more, s * y.apply(math.SinOp) * more
    re = (x.is_infinite() & ~y.is_finite()).choose(abs(x), re)
    nothing = x.of(0.0).copysign(x) * _one(x).copysign(y)
    lost = y.equals(0) | (x.equals(0) & ~y.is_finite())
    return joined(re, lost.choose(nothing, im))


def tanh(e: FunctionEmitter, z: Pair) -> Pair:
    """Kahan's formula by tan y and sinh x; beyond where tanh is 1, the imaginary part by exp(-2·|x|)."""
    x, y = parts(e, z)
    far = abs(x) > (18.0 if x.is_double else 9.0) + 2.0
    near = far.choose(x.of(0.0), x)
    t, s = y.apply(math.TanOp), near.apply(math.SinhOp)
    beta, square = 1.0 + t * t, s * s
    below = 1.0 + beta * square
    re = beta * (1.0 + square).apply(math.SqrtOp) * s / below
    rest = y.apply(math.SinOp) * y.apply(math.CosOp) * 4.0 * (abs(x) * -2.0).apply(math.ExpOp)
    rest = (x.is_infinite() & ~y.is_finite()).choose(x.of(0.0).copysign(y), rest)
    re = far.choose((x.is_infinite() | y.is_finite()).choose(_one(x).copysign(x), float("nan")), re)
    im = far.choose(rest, t / below)
    return joined(x.equals(0).choose(x, re), y.equals(0).choose(y, im))


def logistic(e: FunctionEmitter, z: Pair) -> Pair:
    """1 / (1 + exp(-z)), by the exponential that does not overflow."""
    x, y = parts(e, z)
    left = x < 0
    power_re, power_im = parts(e, exponential(e, joined(left.choose(x, -x), left.choose(y, -y))))
    above = joined(left.choose(power_re, 1.0), left.choose(power_im, 0.0))
    return divide(e, above, joined(power_re + 1.0, power_im))


# -- arc functions -----------------------------------------------------------------------------------------------------


def _times_i(z: Pair, e: FunctionEmitter, sign: int = 1) -> Pair:
    x, y = parts(e, z)
    return joined(-y, x) if sign > 0 else joined(y, -x)


def _roots(e: FunctionEmitter, x: Real, y: Real) -> tuple[Real, Real, Real, Real]:
    """The parts of sqrt(1 - z) and of sqrt(1 + z)."""
    low = parts(e, sqrt(e, joined(1.0 - x, -y)))
    high = parts(e, sqrt(e, joined(1.0 + x, y)))
    return *low, *high


def _far(x: Real, y: Real) -> tuple[Truth, Real]:
    """Whether 1 counts nothing beside |z|; and log(2·|z|), of numbers whose modulus may overflow."""
    large, _, ratio = ordered(x, y)
    size = large.apply(math.LogOp) + LOG_2 + (ratio * ratio).apply(math.Log1pOp) * 0.5
    endless = infinite(x, y)
    return (large > _FAR[x.is_double]) | endless, endless.choose(large.of(INFINITY), size)


def asin(e: FunctionEmitter, z: Pair) -> Pair:
    """atan2(x, Re(√(1-z)·√(1+z))) + i·asinh(Im(conj √(1-z)·√(1+z)))."""
    x, y = parts(e, z)
    a, b, c, d = _roots(e, x, y)
    re, im = x.atan2(a * c - b * d), (a * d - b * c).apply(math.AsinhOp)
    far, size = _far(x, y)
    re, im = far.choose(x.atan2(abs(y)), re), far.choose(size.copysign(y), im)
    real = y.equals(0) & (_one(x) >= abs(x))
    return joined(x.equals(0).choose(x, re), real.choose(y, im))


def acos(e: FunctionEmitter, z: Pair) -> Pair:
    """2·atan2(Re √(1-z), Re √(1+z)) + i·asinh(Im(conj √(1+z)·√(1-z)))."""
    x, y = parts(e, z)
    a, b, c, d = _roots(e, x, y)
    re, im = a.atan2(c) * 2.0, (c * b - d * a).apply(math.AsinhOp)
    far, size = _far(x, y)
    re = far.choose(abs(y).atan2(x), re)
    re = (x.equals(0) & y.is_nan()).choose(x.of(RIGHT_ANGLE), re)
    return joined(re, far.choose(-size.copysign(y), im))


def asinh(e: FunctionEmitter, z: Pair) -> Pair:
    """-i·asin(i·z)."""
    return _times_i(asin(e, _times_i(z, e)), e, -1)


def atan(e: FunctionEmitter, z: Pair) -> Pair:
    """-i·atanh(i·z)."""
    return _times_i(atanh(e, _times_i(z, e)), e, -1)


def acosh(e: FunctionEmitter, z: Pair) -> Pair:
    """asinh(Re(conj √(z-1)·√(z+1))) + 2i·atan2(Im √(z-1), Re √(z+1))."""
    x, y = parts(e, z)
    a, b = parts(e, sqrt(e, joined(x - 1.0, y)))
    c, d = parts(e, sqrt(e, joined(x + 1.0, y)))
    re, im = (a * c + b * d).apply(math.AsinhOp), b.atan2(c) * 2.0
    far, size = _far(x, y)
    im = (x.equals(0) & y.is_nan()).choose(x.of(RIGHT_ANGLE), im)
    return joined(far.choose(size, re), far.choose(y.atan2(x), im))


def atanh(e: FunctionEmitter, z: Pair) -> Pair:
    """log1p(4·x / ((1-x)² + y²)) / 4 + i·atan2(2·y, (1-x)·(1+x) - y²) / 2; far out 1/z, from a right angle."""
    x, y = parts(e, z)
    large, _, ratio = ordered(x, y)
    far = (large > _FAR[x.is_double]) | infinite(x, y)
    a, b = far.choose(x.of(0.0), x), far.choose(y.of(0.0), y)
    size = abs(a)
    near = 1.0 - size
    re = (size * 4.0 / (near * near + b * b)).apply(math.Log1pOp) * 0.25
    # beside a pole the square of the distance may be too small for a float
    beside = near.equals(0) & (abs(b) < 1e-10)
    re = beside.choose((LOG_2 - abs(b).apply(math.LogOp)) * 0.5, re)
    im = (b * 2.0).atan2(near * (1.0 + size) - b * b) * 0.5
    # x / (x² + y²) and y / (x² + y²) by quotients of parts of one size
    below = 1.0 + ratio * ratio
    inverse, rest = (infinite(x, y).choose(x.of(0.0), abs(part) / large / below / large) for part in (x, y))
    right = y.is_nan().choose(y, RIGHT_ANGLE - rest)
    re = far.choose(inverse, re).copysign(x)
    return joined(x.equals(0).choose(x, re), far.choose(right, im).copysign(y))


def tan(e: FunctionEmitter, z: Pair) -> Pair:
    """-i·tanh(i·z), but NaN at the ends of the real axis."""
    x, y = parts(e, z)
    re, im = parts(e, _times_i(tanh(e, _times_i(z, e)), e, -1))
    return joined(re, (x.is_infinite() & y.equals(0)).choose(x.of(float("nan")), im))


def sine(e: FunctionEmitter, z: Pair) -> Pair:
    """-i·sinh(i·z)."""
    return _times_i(sinh(e, _times_i(z, e)), e, -1)


def cosine(e: FunctionEmitter, z: Pair) -> Pair:
    """cosh(i·z)."""
    return cosh(e, _times_i(z, e))


# -- of two operands ---------------------------------------------------------------------------------------------------


def _doubled(e: FunctionEmitter, z: Pair) -> Pair:
    if z.re.type == F64:
        return z
    return Pair(*(e.b.op(arith.ExtFOp, part, type=F64) for part in z))


def power(e: FunctionEmitter, base: Pair, exponent: Pair) -> Pair:
    """exp(w·log z), in f64: the exponential makes every error of its argument one of the result.

    ``z ** 0`` and ``1 ** w`` are 1. 0 to a power of positive real part is 0, to others NaN. A positive infinity to a
    real power is itself or 0.
    """
    single = base.re.type == F32
    z, w = _doubled(e, base), _doubled(e, exponent)
    (a, b), (c, d) = parts(e, z), parts(e, w)
    u, v = parts(e, log(e, z))
    re, im = parts(e, exponential(e, joined(c * u - d * v, c * v + d * u)))
    # first powers are themselves, whatever infinity is in them
    itself = c.equals(1.0) & d.equals(0)
    re, im = itself.choose(a, re), itself.choose(b, im)
    nothing = a.equals(0) & b.equals(0)
    of_nothing = (c > 0.0).choose(a.of(0.0), float("nan"))
    re, im = nothing.choose(of_nothing, re), nothing.choose(of_nothing, im)
    endless = a.equals(INFINITY) & b.equals(0) & d.equals(0)
    re = endless.choose((c > 0.0).choose(a, (c < 0.0).choose(a.of(0.0), re)), re)
    im = (endless & (c > 0.0) | endless & (c < 0.0)).choose(b, im)
    one = (a.equals(1.0) & b.equals(0)) | (c.equals(0) & d.equals(0))
    result = joined(one.choose(_one(a), re), one.choose(a.of(0.0), im))
    return Pair(*(e.b.op(arith.TruncFOp, part, type=F32) for part in result)) if single else result


def atan2(e: FunctionEmitter, y: Pair, x: Pair) -> Pair:
    """-i·log((x + i·y) / √(x² + y²)), in f64, of operands brought to where their squares are in range."""
    single = x.re.type == F32
    x, y = _scaled(e, _doubled(e, x), _doubled(e, y))
    above = binary(e, "add", x, _times_i(y, e))
    below = sqrt(e, binary(e, "add", binary(e, "multiply", x, x), binary(e, "multiply", y, y)))
    result = _times_i(log(e, divide(e, above, below)), e, -1)
    return Pair(*(e.b.op(arith.TruncFOp, part, type=F32) for part in result)) if single else result


def _scaled(e: FunctionEmitter, x: Pair, y: Pair) -> tuple[Pair, Pair]:
    """Both times one power of two, so that the larger has squares neither too large nor too small for f64."""
    (a, b), (c, d) = parts(e, x), parts(e, y)
    sizes = [abs(part) for part in (a, b, c, d)]
    large, small = sizes[0] > 1e150, sizes[0] < 1e-150
    for size in sizes[1:]:
        large, small = large | (size > 1e150), small & (size < 1e-150)
    factor = large.choose(a.of(2.0**-540), small.choose(a.of(2.0**540), 1.0))
    return joined(a * factor, b * factor), joined(c * factor, d * factor)


#: functions by opcode
UNARY: dict[str, Callable[[FunctionEmitter, Pair], Pair]] = {
    "acos": acos,
    "acosh": acosh,
    "asin": asin,
    "asinh": asinh,
    "atan": atan,
    "atanh": atanh,
    "cosine": cosine,
    "cosh": cosh,
    "exponential": exponential,
    "exponential-minus-one": exponential_minus_one,
    "log": log,
    "log-plus-one": log_plus_one,
    "logistic": logistic,
    "rsqrt": rsqrt,
    "sine": sine,
    "sinh": sinh,
    "sqrt": sqrt,
    "tan": tan,
    "tanh": tanh,
}
BINARY: dict[str, Callable[[FunctionEmitter, Pair, Pair], Pair]] = {"power": power, "atan2": atan2}
