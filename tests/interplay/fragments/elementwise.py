"""One op applied to every element: real functions, towers of them, rounding, comparisons, selects."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from tests.interplay.fragment import Fragment as F

#: function, domain
_SMOOTH = {
    "exp": "", "exp2": "", "expm1": "", "log": "positive", "log1p": "positive", "log2": "positive", "sqrt": "positive",
    "sin": "", "cos": "", "tan": "small", "tanh": "", "sinh": "", "cosh": "", "arcsin": "small", "arccos": "small",
    "arctan": "", "arcsinh": "", "arccosh": "large", "arctanh": "small", "cbrt": "positive", "sinc": "", "square": "",
    "reciprocal": "positive", "deg2rad": "",
}  # fmt: skip


def _counted(p, q):
    return sum(jnp.roll(v, k, 0).astype("int32") for v in (p, q) for k in (-1, 0, 1))


def _fractions(x, levels=9):
    y = x
    for _ in range(levels):
        y = 1 / (1 + y) + x
    return y


FRAGMENTS = [
    *[F(f"{name}", f"f32[n] {domain}", getattr(jnp, name), least=0) for name, domain in _SMOOTH.items()],
    *[
        F(f"{name}_f64", f"f64[3,n] {_SMOOTH[name]}", getattr(jnp, name))
        for name in ("exp", "log", "sin", "tanh", "cbrt")
    ],
    *[
        F(f"{name}_bf16", f"bf16[n,2] {_SMOOTH[name]}", getattr(jnp, name), ulps=4)
        for name in ("exp", "log", "tanh", "sqrt")
    ],
    *[
        F(f"{name}_f16", f"f16[n] {_SMOOTH[name]}", getattr(jnp, name), ulps=4)
        for name in ("exp", "log1p", "cos", "arctan")
    ],
    F("add", "f32[n,3]; f32[n,3]", jnp.add, exact=True, least=0),
    F("mul_sub", "f32[n]; f32[n]; f32[n]", lambda x, y, z: x * y - z),
    F("divide", "f32[n]; f32[n] positive", jnp.divide),
    F("divide_f64", "f64[n]; f64[n] positive", jnp.divide),
    F("power", "f32[n] positive; f32[n]", jnp.power),
    F("integer_pow", "f32[n]", lambda x: (x**2, x**3, x**-2 * 0 + x**7)),
    F("atan2", "f32[n] positive; f32[n]", jnp.arctan2),
    F("hypot", "f32[n]; f32[n] positive", jnp.hypot),
    F("logaddexp", "f32[n]; f32[n]", jnp.logaddexp),
    F("logaddexp2", "f32[n]; f32[n]", jnp.logaddexp2),
    F("copysign", "f32[n]; f32[n]", jnp.copysign, exact=True),
    F("nextafter", "f32[n]; f32[n]", jnp.nextafter, exact=True),
    F("maximum", "f32[n]; f32[n]", lambda x, y: (jnp.maximum(x, y), jnp.minimum(x, y)), exact=True),
    F("clip", "f32[n,2]", lambda x: jnp.clip(x, -0.5, 0.75), exact=True),
    F("clamp_arrays", "f32[n]; f32[n]", lambda x, y: lax.clamp(-jnp.abs(y), x, jnp.abs(y)), exact=True),
    F("rounding", "f32[n]", lambda x: (jnp.floor(x), jnp.ceil(x), jnp.trunc(x), jnp.round(x)), exact=True),
    F("round_away", "f64[n]", lambda x: lax.round(x * 4, lax.RoundingMethod.AWAY_FROM_ZERO), exact=True),
    F("rint_bf16", "bf16[n]", lambda x: jnp.rint(x), exact=True),
    F("sign_abs", "f32[n]", lambda x: (jnp.sign(x), jnp.abs(x), -x), exact=True),
    F("fmod", "f32[n]; f32[n] positive", jnp.fmod),
    F(
        "by_constants_s64",
        "s64[n]",
        lambda x: (x * 6364136223846793005 // 7, lax.rem(x * x, 1000003), x % 301),
        exact=True,
    ),
    F(
        "by_constants_u64",
        "u64[n] bits",
        lambda x: (x // 10, x % (2**32 + 15), lax.div(x, x.dtype.type(2**63 + 9))),
        exact=True,
    ),
    F(
        "counted_truth",
        "pred[n,3]; pred[n,3]; u8[n,3] bits",
        lambda p, q, k: (_counted(p, q) > 2, (k.astype("int32") - p) < 7),
        exact=True,
    ),
    F("fractions_in_turn", "f32[n] unit; f64[n] unit", lambda x, y: (_fractions(x), _fractions(y)), ulps=64),
    F(
        "from_truth",
        "pred[n,3]; f32[n]; f64[n]",
        lambda p, x, y: (p.astype(x.dtype) * x[:, None], p.astype(y.dtype).sum(1), p.astype("int32") - 3),
    ),
    F("remainder_int", "s32[n]; s32[n] nonzero", lambda x, y: (x % y, lax.rem(x, y), x // y), exact=True),
    F("divmod_u8", "u8[n] bits; u8[n] nonzero", jnp.divmod, exact=True),
    F("compare", "f32[n]; f32[n]", lambda x, y: (x < y, x >= y, x == y, x != y), exact=True, least=0),
    F("compare_complex", "c64[n]; c64[n]", lambda x, y: (x == y, x != x), exact=True),
    F("compare_ints", "s8[n]; s8[n]", lambda x, y: (x < y) | (x > y * 2), exact=True),
    F("where", "pred[n]; f32[n]; f32[n]", jnp.where, exact=True, least=0),
    F("where_scalar", "pred[]; f32[n,n]", lambda p, x: jnp.where(p, x, x.T), exact=True, most=37),
    F("where_tower", "f32[n]; f32[n]", lambda x, y: _tower(x, y, 12)),
    F(
        "select_n",
        "s32[n] index; f32[n]; f32[n]; f32[n]",
        lambda k, *x: lax.select_n(jnp.clip(k, 0, 2), *x),
        exact=True,
    ),
    F("piecewise", "f32[n]", lambda x: jnp.piecewise(x, [x < -0.5, x > 0.5], [jnp.sin, lambda v: v * v, 0.25])),
    F("heaviside", "f32[n]", lambda x: jnp.heaviside(x, 0.5), exact=True),
    F("nan_to_num", "f32[n]", lambda x: jnp.nan_to_num(x / jnp.where(x > 0.8, 0.0, 1.0), posinf=3.0)),
    F("is_finite", "f32[n]", lambda x: (jnp.isfinite(x), jnp.isnan(x * 0), jnp.isinf(1 / (x * 0))), exact=True),
    F("frexp", "f32[n]", jnp.frexp, exact=True),
    F("ldexp", "f32[n]; s32[n] index", jnp.ldexp, exact=True),
    F("modf", "f32[n]", jnp.modf, exact=True),
    F("reduce_precision", "f32[n]", lambda x: lax.reduce_precision(x, 5, 7), exact=True),
    F("polynomial", "f32[n] small", lambda x: jnp.polyval(jnp.array([1.0, -2, 3, 0.5, -1], jnp.float32), x)),
    F("chebyshev", "f32[n] small", lambda x: _chebyshev(x, 8)),
    F("horner_f64", "f64[n] small", lambda x: jnp.polyval(jnp.arange(1.0, 9, dtype=jnp.float64), x)),
    F("long_chain", "f32[n]", lambda x: _chain(x, 25)),
    F("softmax_by_hand", "f32[n,5]", lambda x: jnp.exp(x - x.max(1, keepdims=True)) / jnp.exp(x).sum(1, keepdims=True)),
    F("smoothstep", "f32[n] unit", lambda x: x * x * (3 - 2 * x)),
    F("grad_tanh_exp", "f32[n]", jax.grad(lambda x: jnp.sum(jnp.tanh(jnp.exp(-x * x))))),
    F("jvp_sin_log", "f32[n] positive; f32[n]", lambda x, t: jax.jvp(lambda v: jnp.sin(jnp.log(v) * v), (x,), (t,))),
    F("hessian_diag", "f32[n]", lambda x: jax.vmap(jax.grad(jax.grad(lambda v: jnp.tanh(v) * v)))(x)),
    F("scalar_math", "f32[]", lambda x: (jnp.exp(jnp.sin(x)), x * 2 + 1)),
]


def _tower(x, y, levels):
    for k in range(levels):
        x = jnp.where(x > 0.3 * k - 1.5, x * 0.9 + 0.01 * y, y * 0.8 - 0.02 * x)
    return x


def _chebyshev(x, degree):
    a, b = jnp.ones_like(x), x
    for _ in range(degree):
        a, b = b, 2 * x * b - a
    return b


def _chain(x, length):
    for k in range(length):
        x = jnp.tanh(x + 0.1 * k) * 1.01 if k % 3 else jnp.sin(x) + 0.5
    return x
