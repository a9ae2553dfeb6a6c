"""Attention of many kinds, as users of flax and haiku write it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


def _heads(draw: Draws, *shape: int):
    return tuple(draw.normal(*shape) for _ in range(3))


@program((1, 2, 33, 8), (2, 4, 256, 32), (2, 8, 1024, 64))
def sliding_window_attention(draw: Draws, batch: int, heads: int, length: int, width: int) -> Made:
    """Causal attention to the last sixteen positions, by a mask."""

    def run(q, k, v):
        score = jnp.einsum("bhqd,bhkd->bhqk", q, k) / width**0.5
        distance = jnp.arange(length)[:, None] - jnp.arange(length)[None]
        score = jnp.where((distance >= 0) & (distance < 16), score, -jnp.inf)
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(score, -1), v)

    return run, _heads(draw, batch, heads, length, width)


@program((1, 2, 32, 8), (2, 4, 256, 32), (2, 8, 1024, 64))
def blockwise_attention(draw: Draws, batch: int, heads: int, length: int, width: int) -> Made:
    """Softmax over blocks of keys with a running maximum and sum, so that no whole row of scores exists."""
    blocks = length // 16

    def run(q, k, v):
        k, v = (jnp.moveaxis(x.reshape(batch, heads, blocks, 16, width), 2, 0) for x in (k, v))

        def step(carry, block):
            top, total, out = carry
            score = jnp.einsum("bhqd,bhkd->bhqk", q, block[0]) / width**0.5
            new = jnp.maximum(top, score.max(-1))
            shrink, weight = jnp.exp(top - new), jnp.exp(score - new[..., None])
            out = out * shrink[..., None] + jnp.einsum("bhqk,bhkd->bhqd", weight, block[1])
            return (new, total * shrink + weight.sum(-1), out), None

        start = jnp.full(q.shape[:3], -jnp.inf), jnp.zeros(q.shape[:3]), jnp.zeros_like(q)
        _, total, out = lax.scan(step, start, (k, v))[0]
        return out / total[..., None]

    return run, _heads(draw, batch, heads, length, width)


@program((2, 20, 16), (8, 128, 64), (8, 400, 128))
def relative_position_attention(draw: Draws, batch: int, length: int, width: int) -> Made:
    """Attention with a bias by bucketed distance, and the gradient of the table of biases."""

    def bucket():
        distance = jnp.abs(jnp.arange(length)[:, None] - jnp.arange(length)[None])
        far = 8 + (jnp.log(jnp.maximum(distance, 1) / 8) / jnp.log(16.0) * 8).astype(jnp.int32)
        return jnp.where(distance < 8, distance, jnp.minimum(far, 15))

    def loss(table, w, x):
        q, k, v = jnp.split(x @ w, 3, -1)
        q, k, v = (a.reshape(batch, length, 4, -1) for a in (q, k, v))
        score = jnp.einsum("bqhd,bkhd->bhqk", q, k) + table[bucket()].transpose(2, 0, 1)
        return (jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(score), v) ** 2).mean()

    return jax.value_and_grad(loss, (0, 1)), (
        draw.normal(16, 4),
        draw.normal(width, 3 * width, scale=0.1),
        draw.normal(batch, length, width),
    )


@program((1, 24, 8), (4, 256, 32), (4, 1024, 64))
def slope_biased_attention(draw: Draws, batch: int, length: int, width: int) -> Made:
    """Attention with a penalty that grows with distance, its slope different in each of eight heads."""

    def run(q, k, v):
        slope = 2.0 ** -jnp.arange(1.0, 9)
        distance = jnp.arange(length)[None] - jnp.arange(length)[:, None]
        score = jnp.einsum("bqhd,bkhd->bhqk", q, k) * width**-0.5 + slope[:, None, None] * distance
        score = jnp.where(distance <= 0, score, jnp.finfo(jnp.float32).min)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(score), v)

    return run, _heads(draw, batch, length, 8, width)


@program((2, 40, 8, 16), (8, 500, 32, 64), (8, 4000, 64, 128))
def latent_cross_attention(draw: Draws, batch: int, inputs: int, latents: int, width: int) -> Made:
    """A few learned latents read a long input, then attend to each other; padding is masked."""

    def run(latent, w, x, lengths):
        mask = jnp.arange(inputs) < lengths[:, None]
        z = jnp.broadcast_to(latent, (batch, latents, width))
        score = jnp.where(mask[:, None], (z @ w[0]) @ (x @ w[1]).mT, -1e9) / width**0.5
        z = z + jax.nn.softmax(score) @ (x @ w[2])
        z = (z - z.mean(-1, keepdims=True)) * lax.rsqrt(z.var(-1, keepdims=True) + 1e-6)
        return z + jax.nn.softmax((z @ w[3]) @ z.mT / width**0.5) @ z

    return run, (
        draw.normal(latents, width),
        draw.normal(4, width, width, scale=0.2),
        draw.normal(batch, inputs, width),
        draw.integers(inputs, batch) + 1,
    )


@program((2, 20, 8), (4, 256, 32), (4, 2048, 64))
def random_feature_attention(draw: Draws, batch: int, length: int, width: int) -> Made:
    """Softmax attention approximated by positive random features: two thin products."""

    def features(x, w):
        x = x / width**0.25
        return jnp.exp(x @ w - 0.5 * (x**2).sum(-1, keepdims=True) - 2.0) + 1e-4

    def run(q, k, v, w):
        q, k = features(q, w), features(k, w)
        return (q @ (k.mT @ v)) / (q @ k.sum(1)[..., None])

    arrays = (0.3 * a for a in _heads(draw, batch, length, width))
    return run, (*arrays, draw.normal(width, 2 * width))


@program((1, 16, 8, 32), (8, 128, 32, 512), (8, 32, 64, 4096))
def paged_cache_attention(draw: Draws, batch: int, pages: int, width: int, length: int) -> Made:
    """One new token of each sequence attends to keys in pages of sixteen rows, found by a table of pages."""
    rows = length // 16

    def run(q, keys, values, table, lengths):
        k = keys[table].reshape(batch, length, width)
        v = values[table].reshape(batch, length, width)
        score = jnp.einsum("bhd,bkd->bhk", q, k) * width**-0.5
        score = jnp.where((jnp.arange(length) < lengths[:, None])[:, None], score, -1e30)
        return jnp.einsum("bhk,bkd->bhd", jax.nn.softmax(score), v)

    return run, (
        draw.normal(batch, 4, width),
        draw.normal(pages, 16, width),
        draw.normal(pages, 16, width),
        draw.integers(pages, batch, rows),
        draw.integers(length, batch) + 1,
    )
