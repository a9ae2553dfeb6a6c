"""Control flow: while, fori, scan in both directions, cond, switch, nested, over tuples, with early ends."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from tests.interplay.fragment import Fragment as F

FRAGMENTS = [
    F(
        "while_count",
        "f32[n]",
        lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 0.9 + 0.1), (0, x)),
    ),
    F(
        "while_value",
        "s32[]",
        lambda k: lax.while_loop(lambda v: v < 1000, lambda v: v * 2 + 1, jnp.abs(k)),
        exact=True,
    ),
    F(
        "while_until_small",
        "f32[n] positive",
        lambda x: lax.while_loop(lambda v: jnp.sum(v) > 0.37, lambda v: v * 0.5, x),
    ),
    F("while_never", "f32[n]", lambda x: lax.while_loop(lambda v: jnp.all(v > 1e9), lambda v: v * 2, x), exact=True),
    F("fori", "f32[n]", lambda x: lax.fori_loop(0, 7, lambda i, v: v + i * 0.1, x)),
    F("fori_dynamic", "s32[] index; f32[n]", lambda k, x: lax.fori_loop(0, k, lambda i, v: v * 0.5 + i, x)),
    F(
        "fori_update",
        "f32[n]",
        lambda x: lax.fori_loop(0, 5, lambda i, v: v.at[i % v.shape[0]].add(1.5), x),
        exact=True,
    ),
    F("fori_swap", "f32[n]; f32[n]", lambda x, y: lax.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (x, y)), exact=True),
    F(
        "fori_rotate",
        "s32[3,n]",
        lambda x: lax.fori_loop(0, 4, lambda i, c: (c[1], c[2], c[0]), (x[0], x[1], x[2])),
        exact=True,
    ),
    F(
        "fori_fibonacci",
        "s32[n]",
        lambda x: lax.fori_loop(0, 9, lambda i, c: (c[1], c[0] + c[1]), (x, x + 1)),
        exact=True,
    ),
    F(
        "fori_matmul",
        "f32[n,n]",
        lambda a: lax.fori_loop(0, 3, lambda i, v: jnp.tanh(v @ a), jnp.eye(a.shape[0], dtype=a.dtype)),
        most=37,
    ),
    F(
        "fori_nested",
        "f32[n]",
        lambda x: lax.fori_loop(0, 3, lambda i, v: lax.fori_loop(0, i, lambda j, w: w * 0.9 + j, v), x),
    ),
    F(
        "fori_gather",
        "f32[n]",
        lambda x: lax.fori_loop(0, x.shape[0], lambda i, s: s * 0.5 + x[i], jnp.float32(0)),
        most=37,
    ),
    F(
        "fori_slice_write",
        "f32[n,3]",
        lambda x: lax.fori_loop(
            0,
            x.shape[0],
            lambda i, v: lax.dynamic_update_index_in_dim(v, x[i] * 2, x.shape[0] - 1 - i, 0),
            jnp.zeros_like(x),
        ),
        exact=True,
        most=37,
    ),
    F("fori_down", "s32[n]", lambda x: lax.fori_loop(-3, 4, lambda i, v: v + i * i, x), exact=True),
    F(
        "fori_sort_step",
        "f32[n] distinct",
        lambda x: lax.fori_loop(0, 3, lambda i, v: jnp.sort(v)[::-1], x),
        exact=True,
    ),
    F("scan_sum", "f32[n,3]", lambda x: lax.scan(lambda c, v: (c + v, c * 0.5), jnp.zeros(3, x.dtype), x)),
    F(
        "scan_reverse",
        "f32[n,2]",
        lambda x: lax.scan(lambda c, v: (c * 0.7 + v, c), jnp.ones(2, x.dtype), x, reverse=True),
    ),
    F("scan_ints", "s32[n]", lambda x: lax.scan(lambda c, v: (c * 3 + v, c ^ v), jnp.int32(1), x), exact=True),
    F("scan_no_input", "f32[n]", lambda x: lax.scan(lambda c, _: (jnp.sin(c), c.sum()), x, None, length=5)),
    F("scan_no_carry", "f32[n,3]", lambda x: lax.scan(lambda c, v: (c, jnp.cumsum(v)), None, x)[1]),
    F(
        "scan_pair",
        "f32[n]; s32[n]",
        lambda x, k: lax.scan(
            lambda c, v: ((c[0] + v[0], c[1] | v[1]), v[0] * v[1]), (jnp.float32(0), jnp.int32(0)), (x, k)
        ),
    ),
    F("scan_unroll", "f32[n,2]", lambda x: lax.scan(lambda c, v: (c * 0.9 + v, c), jnp.zeros(2, x.dtype), x, unroll=3)),
    F(
        "scan_nested",
        "f32[n,4]",
        lambda x: lax.scan(lambda c, r: lax.scan(lambda d, v: (d * 0.5 + v, d), c, r), jnp.float32(0), x),
        most=33,
    ),
    F(
        "scan_grad",
        "f32[n,2]",
        jax.grad(lambda x: jnp.sum(lax.scan(lambda c, v: (jnp.tanh(c + v), c), jnp.zeros(2, x.dtype), x)[0])),
        most=37,
    ),
    F(
        "scan_cond",
        "f32[n]",
        lambda x: lax.scan(lambda c, v: (lax.cond(v > 0, lambda a: a + v, lambda a: a * 0.5, c), c), jnp.float32(0), x),
    ),
    F(
        "scan_stack",
        "f32[n]",
        lambda x: lax.scan(lambda c, v: (c.at[1].set(v), c), jnp.zeros(3, x.dtype), x),
        exact=True,
    ),
    F(
        "rnn",
        "f32[n,4]; f32[4,4]; f32[4]",
        lambda x, w, h: lax.scan(lambda s, v: (jnp.tanh(s @ w * 0.3 + v), s), h, x),
        most=37,
    ),
    F(
        "gru_cell",
        "f32[5,n]; f32[n,n]; f32[n,n]",
        lambda x, u, v: lax.scan(lambda h, a: (_gate(h, a, u, v), h[0]), x[0], x),
        most=33,
    ),
    F("cond", "pred[]; f32[n]", lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x)),
    F(
        "cond_tuple",
        "pred[]; f32[n]; s32[n]",
        lambda p, x, k: lax.cond(p, lambda a, b: (a * 2, b), lambda a, b: (-a, b + 1), x, k),
        exact=True,
    ),
    F("cond_identity", "pred[]; f32[n]", lambda p, x: lax.cond(p, lambda v: v, lambda v: v[::-1], x), exact=True),
    F("cond_value", "f32[n]", lambda x: lax.cond(jnp.sum(x) > 1e3, lambda v: v * 0, lambda v: v + 1, x), exact=True),
    F(
        "cond_in_cond",
        "pred[2]; f32[n]",
        lambda p, x: lax.cond(p[0], lambda v: lax.cond(p[1], jnp.exp, jnp.negative, v), jnp.tanh, x),
    ),
    F(
        "cond_constant",
        "pred[]; f32[n]",
        lambda p, x: lax.cond(p, lambda v: jnp.zeros_like(v), lambda v: jnp.ones_like(v) + v, x),
        exact=True,
    ),
    F(
        "switch",
        "s32[] index; f32[n]",
        lambda k, x: lax.switch(k, [jnp.sin, jnp.tanh, lambda v: v * v, lambda v: -v], x),
    ),
    F(
        "switch_clamped",
        "s32[] wild; s32[n]",
        lambda k, x: lax.switch(k, [lambda v: v, lambda v: v + 7, lambda v: v * 3], x),
        exact=True,
    ),
    F(
        "switch_shapes",
        "s32[] index; f32[n,n]",
        lambda k, x: lax.switch(k, [lambda v: v.T, lambda v: v[::-1], lambda v: v @ v], x),
        most=33,
    ),
    F(
        "cond_in_while",
        "f32[n]",
        lambda x: lax.fori_loop(0, 5, lambda i, v: lax.cond(i % 2 == 0, lambda w: w * 0.5, lambda w: w + 1, v), x),
    ),
    F(
        "while_in_cond",
        "pred[]; f32[n]",
        lambda p, x: lax.cond(p, lambda v: lax.fori_loop(0, 4, lambda i, w: w * 0.5 + i, v), lambda v: v, x),
    ),
    F(
        "while_two_counters",
        "f32[n]; s32[] index",
        lambda x, k: lax.while_loop(
            lambda c: (c[0] < 6) & (c[1] > -3), lambda c: (c[0] + 1, c[1] - k, c[2] * 0.8 + c[1]), (0, 3, x)
        ),
    ),
    F("while_invariant", "f32[n]; f32[n]", lambda x, y: lax.fori_loop(0, 4, lambda i, v: v + jnp.sin(y) * 0.1, x)),
    F(
        "while_dead_state",
        "f32[n]; f32[n]",
        lambda x, y: lax.fori_loop(0, 4, lambda i, c: (c[0] * 0.5, c[1] + 1), (x, y))[0],
    ),
    F(
        "newton_root",
        "f32[n] positive",
        lambda x: lax.fori_loop(0, 8, lambda i, r: 0.5 * (r + x / r), jnp.ones_like(x)),
    ),
    F(
        "bisect",
        "f32[n] positive",
        lambda x: lax.fori_loop(0, 12, lambda i, c: _bisect(c, x), (jnp.zeros_like(x), x + 1))[0],
    ),
    F(
        "power_iteration",
        "f32[n,n]",
        lambda a: lax.fori_loop(0, 5, lambda i, v: _unit(a @ a.T @ v + v), jnp.ones(a.shape[0], a.dtype)),
        most=33,
    ),
    F(
        "conjugate_gradient",
        "f32[n,n]; f32[n]",
        lambda a, b: _cg(a @ a.T / a.shape[0] + 4 * jnp.eye(a.shape[0], dtype=a.dtype), b, 4),
        most=33,
    ),
    F(
        "vmap_while",
        "s32[n] index",
        jax.vmap(lambda k: lax.while_loop(lambda v: v < 40, lambda v: v * 2 + 3, k)),
        exact=True,
    ),
    F("vmap_cond", "pred[n]; f32[n]", jax.vmap(lambda p, v: lax.cond(p, jnp.sin, jnp.cos, v))),
    F("vmap_scan", "f32[3,n]", jax.vmap(lambda r: lax.scan(lambda c, v: (c * 0.5 + v, c), jnp.float32(0), r)[1])),
    F("map", "f32[n,3]", lambda x: lax.map(lambda r: jnp.sort(r) * 2, x), exact=True),
    F("map_batched", "f32[n,3]", lambda x: lax.map(lambda r: r.sum() + r, x, batch_size=4)),
    F(
        "collatz",
        "s32[n] nonzero",
        lambda x: lax.fori_loop(0, 9, lambda i, v: jnp.where(v % 2 == 0, v // 2, 3 * v + 1), x),
        exact=True,
    ),
    F(
        "mandelbrot",
        "c64[n]",
        lambda c: lax.fori_loop(0, 4, lambda i, z: jnp.clip((z * z + c * 0.3).real, -2, 2) + 0.5j * z.imag, c * 0),
    ),
    F("checkpointed", "f32[n]", jax.grad(lambda x: jnp.sum(jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)))(x)))),
    F("barrier", "f32[n]; f32[n]", lambda x, y: lax.optimization_barrier((x + y, x - y)), exact=True),
    F("custom_jvp", "f32[n]", jax.grad(lambda x: jnp.sum(jax.nn.relu(x) ** 2))),
    F(
        "game_of_life",
        "pred[n,n]",
        lambda b: lax.fori_loop(0, 3, lambda i, v: _life(v), b),
        exact=True,
        least=3,
        most=33,
    ),
    F("levenshtein_row", "s32[n] index; s32[6] index", lambda a, b: _edit_distance(a, b), exact=True, most=33),
]


def _gate(h, a, u, v):
    z = jax.nn.sigmoid(h @ u * 0.2 + a)
    return z * h + (1 - z) * jnp.tanh(h @ v * 0.2)


def _bisect(c, x):
    low, high = c
    middle = (low + high) / 2
    return jnp.where(middle * middle < x, middle, low), jnp.where(middle * middle < x, high, middle)


def _unit(v):
    return v / jnp.sqrt(jnp.sum(v * v))


def _cg(a, b, steps):
    def step(_, c):
        x, r, p = c
        q = a @ p
        alpha = jnp.vdot(r, r) / (jnp.vdot(p, q) + 1e-6)
        s = r - alpha * q
        return x + alpha * p, s, s + p * jnp.vdot(s, s) / (jnp.vdot(r, r) + 1e-6)

    return lax.fori_loop(0, steps, step, (jnp.zeros_like(b), b, b))[0]


def _life(b):
    count = sum(jnp.roll(b.astype("int32"), (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - b
    return (count == 3) | (b & (count == 2))


def _edit_distance(a, b):
    def row(previous, v):
        def cell(left, k):
            best = jnp.minimum(jnp.minimum(previous[k + 1], left) + 1, previous[k] + (b[k] != v))
            return best, best

        first = previous[0] + 1
        _, cells = lax.scan(cell, first, jnp.arange(b.shape[0]))
        return jnp.concatenate([first[None], cells]).astype(previous.dtype), None

    return lax.scan(row, jnp.arange(b.shape[0] + 1, dtype=jnp.int32), a)[0]
