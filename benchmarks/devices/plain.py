"""Programs without any sharding, as people write them for one device: `--auto` spreads them over a mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.devices.case import R, f32

#: a function and its arguments, by name
PLAIN: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {}


def plain(make: Callable[[], Any]) -> Callable[[], Any]:
    """Decorator: a program."""
    PLAIN[make.__name__] = make
    return make


def _adam(p: Any, m: Any, v: Any, g: Any) -> tuple[Any, Any, Any]:
    m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
    v = jax.tree.map(lambda a, b: 0.99 * a + 0.01 * b * b, v, g)
    return jax.tree.map(lambda w, a, b: w - 0.01 * a * lax.rsqrt(b + 1e-6), p, m, v), m, v


def _zeros(p: Any) -> Any:
    return jax.tree.map(np.zeros_like, p)


@plain
def network() -> Any:
    """A network of four layers: loss and gradients."""
    r, d = R(1), 128

    def loss(ws: Any, x: Any, y: Any) -> Any:
        for w in ws[:-1]:
            x = jax.nn.gelu(x @ w)
        return jnp.mean((x @ ws[-1] - y) ** 2)

    ws = [f32(r, a, b, scale=a**-0.5) for a, b in ((64, d), (d, d), (d, d), (d, 64))]
    return jax.value_and_grad(loss), (ws, f32(r, 64, 64), f32(r, 64, 64))


@plain
def transformer_step() -> Any:
    """A transformer of two layers: one step of adam."""
    r, d, heads, vocabulary = R(2), 64, 8, 128

    def layer(x: Any, w: Any) -> Any:
        b, t, _ = x.shape
        h = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)
        q, k, v = ((h @ w[n]).reshape(b, t, heads, d // heads) for n in "qkv")
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (d // heads) ** -0.5
        s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e9)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v).reshape(b, t, d) @ w["o"]
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"]

    def loss(p: Any, ids: Any) -> Any:
        x = p["embed"][ids[:, :-1]]
        for w in p["layers"]:
            x = layer(x, w)
        logits = x @ p["embed"].T
        picked = jnp.take_along_axis(logits, ids[:, 1:, None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - picked)

    def step(p: Any, m: Any, v: Any, ids: Any) -> Any:
        return _adam(p, m, v, jax.grad(loss)(p, ids))

    def weights() -> Any:
        return {n: f32(r, a, b, scale=0.1) for n, (a, b) in sizes.items()}

    sizes = {"q": (d, d), "k": (d, d), "v": (d, d), "o": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
    p = {"embed": f32(r, vocabulary, d, scale=0.1), "layers": [weights(), weights()]}
    return step, (p, _zeros(p), _zeros(p), r.integers(0, vocabulary, (16, 17)).astype(np.int32))


@plain
def convolutional_network() -> Any:
    """Images through three convolutions and a classifier: loss and gradients."""
    r = R(3)

    def loss(p: Any, x: Any, labels: Any) -> Any:
        for w, stride in ((p["a"], 1), (p["b"], 2), (p["c"], 2)):
            x = lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x - x.mean((0, 1, 2)))
        logits = x.mean((1, 2)) @ p["head"]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, labels[:, None], -1)[:, 0])

    p = {"a": f32(r, 3, 3, 3, 16, scale=0.2), "b": f32(r, 3, 3, 16, 32, scale=0.1)}
    p |= {"c": f32(r, 3, 3, 32, 64, scale=0.1), "head": f32(r, 64, 16, scale=0.1)}
    return jax.value_and_grad(loss), (p, f32(r, 64, 16, 16, 3), r.integers(0, 16, 64).astype(np.int32))


@plain
def recommender() -> Any:
    """Large tables of embeddings and a small network: loss and gradients."""
    r = R(4)

    def loss(p: Any, users: Any, items: Any, clicked: Any) -> Any:
        h = jnp.concatenate([p["users"][users], p["items"][items].mean(1)], -1)
        score = (jax.nn.relu(h @ p["a"]) @ p["b"])[:, 0]
        return jnp.mean(jax.nn.softplus(jnp.where(clicked, -score, score)))

    p = {"users": f32(r, 4096, 32, scale=0.1), "items": f32(r, 8192, 32, scale=0.1)}
    p |= {"a": f32(r, 64, 64, scale=0.1), "b": f32(r, 64, 1)}
    users, items = r.integers(0, 4096, 128).astype(np.int32), r.integers(0, 8192, (128, 4)).astype(np.int32)
    return jax.value_and_grad(loss), (p, users, items, r.integers(0, 2, 128) > 0)


@plain
def mixture_of_experts() -> Any:
    """Eight experts, each token to the best one with room: forward and loss."""
    r = R(5)

    def loss(p: Any, x: Any) -> Any:
        gates = jax.nn.softmax(x @ p["gate"])
        hot = jax.nn.one_hot(jnp.argmax(gates, -1), 8)
        place = (jnp.cumsum(hot, 0) * hot).max(-1).astype(jnp.int32) - 1
        dispatch = hot[:, :, None] * jax.nn.one_hot(place, 32)[:, None]
        taken = jnp.einsum("tec,td->ecd", dispatch, x)
        out = jnp.einsum("ecf,efd->ecd", jax.nn.relu(jnp.einsum("ecd,edf->ecf", taken, p["up"])), p["down"])
        return jnp.mean((jnp.einsum("tec,te,ecd->td", dispatch, gates, out) - x) ** 2)

    p = {"gate": f32(r, 64, 8), "up": f32(r, 8, 64, 128, scale=0.1), "down": f32(r, 8, 128, 64, scale=0.1)}
    return jax.value_and_grad(loss), (p, f32(r, 128, 64))


@plain
def recurrent_network() -> Any:
    """A recurrent network by a scan over time: loss and gradients."""
    r, d = R(6), 128

    def loss(p: Any, xs: Any, y: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            z = jax.nn.sigmoid(x @ p["xz"] + h @ p["hz"])
            return (1 - z) * h + z * jnp.tanh(x @ p["xh"] + h @ p["hh"]), None

        h, _ = lax.scan(cell, jnp.zeros((xs.shape[1], d)), xs)
        return jnp.mean((h @ p["out"] - y) ** 2)

    sizes = {"xz": (32, d), "hz": (d, d), "xh": (32, d), "hh": (d, d), "out": (d, 16)}
    p = {n: f32(r, a, b, scale=0.1) for n, (a, b) in sizes.items()}
    return jax.value_and_grad(loss), (p, f32(r, 10, 64, 32), f32(r, 64, 16))
