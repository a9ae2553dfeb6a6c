"""Transformers: a block, its gradient, a decoding step, an embedding."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from benchmarks.devices.case import Case, R, constrained, f32, mesh, program


def block_params(r: Any, d: Any = 256, ff: Any = 1024) -> Any:
    return dict(
        wq=f32(r, d, d, scale=d**-0.5),
        wk=f32(r, d, d, scale=d**-0.5),
        wv=f32(r, d, d, scale=d**-0.5),
        wo=f32(r, d, d, scale=d**-0.5),
        w1=f32(r, d, ff, scale=d**-0.5),
        w2=f32(r, ff, d, scale=ff**-0.5),
        g1=np.ones(d, np.float32),
        g2=np.ones(d, np.float32),
    )


BLOCK_SPECS = dict(
    wq=P(None, "model"),
    wk=P(None, "model"),
    wv=P(None, "model"),
    wo=P("model", None),
    w1=P(None, "model"),
    w2=P("model", None),
    g1=P(),
    g2=P(),
)


def norm(x: Any, g: Any) -> Any:
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * g


def block(p: Any, x: Any, heads: Any = 8, between: Any = lambda x: x) -> Any:
    b, t, d = x.shape
    h = norm(between(x), p["g1"])
    q, k, v = ((h @ p[n]).reshape(b, t, heads, d // heads) for n in ("wq", "wk", "wv"))
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (d // heads) ** -0.5
    s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e9)
    o = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v).reshape(b, t, d)
    x = between(x + o @ p["wo"])
    h = norm(x, p["g2"])
    return between(x + jax.nn.gelu(h @ p["w1"]) @ p["w2"])


@program
def tp_block_fwd() -> Case:
    """Megatron tensor-parallel transformer block, mesh data=2 model=4, forward."""
    m = mesh(data=2, model=4)
    r = R(3)
    return Case(block, (block_params(r), f32(r, 8, 128, 256)), m, (BLOCK_SPECS, P("data")), out_specs=P("data"))


@program
def tp_block_grad() -> Case:
    """Gradients of the same block with respect to parameters and input."""
    m = mesh(data=2, model=4)
    r = R(4)
    f = jax.grad(lambda p, x: jnp.sum(block(p, x) ** 2) / x.size, argnums=(0, 1))
    return Case(f, (block_params(r), f32(r, 8, 128, 256)), m, (BLOCK_SPECS, P("data")))


@program
def sequence_parallel() -> Case:
    """The block with activations sharded along the sequence between the parallel regions."""
    m = mesh(data=2, model=4)
    r = R(5)

    def f(p, x):
        return block(p, x, between=lambda v: constrained(v, m, "data", "model", None))

    return Case(
        f, (block_params(r), f32(r, 8, 128, 256)), m, (BLOCK_SPECS, P("data", "model")), out_specs=P("data", "model")
    )


@program
def kv_cache() -> Case:
    """A decoding step: keys and values written at a position that is data, into sharded caches."""
    m = mesh(batch=2, seq=4)
    r = R(20)

    def f(k_cache, v_cache, k, v, q, at):
        k_cache = lax.dynamic_update_slice(k_cache, k, (0, at, 0, 0))
        v_cache = lax.dynamic_update_slice(v_cache, v, (0, at, 0, 0))
        s = jnp.einsum("bqhd,bshd->bhqs", q, k_cache) * q.shape[-1] ** -0.5
        s = jnp.where(jnp.arange(2048) <= at, s, -1e9)
        o = jnp.einsum("bhqs,bshd->bqhd", jax.nn.softmax(s), v_cache)
        window = lax.dynamic_slice(k_cache, (0, jnp.maximum(at - 3, 0), 0, 0), (4, 4, 8, 64))
        return k_cache, v_cache, o, window

    cache, new = P("batch", "seq"), P("batch")
    return Case(
        f,
        (
            f32(r, 4, 2048, 8, 64),
            f32(r, 4, 2048, 8, 64),
            f32(r, 4, 1, 8, 64),
            f32(r, 4, 1, 8, 64),
            f32(r, 4, 1, 8, 64),
            np.int32(1500),
        ),
        m,
        (cache, cache, new, new, new, P()),
        out_specs=(cache, cache, new, new),
        donate=(0, 1),
    )


@program
def embedding_vocab() -> Case:
    """Rows of a table sharded along the vocabulary: gather, and its gradient, a scatter-add; the table as head too."""
    m = mesh(data=2, model=4)
    r = R(18)

    def loss(table, ids, targets):
        h = jnp.tanh(jnp.take(table, ids, axis=0))
        logits = h @ table.T
        return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, targets[..., None], -1)[..., 0])

    f = jax.value_and_grad(loss)
    return Case(
        f,
        (
            f32(r, 8192, 128, scale=0.1),
            r.integers(0, 8192, (8, 32)).astype(np.int32),
            r.integers(0, 8192, (8, 32)).astype(np.int32),
        ),
        m,
        (P("model", None), P("data"), P("data")),
    )
