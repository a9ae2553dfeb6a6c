"""Layers, attention, losses, optimisers, and numerical methods as users write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from tests.interplay.fragment import Fragment as F

_ACTIVATIONS = (
    "relu", "relu6", "sigmoid", "softplus", "soft_sign", "silu", "log_sigmoid", "elu", "selu", "celu", "gelu",
    "leaky_relu", "hard_tanh", "hard_swish", "mish", "squareplus", "standardize",
)  # fmt: skip


def _norm(x, g, b):
    m = x.mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-3) * g + b


def _attention(q, k, v, mask=None):
    w = jnp.einsum("...qd,...kd->...qk", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        w = jnp.where(mask, w, -1e9)
    return jax.nn.softmax(w) @ v


def _causal(n):
    return jnp.tril(jnp.ones((n, n), bool))


def _mlp(x, w, b, u):
    return jnp.tanh(x @ w + b) @ u


def _slope(function):
    return jax.grad(lambda x: jnp.sum(function(x)))


FRAGMENTS = [
    *[F(f"nn_{name}", "f32[n,3]", getattr(jax.nn, name)) for name in _ACTIVATIONS if hasattr(jax.nn, name)],
    *[
        F(f"nn_{name}_grad", "f32[n]", _slope(getattr(jax.nn, name)))
        for name in ("gelu", "silu", "elu", "softplus", "selu")
    ],
    F("glu", "f32[n,6]", jax.nn.glu),
    F("gelu_exact_bf16", "bf16[n]", lambda x: jax.nn.gelu(x, approximate=False), ulps=8),
    F("layer_norm", "f32[n,8]; f32[8]; f32[8]", _norm),
    F(
        "layer_norm_grad",
        "f32[n,8]; f32[8]; f32[8]",
        jax.grad(lambda x, g, b: jnp.sum(jnp.sin(_norm(x, g, b))), (0, 1, 2)),
        ulps=256,
    ),
    F("rms_norm", "f32[n,8]; f32[8]", lambda x, g: x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-3) * g),
    F(
        "rms_norm_bf16",
        "bf16[n,8]; bf16[8]",
        lambda x, g: (x * lax.rsqrt((x.astype("float32") ** 2).mean(-1, keepdims=True) + 1e-3).astype(x.dtype)) * g,
        ulps=8,
    ),
    F("batch_norm", "f32[n,4]", lambda x: (x - x.mean(0)) * lax.rsqrt(x.var(0) + 1e-1)),
    F("group_norm", "f32[n,2,6]", lambda x: (x - x.mean(2, keepdims=True)) / jnp.sqrt(x.var(2, keepdims=True) + 0.1)),
    F("attention", "f32[n,8]; f32[n,8]; f32[n,8]", _attention, most=64),
    F(
        "attention_causal",
        "f32[2,n,4]; f32[2,n,4]; f32[2,n,4]",
        lambda q, k, v: _attention(q, k, v, _causal(q.shape[1])),
        most=37,
    ),
    F(
        "attention_grad",
        "f32[n,4]; f32[n,4]; f32[n,4]",
        jax.grad(lambda q, k, v: jnp.sum(_attention(q, k, v) ** 2), (0, 1, 2)),
        most=33,
    ),
    F("attention_heads", "f32[n,8]; f32[8,24]", lambda x, w: _heads(x, w, 2), most=37),
    F(
        "attention_library",
        "f32[1,n,2,4]; f32[1,n,2,4]; f32[1,n,2,4]",
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True),
        most=37,
    ),
    F("attention_bf16", "bf16[n,8]; bf16[n,8]; bf16[n,8]", _attention, ulps=32, most=33),
    F("kv_cache", "f32[n,4]; f32[n,4]; f32[4]; s32[] index", lambda k, v, x, i: _cached(k, v, x, i), most=64),
    F("rotary", "f32[n,8]", lambda x: _rotary(x)),
    F(
        "transformer_block",
        "f32[n,8]; f32[8,24]; f32[8,8]",
        lambda x, w, u: x + jnp.tanh(_heads(_norm(x, 1.0, 0.0), w, 2) @ u * 0.3),
        most=33,
    ),
    F("mlp", "f32[n,4]; f32[4,8]; f32[8]; f32[8,2]", _mlp),
    F(
        "mlp_grad",
        "f32[n,4]; f32[4,8]; f32[8]; f32[8,2]",
        jax.grad(lambda *a: jnp.sum(_mlp(*a) ** 2), (1, 2, 3)),
        ulps=128,
    ),
    F(
        "mlp_train_step",
        "f32[n,4]; f32[4,8]; f32[8]; f32[8,2]",
        lambda x, *p: [a - 0.01 * g for a, g in zip(p, jax.grad(lambda q: jnp.mean(_mlp(x, *q) ** 2))(p), strict=True)],
    ),
    F("mlp_hessian", "f32[3,4]; f32[4]", lambda x, w: jax.hessian(lambda v: jnp.sum(jnp.tanh(x @ v) ** 2))(w)),
    F("jacobian", "f32[n]", jax.jacfwd(lambda x: jnp.sin(x) * jnp.sum(x)), most=33),
    F("jacobian_reverse", "f32[n]", jax.jacrev(lambda x: jnp.tanh(jnp.cumsum(x))), most=33),
    F("hvp", "f32[n]; f32[n]", lambda x, v: jax.jvp(jax.grad(lambda a: jnp.sum(jnp.sin(a) * a * a)), (x,), (v,))[1]),
    F(
        "per_example_grad",
        "f32[n,3]; f32[3]",
        lambda x, w: jax.vmap(jax.grad(lambda p, r: jnp.tanh(r @ p)), (None, 0))(w, x),
    ),
    F(
        "cross_entropy",
        "f32[n,5]; s32[n] index",
        lambda x, k: -jnp.mean(jax.nn.log_softmax(x)[jnp.arange(x.shape[0]), k]),
    ),
    F(
        "cross_entropy_grad",
        "f32[n,5]; s32[n] index",
        jax.grad(lambda x, k: -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), k[:, None], 1))),
    ),
    F(
        "mse_huber",
        "f32[n]; f32[n]",
        lambda x, y: (
            jnp.mean((x - y) ** 2),
            jnp.mean(jnp.where(jnp.abs(x - y) < 1, 0.5 * (x - y) ** 2, jnp.abs(x - y) - 0.5)),
        ),
    ),
    F("binary_loss_grad", "f32[n]; pred[n]", jax.grad(lambda x, y: jnp.sum(jnp.logaddexp(0, jnp.where(y, -x, x))))),
    F("focal_loss", "f32[n]", lambda x: jnp.sum((1 - jax.nn.sigmoid(x)) ** 2 * jax.nn.log_sigmoid(x))),
    F("contrastive", "f32[n,4]; f32[n,4]", lambda x, y: jnp.diagonal(jax.nn.log_softmax(x @ y.T)), most=37),
    F(
        "ctc_like",
        "f32[n,5]",
        lambda x: lax.scan(lambda a, r: (jnp.logaddexp(a, jnp.roll(a, 1)) + r, a[0]), jnp.zeros(5, x.dtype), x),
    ),
    F("sgd_momentum", "f32[n]; f32[n]; f32[n]", lambda p, m, g: (p - 0.1 * (0.9 * m + g), 0.9 * m + g)),
    F("adam", "f32[n]; f32[n]; f32[n] positive; f32[n]", lambda p, m, v, g: _adam(p, m, v, g)),
    F(
        "adam_loop",
        "f32[n]",
        lambda p: lax.fori_loop(0, 4, lambda i, c: _adam(*c, jnp.tanh(c[0])), (p, p * 0, p * p + 0.1)),
    ),
    F("lion", "f32[n]; f32[n]", lambda p, g: p - 0.01 * jnp.sign(g), exact=False),
    F(
        "clip_norm",
        "f32[n]; f32[3]",
        lambda a, b: [x / jnp.maximum(jnp.sqrt(jnp.sum(a * a) + jnp.sum(b * b)), 1) for x in (a, b)],
    ),
    F("ema", "f32[n]; f32[n]", lambda a, b: 0.99 * a + 0.01 * b),
    F("schedule", "s32[] index", lambda k: 0.5 * (1 + jnp.cos(jnp.pi * k.astype("float32") / 10))),
    F("lstm", "f32[n,3]; f32[7,16]", lambda x, w: _lstm(x, w), most=33),
    F("lstm_grad", "f32[n,3]; f32[7,16]", jax.grad(lambda x, w: jnp.sum(_lstm(x, w)[1]), 1), ulps=256, most=17),
    F(
        "mixture_of_experts",
        "f32[n,4]; f32[4,3]; f32[3,4,4]",
        lambda x, g, w: jnp.einsum("nd,ne,edf->nf", x, jax.nn.softmax(x @ g), w),
    ),
    F("expert_dispatch", "f32[n,4]; s32[n] index; f32[3,4,2]", lambda x, k, w: jnp.einsum("nd,ndf->nf", x, w[k])),
    F(
        "gcn_layer",
        "f32[n,3]; s32[2,9] index",
        lambda x, e: jax.ops.segment_sum(x[jnp.minimum(e[0], x.shape[0] - 1)], e[1], 4),
    ),
    F("ode_euler", "f32[n]", lambda x: lax.fori_loop(0, 6, lambda i, v: v + 0.05 * jnp.sin(v), x)),
    F("ode_rk4", "f32[n]", lambda x: lax.scan(lambda v, _: (_rk4(v), v.sum()), x, None, length=4)),
    F("leapfrog", "f32[n]; f32[n]", lambda q, p: lax.fori_loop(0, 5, lambda i, c: _leapfrog(*c), (q, p))),
    F(
        "heat_equation",
        "f32[n+2]",
        lambda u: lax.fori_loop(0, 5, lambda i, v: v.at[1:-1].add(0.2 * (v[2:] - 2 * v[1:-1] + v[:-2])), u),
    ),
    F(
        "jacobi_solver",
        "f32[n,n]; f32[n]",
        lambda a, b: lax.fori_loop(0, 4, lambda i, x: (b - (a / (4 * a.shape[0])) @ x) / 2, b),
        most=37,
    ),
    F(
        "fixed_point",
        "f32[n]",
        lambda x: lax.while_loop(lambda c: c[1] < 6, lambda c: (jnp.cos(c[0]) * 0.5, c[1] + 1), (x, 0))[0],
    ),
    F("interp", "f32[n]; f32[6]", lambda x, y: jnp.interp(x, jnp.linspace(-3, 3, 6, dtype=x.dtype), y), ulps=256),
    F(
        "map_coordinates",
        "f32[n+1,4]; f32[2,5] unit",
        lambda x, c: jax.scipy.ndimage.map_coordinates(x, list(c * 2), order=1),
        most=37,
        ulps=256,
    ),
    F("polyfit_design", "f32[n]", lambda x: jnp.vander(jnp.tanh(x), 4)),
    F("poly_multiply", "f32[n]; f32[3]", jnp.polymul, most=37),
    F(
        "roots_companion",
        "f32[n]",
        lambda x: jnp.diag(jnp.ones(3, x.dtype), -1) + jnp.zeros((4, 4), x.dtype).at[:, -1].set(jnp.resize(x, 4)),
    ),
    F("kmeans_step", "f32[n,2]; f32[3,2]", lambda x, c: jnp.min(jnp.sum((x[:, None] - c) ** 2, -1), 1)),
    F(
        "viterbi",
        "f32[n,3]; f32[3,3]",
        lambda e, t: lax.scan(lambda a, r: ((a[:, None] + t).max(0) + r,) * 2, e[0], e)[0],
        ulps=128,
    ),
    F(
        "hmm_forward",
        "f32[n,3]; f32[3,3]",
        lambda e, t: lax.scan(lambda a, r: (jax.nn.logsumexp(a[:, None] + t, 0) + r, None), e[0], e)[0],
        ulps=128,
    ),
    F(
        "beam_step",
        "f32[n] distinct; f32[4] distinct",
        lambda a, b: lax.top_k((a[:, None] + 100 * b).reshape(-1), 3)[0],
        most=37,
    ),
    F(
        "sinkhorn",
        "f32[n,5]",
        lambda c: lax.fori_loop(
            0,
            3,
            lambda i, v: (
                v - jax.nn.logsumexp(v, i % 2, keepdims=True)
                if isinstance(i, int)
                else v - jax.nn.logsumexp(v, 1, keepdims=True)
            ),
            c,
        ),
    ),
    F("soft_sort", "f32[n] distinct", lambda x: jax.nn.softmax(-jnp.abs(jnp.sort(x)[:, None] - x[None])) @ x, most=33),
    F(
        "state_space",
        "f32[n,3]; f32[3] unit",
        lambda u, a: lax.associative_scan(
            lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (jnp.broadcast_to(a, u.shape), u)
        )[1],
        most=17,
    ),
    F("fourier_features", "f32[n,2]; f32[2,4]", lambda x, b: jnp.concatenate([jnp.sin(x @ b), jnp.cos(x @ b)], -1)),
    F("gp_posterior", "f32[n]", lambda x: _gp(x), most=17),
    F(
        "vae_loss",
        "f32[n,3]; f32[n,3]",
        lambda m, s: (-0.5 * jnp.sum(1 + s - m * m - jnp.exp(s)), m + jnp.exp(0.5 * s)),
    ),
]


def _heads(x, w, h):
    q, k, v = jnp.split(x @ w, 3, -1)
    parts = [a.reshape(a.shape[0], h, -1).swapaxes(0, 1) for a in (q, k, v)]
    return _attention(*parts).swapaxes(0, 1).reshape(x.shape)


def _cached(k, v, x, i):
    k, v = (lax.dynamic_update_slice(a, x[None], (i, i * 0)) for a in (k, v))
    w = jnp.where(jnp.arange(k.shape[0]) <= i, k @ x, -1e9)
    return k, v, jax.nn.softmax(w) @ v


def _rotary(x):
    angle = jnp.arange(x.shape[0], dtype=x.dtype)[:, None] / 10 ** jnp.arange(4, dtype=x.dtype)
    a, b = x[:, :4], x[:, 4:]
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)


def _adam(p, m, v, g):
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return p - 0.05 * m / (jnp.sqrt(v) + 0.01), m, v


def _lstm(x, w):
    def step(c, a):
        h, s = c
        i, f, g, o = jnp.split(jnp.concatenate([a, h]) @ w, 4)
        s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(s)
        return (h, s), h

    return lax.scan(step, (jnp.zeros(4, x.dtype), jnp.zeros(4, x.dtype)), x)


def _rk4(x, h=0.1):
    def f(v):
        return jnp.cos(v) - 0.3 * v

    a = f(x)
    b = f(x + h / 2 * a)
    c = f(x + h / 2 * b)
    return x + h / 6 * (a + 2 * b + 2 * c + f(x + h * c))


def _leapfrog(q, p, h=0.1):
    p = p - h / 2 * q
    q = q + h * p
    return q, p - h / 2 * q


def _gp(x):
    k = jnp.exp(-0.5 * (x[:, None] - x[None]) ** 2) + jnp.eye(x.size, dtype=x.dtype)
    l = jnp.linalg.cholesky(k)  # noqa: E741
    a = jax.scipy.linalg.cho_solve((l, True), jnp.sin(x))
    return k @ a, jnp.sum(jnp.log(jnp.diagonal(l)))
