"""Short rows: reduced, normalised, changed in place step by step, joined of pieces, nested stacks, few vectors by many."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from tests.interplay.fragment import Fragment as F


def _steps(f, count=3):
    """The state of a loop."""
    return lambda x: lax.fori_loop(0, count, lambda i, v: f(v), x)


def _unit(x):
    return x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 0.1)


def _layer(x):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 0.1)


def _rotations(a):
    s, c, none, one = jnp.sin(a), jnp.cos(a), jnp.zeros_like(a), jnp.ones_like(a)
    rows = [c, -s, none], [s, c, none], [none, none, one]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def _blocks(a, b):
    return jnp.concatenate([jnp.concatenate([a, b], -1), jnp.concatenate([-b, a], -1)], -2)


def _leaves(x, levels=4):
    """The probabilities of a tree's leaves: those of a level's nodes and the rest to one, by turns."""
    found = jnp.ones((x.shape[0], 1), x.dtype)
    for k in range(levels):
        p = jax.nn.sigmoid(x[:, : 2**k] + k)
        found = jnp.stack([found * p, found * (1 - p)], -1).reshape(x.shape[0], -1)
    return found


def _halves(x, levels=4):
    """Rows twice as long with each level."""
    for k in range(levels):
        x = jnp.concatenate([x * (k + 1), 1 - x], -1)
    return x


FRAGMENTS = [
    # reduced
    F("rows_softmax", "f32[5,n]", lambda x: jax.nn.softmax(x)),
    F("rows_softmax_f64", "f64[5,n]", lambda x: jax.nn.softmax(x)),
    F("rows_logsumexp", "f32[7,n]; f64[3,n]", lambda x, y: (jax.nn.logsumexp(x, axis=1), jax.nn.logsumexp(y, axis=1)), least=1),
    F("rows_layer_norm", "f32[5,n]; f32[n]; f32[n]", lambda x, a, b: _layer(x) * a + b, ulps=256, least=1),
    F("rows_extrema", "f32[5,n] distinct; f64[3,n] distinct", lambda x, y: (x.max(1), x.min(1), y.max(1), jnp.ptp(y, 1)), exact=True, least=1),
    F("rows_extrema_corners", "f32[5,n] corners; f64[5,n] corners", lambda x, y: (x.max(1), y.min(1)), exact=True, least=1),
    F("rows_arg_extrema", "f32[5,n] distinct; s32[5,n] distinct", lambda x, k: (jnp.argmax(x, 1), jnp.argmin(k, 1)), exact=True, least=1),
    F("rows_sums_of_types", "f32[4,n]; s8[4,n]; f64[4,n]", lambda x, k, y: (x.sum(1), k.astype(jnp.int32).sum(1), (y * y).sum(1))),
    F("rows_product_and_bits", "f32[4,n] small; u32[4,n] bits", lambda x, k: (jnp.prod(1 + x / 8, 1), lax.reduce(k, jnp.uint32(0), lax.bitwise_xor, (1,)))),
    F("rows_bf16", "bf16[5,n]; f16[5,n]", lambda x, y: (jnp.tanh(x), jax.nn.softmax(y.astype(jnp.float32)).astype(jnp.float16)), ulps=8),
    F("rows_matvec_each", "f32[5,n,n]; f32[5,n]", lambda a, v: jnp.einsum("bij,bj->bi", a, v), most=33),
    # changed in place
    F("rows_state_unit", "f32[6,n]", _steps(_unit), ulps=256),
    F("rows_state_layer", "f32[6,n]", _steps(_layer), ulps=512, least=2),
    F("rows_state_tanh", "f32[6,n]", _steps(lambda v: jnp.tanh(v) * 1.01), ulps=128),
    F("rows_state_tanh_f64", "f64[6,n]", _steps(lambda v: jnp.tanh(v) + 0.1, 5), ulps=128),
    F("rows_state_softmax", "f32[6,n]", _steps(lambda v: jax.nn.softmax(v * 2)), ulps=128, least=1),
    F("rows_state_clip_roll", "f32[6,n]", _steps(lambda v: jnp.roll(jnp.clip(v * 1.5, -1, 1), 1, -1))),
    F("rows_state_and_sums", "f32[4,n]; f32[4]", lambda x, s: lax.fori_loop(0, 3, lambda i, c: (jnp.sin(c[0]) + c[1][:, None], c[0].sum(1) / 64), (x, s)), ulps=256),
    F("rows_state_masked", "f32[6,n]; pred[6]", lambda x, p: lax.fori_loop(0, 3, lambda i, v: jnp.where(p[:, None], jnp.exp(-v * v), v), x), ulps=128),
    # joined
    F("rows_rotations", "f32[n]; f32[n,3]", lambda a, x: jnp.einsum("nij,nj->ni", _rotations(a), x), ulps=128),
    F("rows_rotations_chain", "f32[n]; f32[n]", lambda a, b: jnp.einsum("nij,njk->nik", _rotations(a), _rotations(b)), ulps=128),
    F("rows_blocks", "f32[n,2,2]; f32[n,2,2]", _blocks, exact=True),
    F("rows_blocks_f64", "f64[3,n,2]; f64[3,n,2]", _blocks, exact=True),
    F("rows_many_columns", "f32[n]", lambda x: jnp.stack([x**k if k else jnp.ones_like(x) for k in range(11)], -1), ulps=64),
    F("rows_features", "f32[5,n]", lambda x: jnp.concatenate([x, jnp.sin(x), x[:, ::-1], jnp.zeros((5, 3))], 1)),
    F("rows_padded_rolled", "f32[4,n]", lambda x: jnp.pad(jnp.roll(x, 2, 1), ((0, 0), (1, 3))) * 2, exact=True),
    F("rows_windows_of_rows", "f32[3,n+2]", lambda x: jnp.stack([x[:, k : x.shape[1] - 2 + k] for k in range(3)], -1), exact=True),
    F("rows_leaves", "f32[n,8]", _leaves, ulps=64),
    F("rows_more_leaves", "f64[3,64]; f32[n,32]", lambda x, y: (_leaves(x, 7), _leaves(y, 6)), ulps=64),
    F("rows_halves", "f32[n,3]; s32[2,n]", lambda x, k: (_halves(x, 6), _halves(k, 3)), ulps=64),
    # few by many
    F("rows_few_vectors", "f32[5,n]; f32[n,41]", lambda a, b: a @ b),
    F("rows_few_vectors_turned", "f32[n,7]; f32[n,41]", lambda a, b: a.T @ b),
    F("rows_few_columns", "f64[41,n]; f64[n,4]", lambda a, b: a @ b),
    F("rows_vector_by_matrix", "f32[n]; f32[n,100]; f64[n,50]", lambda v, a, b: (v @ a, v.astype(b.dtype) @ b)),
    F("rows_turned", "f32[n,24]; s16[24,n]; f64[3,n,9]", lambda x, k, y: (x.T, k.T, y.transpose(0, 2, 1)), exact=True),
]  # fmt: skip
