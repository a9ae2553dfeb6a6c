"""Networks as users of JAX's libraries write them: optimisers, layers, attention, mixtures of experts, decoders."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax import random as jr

from tests.interplay.fragment import Fragment as F

FRAGMENTS = [
    # optimisers
    F("adamw_tree", "f32[n,3]; f32[3]; f32[n,3]; f32[3]", lambda w, b, gw, gb: jax.tree.map(_adamw, {"w": w, "b": b}, {"w": gw, "b": gb})),
    F("adafactor", "f32[n,5]", lambda g: g * lax.rsqrt((r := (g * g + 1e-3).mean(1))[:, None] * (g * g + 1e-3).mean(0) / r.mean())),
    F("shampoo_root", "f32[4,n]", lambda g: jnp.linalg.matrix_power(_newton_schulz(g), 1), most=33, ulps=4096),
    F("muon", "f32[n,4]", lambda g: _newton_schulz(g / (jnp.linalg.norm(g) + 1)), most=33, ulps=4096),
    F("lbfgs_direction", "f32[4,n]; f32[4,n]; f32[n]", lambda s, y, g: _two_loops(s, y + s * 3, g), most=33, ulps=4096),
    F("global_norm_clip", "f32[n,2]; f32[n]", lambda a, b: jax.tree.map(lambda x: x * jnp.minimum(1, 1 / jnp.sqrt(jnp.sum(a * a) + jnp.sum(b * b))), [a, b])),
    F("line_search", "f32[n]", lambda x: _backtrack(lambda v: jnp.sum((v - 0.3) ** 2), x)),
    F("apply_if_finite", "f32[n]; f32[n]", lambda p, g: lax.cond(jnp.all(jnp.isfinite(g)), lambda: (p - 0.1 * g, jnp.int32(0)), lambda: (p, jnp.int32(1)))),
    F("multi_steps", "f32[5,n]", lambda g: lax.scan(lambda c, v: (lax.cond(c[1] == 1, lambda: (c[0] * 0, jnp.int32(0)), lambda: (c[0] + v, c[1] + 1)), c[0]), (g[0] * 0, jnp.int32(0)), g)),
    F("warmup_cosine", "s32[n]", lambda k: jnp.where(k < 5, k / 5, 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip((k - 5) / 20, 0, 1))))),
    # layers
    F("conv_bn_relu_pool", "f32[2,n+3,6,3]; f32[3,3,3,4]", lambda x, w: _conv_block(x, w), most=24, ulps=256),
    F("squeeze_excite", "f32[2,n,4]; f32[4,2]; f32[2,4]", lambda x, a, b: x * jax.nn.sigmoid(jax.nn.relu(x.mean(1) @ a) @ b)[:, None]),
    F("weight_norm", "f32[n,4]; f32[4]", lambda v, g: g * v / jnp.linalg.norm(v, axis=0)),
    F("spectral_norm", "f32[n,3]; f32[3]", lambda w, u: _spectral(w + jnp.eye(*w.shape) * 4, u + 2), ulps=512),
    F("grouped_query_attention", "f32[n,4,2]; f32[n,2,2]; f32[n,2,2]", lambda q, k, v: _grouped_attention(q, k, v), most=33, ulps=256),
    F("sliding_window_attention", "f32[n,4]; f32[n,4]; f32[n,4]", lambda q, k, v: _windowed(q, k, v, 3), most=33, ulps=256),
    F("linear_attention", "f32[n,3]; f32[n,3]; f32[n,2]", lambda q, k, v: lax.scan(lambda s, r: ((s := s + jnp.outer(r[1], r[2])), r[0] @ s), jnp.zeros((3, 2)), (jax.nn.elu(q) + 1, jax.nn.elu(k) + 1, v))[1], ulps=256),
    F("flash_blocks", "f32[4,n]; f32[6,n]; f32[6,n]", lambda q, k, v: _flash(q, k, v), most=33, ulps=256),
    F("rope_half_bf16", "bf16[n,2,8]", lambda x: _rope(x), ulps=8),
    F("alibi_bias", "f32[2,n,n]", lambda s: jax.nn.softmax(s - jnp.array([0.5, 0.25])[:, None, None] * jnp.abs(jnp.arange(s.shape[1])[:, None] - jnp.arange(s.shape[1]))), most=33),
    F("moe_top2", "f32[n,4]; f32[4,3]; f32[3,4,4]", lambda x, g, w: _top2(x, g, w), most=33, ulps=256),
    F("moe_capacity", "s32[n] index; f32[n,2]", lambda e, x: _capacity(e, x)),
    F("selective_scan", "f32[n,2]; f32[2,3] unit; f32[n,3]; f32[n,3]", lambda u, a, b, c: _selective(u, a, b, c), most=17, ulps=256),
    F("vq_codebook", "f32[n,3]; f32[5,3] distinct", lambda x, c: (lambda k: (c[k], x + lax.stop_gradient(c[k] - x)))(jnp.argmin(jnp.sum((x[:, None] - c) ** 2, -1), 1)), ulps=256),
    F("label_smoothing", "f32[n,4]; s32[n] index", lambda x, k: -jnp.sum((jax.nn.one_hot(k, 4) * 0.9 + 0.025) * jax.nn.log_softmax(x), -1)),
    F("ctc_loss", "f32[n+4,4]; s32[3] nonzero", lambda x, k: _ctc(jax.nn.log_softmax(x), k % 3 + 1), most=17, ulps=512),
    F("sampled_decode", "u32[2] key; f32[n+1,n+1]", lambda k, w: lax.scan(lambda c, r: (((t := jr.categorical(r, w[c] * 20)), t)), 0, jr.split(jr.wrap_key_data(k), 4))[1], most=17),
    F("top_p_filter", "f32[n] distinct", lambda x: _nucleus(x, 0.7)),
    F("beam_search", "f32[5,3,n] distinct", lambda x: _beam(x), least=3, most=17),
    F("speculative_accept", "f32[n] unit; f32[n] unit; f32[n] unit", lambda p, q, u: jnp.cumprod((u < p / q).astype(jnp.int32)).sum(), exact=False),
]  # fmt: skip


def _adamw(p, g):
    m, v = 0.1 * g, 0.001 * g * g
    return p - 0.01 * (m / 0.1 / (jnp.sqrt(v / 0.001) + 1e-3) + 0.1 * p)


def _newton_schulz(g):
    x = g / (jnp.linalg.norm(g) + 0.5)
    for _ in range(3):
        a = x @ x.T
        x = 1.5 * x - 0.5 * a @ x
    return x @ x.T


def _two_loops(s, y, g):
    rho = 1 / (jnp.sum(s * y, 1) + 1)

    def back(q, r):
        alpha = r[2] * jnp.vdot(r[0], q)
        return q - alpha * r[1], alpha

    q, alphas = lax.scan(back, g, (s, y, rho), reverse=True)

    def forward(r, e):
        return r + e[0] * (e[3] - e[2] * jnp.vdot(e[1], r)), None

    return lax.scan(forward, q * 0.5, (s, y, rho, alphas))[0]


def _backtrack(f, x):
    value, slope = jax.value_and_grad(f)(x)
    norm = jnp.vdot(slope, slope)

    def worse(c):
        return (f(x - c[0] * slope) > value - 0.3 * c[0] * norm) & (c[1] < 6)

    return x - lax.while_loop(worse, lambda c: (c[0] * 0.7, c[1] + 1), (jnp.float32(0.9), 0))[0] * slope


def _conv_block(x, w):
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = jax.nn.relu((y - y.mean((0, 1, 2))) * lax.rsqrt(y.var((0, 1, 2)) + 0.1))
    return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def _spectral(w, u):
    for _ in range(2):
        v = w @ u
        v = v / jnp.linalg.norm(v)
        u = w.T @ v
        u = u / jnp.linalg.norm(u)
    return w / (v @ w @ u), u


def _grouped_attention(q, k, v):
    q = q.reshape(q.shape[0], 2, 2, -1)
    w = jax.nn.softmax(jnp.einsum("qgrd,kgd->grqk", q, k) / 2)
    return jnp.einsum("grqk,kgd->qgrd", w, v).reshape(q.shape[0], -1)


def _windowed(q, k, v, width):
    at = jnp.arange(q.shape[0])
    near = jnp.abs(at[:, None] - at[None]) < width
    return jax.nn.softmax(q @ k.T, where=near) @ v


def _flash(q, k, v):
    def block(c, kv):
        top, total, out = c
        s = q @ kv[0].T
        new = jnp.maximum(top, s.max(1))
        p = jnp.exp(s - new[:, None])
        scale = jnp.exp(top - new)
        return (new, total * scale + p.sum(1), out * scale[:, None] + p @ kv[1]), None

    start = (jnp.full(q.shape[0], -jnp.inf, q.dtype), jnp.zeros(q.shape[0], q.dtype), jnp.zeros_like(q))
    k, v = k * 0.2, v
    _, total, out = lax.scan(block, start, (k.reshape(3, 2, -1), v.reshape(3, 2, -1)))[0]
    return out / total[:, None]


def _rope(x):
    a = jnp.arange(x.shape[0], dtype=jnp.float32)[:, None, None] / 10 ** (jnp.arange(4, dtype=jnp.float32) / 2)
    c, s = jnp.cos(a).astype(x.dtype), jnp.sin(a).astype(x.dtype)
    u, v = jnp.split(x, 2, -1)
    return jnp.concatenate([u * c - v * s, v * c + u * s], -1)


def _top2(x, g, w):
    scores, chosen = lax.top_k(x @ g, 2)
    return jnp.einsum("ne,nef->nf", jax.nn.softmax(scores), jnp.einsum("nd,nedf->nef", x, w[chosen]))


def _capacity(e, x):
    hot = jax.nn.one_hot(e, 3, dtype=jnp.int32)
    place = (jnp.cumsum(hot, 0) - 1)[jnp.arange(e.size), e]
    return jnp.zeros((3, 4, 2), x.dtype).at[e, place].set(x, mode="drop")


def _selective(u, a, b, c):
    delta = jax.nn.softplus(u)
    keep, add = jnp.exp(-delta[..., None] * a), (delta * u)[..., None] * b[:, None]
    h = lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (keep, add))[1]
    return jnp.einsum("nds,ns->nd", h, c)


def _ctc(x, labels):
    path = jnp.zeros(7, jnp.int32).at[1::2].set(labels)
    skip = (path != 0) & (path != jnp.roll(path, 2))

    def step(a, r):
        b = jnp.concatenate([jnp.full(1, -1e5), a[:-1]])
        c = jnp.where(skip, jnp.concatenate([jnp.full(2, -1e5), a[:-2]]), -1e5)
        return jnp.logaddexp(jnp.logaddexp(a, b), c) + r[path], None

    last = lax.scan(step, jnp.full(7, -1e5).at[0].set(x[0, 0]).at[1].set(x[0, path[1]]), x[1:])[0]
    return -jnp.logaddexp(last[-1], last[-2])


def _nucleus(x, p):
    order = jnp.argsort(-x)
    total = jnp.cumsum(jax.nn.softmax(x[order]))
    kept = (total - jax.nn.softmax(x[order])) < p
    return jnp.where(jnp.zeros(x.size, bool).at[order].set(kept), x, -9.0)


def _beam(x):
    def step(c, row):
        scores, tokens = c
        best, flat = lax.top_k((scores[:, None] + row).reshape(-1), 3)
        return (best, tokens[flat // row.shape[1]] * 10 + flat % row.shape[1]), flat

    return lax.scan(step, (jnp.array([0, 0.01, 0.02]), jnp.zeros(3, jnp.int32)), x)
