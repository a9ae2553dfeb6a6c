"""The programs of the published figures, as JAX functions: each with its arguments and the work its figure is of."""

from __future__ import annotations

from collections.abc import Callable
from math import prod, sqrt
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp


class Work(NamedTuple):
    """A function, its arguments, and what a figure counts: bytes read and written, flops, or keys."""

    function: Callable[..., Any]
    arguments: tuple[jax.ShapeDtypeStruct, ...]
    amount: float


Sizes: TypeAlias = tuple[int, ...]


def work_of(program: str, sizes: Sizes, dtype: str) -> Work:
    """The program of that name. Raises KeyError where there is none."""
    return _PROGRAMS[program](sizes, jnp.dtype(dtype))


def _array(dims: Sizes, dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(dims, dtype)


def _streams(function: Callable[..., Any], arrays: int, moved: int) -> Callable[[Sizes, Any], Work]:
    """A function of equal arrays, of which a figure counts the bytes of `moved`, results included."""

    def make(sizes: Sizes, dtype: Any) -> Work:
        given = (_array(sizes, dtype),) * arrays
        return Work(function, given, moved * prod(sizes) * dtype.itemsize)

    return make


def _sort(sizes: Sizes, dtype: Any) -> Work:
    return Work(jnp.sort, (_array(sizes, dtype),), prod(sizes))


def _gather(sizes: Sizes, dtype: Any) -> Work:
    rows, width = sizes
    moved = 2 * rows * width * dtype.itemsize
    return Work(lambda x, at: x[at], (_array(sizes, dtype), _array((rows,), jnp.int32)), moved)


def _histogram(sizes: Sizes, dtype: Any) -> Work:
    samples, bins = sizes
    counts = jnp.zeros(bins, dtype)
    return Work(lambda at: counts.at[at].add(1), (_array((samples,), dtype),), samples * dtype.itemsize)


def _rms_norm(sizes: Sizes, dtype: Any) -> Work:
    def norm(x: jax.Array, weight: jax.Array) -> jax.Array:
        wide = x.astype(jnp.float32)
        scaled = wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)
        return (scaled * weight.astype(jnp.float32)).astype(x.dtype)

    return Work(norm, (_array(sizes, dtype), _array(sizes[-1:], dtype)), 2 * prod(sizes) * dtype.itemsize)


def _layer_norm(sizes: Sizes, dtype: Any) -> Work:
    def norm(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
        wide = x.astype(jnp.float32)
        wide = wide - wide.mean(-1, keepdims=True)
        scaled = wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)
        return (scaled * weight.astype(jnp.float32) + bias.astype(jnp.float32)).astype(x.dtype)

    row = _array(sizes[-1:], dtype)
    return Work(norm, (_array(sizes, dtype), row, row), 2 * prod(sizes) * dtype.itemsize)


def _product(sizes: Sizes, dtype: Any) -> Work:
    """``sizes``: batch, rows, columns, length of the sum. 8-bit products give bf16; f32 is rounded to tf32."""
    batch, m, n, k = sizes
    made = jnp.bfloat16 if dtype.itemsize == 1 else dtype
    how = jax.lax.DotAlgorithmPreset.TF32_TF32_F32 if dtype == jnp.float32 else None

    def product(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.matmul(x, y, precision=how, preferred_element_type=made)

    arguments = (_array((batch, m, k)[batch == 1 :], dtype), _array((batch, k, n)[batch == 1 :], dtype))
    return Work(product, arguments, 2.0 * batch * m * n * k)


def _attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * jnp.asarray(1 / sqrt(q.shape[-1]), q.dtype)
    weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(q.dtype)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)


def _attention(sizes: Sizes, dtype: Any) -> Work:
    """``sizes``: batch, heads, length, features of a head. Figures count the two products alone."""
    batch, heads, length, width = sizes
    return Work(_attend, (_array(sizes, dtype),) * 3, 4.0 * batch * heads * length * length * width)


def _attention_grad(sizes: Sizes, dtype: Any) -> Work:
    """Figures count five products, one of them computed again."""
    forward = _attention(sizes, dtype)

    def gradients(q: jax.Array, k: jax.Array, v: jax.Array, g: jax.Array) -> Any:
        return jax.vjp(_attend, q, k, v)[1](g)

    return Work(gradients, (*forward.arguments, forward.arguments[0]), 2.5 * forward.amount)


_PROGRAMS: dict[str, Callable[[Sizes, Any], Work]] = {
    "scale": _streams(lambda x: x * 0.4, 1, 2),
    "triad": _streams(lambda x, y: x + 0.4 * y, 2, 3),
    "dot": _streams(lambda x, y: jnp.sum(x * y), 2, 2),
    "sum": _streams(lambda x: jnp.sum(x, dtype=x.dtype), 1, 1),
    "cumsum": _streams(jax.lax.cumsum, 1, 2),
    "transpose": _streams(jnp.transpose, 1, 2),
    "softmax": _streams(lambda x: jax.nn.softmax(x, axis=-1), 1, 2),
    "sort": _sort,
    "gather": _gather,
    "histogram": _histogram,
    "rms norm": _rms_norm,
    "layer norm": _layer_norm,
    "product": _product,
    "attention": _attention,
    "attention gradient": _attention_grad,
}
