"""More sharded models, as people write them: of these bytes and memory are compared with those of XLA:CPU."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from benchmarks.devices.case import Case, R, constrained, f32, mesh, registered

#: every program by name
WIDER: dict[str, Any] = {}
program = registered(WIDER)


def _norm(x: Any, g: Any) -> Any:
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * g


def _attention(q: Any, k: Any, v: Any, causal: bool = True) -> Any:
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    if causal:
        s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v)


def _cross_entropy(logits: Any, targets: Any) -> Any:
    picked = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - picked)


def _layers(r: Any, n: int, d: int, ff: int) -> dict[str, np.ndarray]:
    return {
        "qkv": f32(r, n, d, 3, 4, d // 4, scale=d**-0.5),
        "o": f32(r, n, 4, d // 4, d, scale=d**-0.5),
        "up": f32(r, n, d, ff, scale=d**-0.5),
        "down": f32(r, n, ff, d, scale=ff**-0.5),
        "g": np.ones((n, 2, d), np.float32),
    }


def _layer(x: Any, w: Any) -> Any:
    q, k, v = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", _norm(x, w["g"][0]), w["qkv"]), 2, 0)
    x = x + jnp.einsum("bthk,hkd->btd", _attention(q, k, v), w["o"])
    return x + jax.nn.gelu(_norm(x, w["g"][1]) @ w["up"]) @ w["down"]


@program
def fsdp_tp_scan() -> Case:
    """A transformer's train step: layers in a scan with rematerialisation, weights split over data and model."""
    m, r = mesh(data=2, model=4), R(1)

    def loss(p: Any, ids: Any) -> Any:
        x, _ = lax.scan(lambda x, w: (jax.checkpoint(_layer)(x, w), None), p["embed"][ids[:, :-1]], p["layers"])
        return _cross_entropy(x @ p["embed"].T, ids[:, 1:])

    def step(p: Any, ids: Any) -> Any:
        value, g = jax.value_and_grad(loss)(p, ids)
        return value, jax.tree.map(lambda a, b: a - 0.1 * b, p, g)

    specs = {
        "embed": P("model", "data"),
        "layers": {
            "qkv": P(None, "data", None, "model"),
            "o": P(None, "model", None, "data"),
            "up": P(None, "data", "model"),
            "down": P(None, "model", "data"),
            "g": P(),
        },
    }
    params = {"embed": f32(r, 256, 64, scale=0.1), "layers": _layers(r, 3, 64, 256)}
    ids = r.integers(0, 256, (8, 33)).astype(np.int32)
    return Case(step, (params, ids), m, (specs, P("data")), (P(), specs), donate=(0,))


@program
def vision_transformer() -> Case:
    """Patches by a convolution, two blocks, mean over patches, loss and gradients."""
    m, r = mesh(data=4, model=2), R(2)

    def loss(p: Any, images: Any, labels: Any) -> Any:
        x = lax.conv_general_dilated(images, p["patch"], (4, 4), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = x.reshape(x.shape[0], -1, x.shape[-1]) + p["place"]
        for n in range(2):
            x = _layer(x, jax.tree.map(lambda w, n=n: w[n], p["layers"]))
        return _cross_entropy(x.mean(1) @ p["head"], labels)

    layers = {"qkv": P(None, None, None, "model"), "o": P(None, "model"), "up": P(None, None, "model")}
    specs = {
        "patch": P(),
        "place": P(),
        "head": P(None, "model"),
        "layers": {**layers, "down": P(None, "model"), "g": P()},
    }
    params = {
        "patch": f32(r, 4, 4, 3, 64, scale=0.1),
        "place": f32(r, 16, 64, scale=0.1),
        "layers": _layers(r, 2, 64, 256),
        "head": f32(r, 64, 32, scale=0.1),
    }
    labels = r.integers(0, 32, 8).astype(np.int32)
    return Case(jax.value_and_grad(loss), (params, f32(r, 8, 16, 16, 3), labels), m, (specs, P("data"), P("data")))


def _conv(x: Any, w: Any, stride: int = 1) -> Any:
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@program
def spatial_network() -> Case:
    """Convolutions of images split along their rows, with strides, batch norm, pooling, and gradients."""
    m, r = mesh(data=2, rows=4), R(3)

    def loss(p: Any, x: Any) -> Any:
        for w, stride in ((p["a"], 1), (p["b"], 2), (p["c"], 1)):
            x = _conv(x, w, stride)
            mean = x.mean((0, 1, 2))
            x = jax.nn.relu((x - mean) * lax.rsqrt(((x - mean) ** 2).mean((0, 1, 2)) + 1e-5))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.mean(x**2)

    params = {"a": f32(r, 3, 3, 4, 16, scale=0.2), "b": f32(r, 3, 3, 16, 16, scale=0.1), "c": f32(r, 5, 5, 16, 8)}
    return Case(jax.value_and_grad(loss), (params, f32(r, 4, 32, 32, 4)), m, (P(), P("data", "rows")))


@program
def embedding_bags() -> Case:
    """Two tables split along the vocabulary, bags of rows summed, an interaction, and gradients."""
    m, r = mesh(data=2, vocab=4), R(4)

    def loss(p: Any, users: Any, items: Any, clicked: Any) -> Any:
        u = jnp.take(p["users"], users, axis=0)
        i = jnp.take(p["items"], items, axis=0).sum(1)
        score = jnp.sum((u @ p["w"]) * i, -1)
        return jnp.mean(jax.nn.softplus(jnp.where(clicked, -score, score)))

    params = {"users": f32(r, 512, 32, scale=0.1), "items": f32(r, 1024, 32, scale=0.1), "w": f32(r, 32, 32)}
    specs = {"users": P("vocab"), "items": P("vocab"), "w": P()}
    ids = (r.integers(0, 512, 64).astype(np.int32), r.integers(0, 1024, (64, 8)).astype(np.int32))
    return Case(
        jax.value_and_grad(loss), (params, *ids, r.integers(0, 2, 64) > 0), m, (specs, P("data"), P("data"), P("data"))
    )


@program
def experts_by_one_hot() -> Case:
    """A mixture of experts: dispatch and combination by one-hot products, experts split over devices."""
    m, r = mesh(data=2, expert=4), R(5)

    def f(p: Any, x: Any) -> Any:
        gates = jax.nn.softmax(x @ p["gate"])
        value, chosen = lax.top_k(gates, 2)
        hot = jax.nn.one_hot(chosen, 8)
        place = jnp.cumsum(hot.reshape(x.shape[0], -1, 8), 1).reshape(hot.shape) * hot - 1
        where = jax.nn.one_hot(place.max(-1), 16) * (place.max(-1, keepdims=True) < 16)
        dispatch = jnp.einsum("gtke,gtkc->gtec", hot, where)
        taken = jnp.einsum("gtec,gtd->egcd", dispatch, x)
        h = jax.nn.relu(jnp.einsum("egcd,edf->egcf", taken, p["up"]))
        out = jnp.einsum("egcf,efd->egcd", h, p["down"])
        return jnp.einsum("gtec,gtke,gtk,egcd->gtd", dispatch, hot, value, out)

    params = {
        "gate": f32(r, 32, 8),
        "up": f32(r, 8, 32, 64, scale=0.2),
        "down": f32(r, 8, 64, 32, scale=0.1),
    }
    specs = {"gate": P(), "up": P("expert"), "down": P("expert")}
    return Case(f, (params, f32(r, 8, 32, 32)), m, (specs, P("data")), P("data"))


@program
def vocabulary_loss() -> Case:
    """Softmax cross-entropy over a vocabulary split over devices, and gradients of head and inputs."""
    m, r = mesh(data=2, vocab=4), R(7)

    def loss(head: Any, x: Any, targets: Any) -> Any:
        logits = constrained(x @ head, m, "data", None, "vocab")
        hot = jax.nn.one_hot(targets, logits.shape[-1])
        return -jnp.mean(jnp.sum(hot * jax.nn.log_softmax(logits), -1))

    args = (f32(r, 64, 512, scale=0.1), f32(r, 8, 16, 64), r.integers(0, 512, (8, 16)).astype(np.int32))
    return Case(jax.value_and_grad(loss, argnums=(0, 1)), args, m, (P(None, "vocab"), P("data"), P("data")))


@program
def decode_loop() -> Case:
    """Four steps of decoding in a loop, keys and values written into caches split over batch and heads."""
    m, r = mesh(batch=2, heads=4), R(10)

    def f(w: Any, x: Any, keys: Any, values: Any) -> Any:
        def step(n: Any, carry: Any) -> Any:
            x, keys, values = carry
            q, k, v = jnp.moveaxis(jnp.einsum("bd,dchk->bchk", x, w["qkv"]), 1, 0)
            keys = lax.dynamic_update_slice(keys, k[:, None], (0, n, 0, 0))
            values = lax.dynamic_update_slice(values, v[:, None], (0, n, 0, 0))
            s = jnp.einsum("bhk,bthk->bht", q, keys)
            s = jnp.where(jnp.arange(keys.shape[1]) <= n, s, -1e9)
            o = jnp.einsum("bht,bthk->bhk", jax.nn.softmax(s), values)
            return x + jnp.einsum("bhk,hkd->bd", o, w["o"]), keys, values

        return lax.fori_loop(0, 4, step, (x, keys, values))

    cache = P("batch", None, "heads")
    w = {"qkv": f32(r, 64, 3, 8, 8, scale=0.1), "o": f32(r, 8, 8, 64, scale=0.1)}
    specs = {"qkv": P(None, None, "heads"), "o": P("heads")}
    args = (w, f32(r, 8, 64), f32(r, 8, 16, 8, 8) * 0, f32(r, 8, 16, 8, 8) * 0)
    return Case(f, args, m, (specs, P("batch"), cache, cache), (P("batch"), cache, cache), donate=(2, 3))


@program
def gradient_accumulation() -> Case:
    """Gradients of micro-batches summed in a loop, then one step of adam; weights split over all devices."""
    m, r = mesh(data=8), R(11)

    def loss(p: Any, x: Any, y: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ p["a"]) @ p["b"] - y) ** 2)

    def step(p: Any, mean: Any, square: Any, x: Any, y: Any) -> Any:
        def add(total: Any, batch: Any) -> Any:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(p, *batch)), None

        g, _ = lax.scan(add, jax.tree.map(jnp.zeros_like, p), (x, y))
        mean = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, mean, g)
        square = jax.tree.map(lambda a, b: 0.99 * a + 0.01 * b * b, square, g)
        return jax.tree.map(lambda w, a, b: w - 0.01 * a * lax.rsqrt(b + 1e-6), p, mean, square), mean, square

    params = {"a": f32(r, 32, 128, scale=0.2), "b": f32(r, 128, 16, scale=0.1)}
    zeros = jax.tree.map(np.zeros_like, params)
    specs = {"a": P(None, "data"), "b": P("data")}
    args = (params, zeros, zeros, f32(r, 4, 64, 32), f32(r, 4, 64, 16))
    data = P(None, "data")
    return Case(step, args, m, (specs, specs, specs, data, data), (specs, specs, specs), donate=(0, 1, 2))


@program
def recurrent_network() -> Case:
    """A gated recurrent network over time: batch and hidden units split; gradients."""
    m, r = mesh(data=2, model=4), R(12)

    def loss(p: Any, xs: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            z = jax.nn.sigmoid(x @ p["xz"] + h @ p["hz"])
            h = (1 - z) * h + z * jnp.tanh(x @ p["xh"] + h @ p["hh"])
            return h, jnp.mean(h * h)

        _, out = lax.scan(cell, jnp.zeros((xs.shape[1], 64)), xs)
        return jnp.mean(out)

    sizes = {"xz": (16, 64), "hz": (64, 64), "xh": (16, 64), "hh": (64, 64)}
    params = {n: f32(r, *d, scale=0.1) for n, d in sizes.items()}
    return Case(jax.value_and_grad(loss), (params, f32(r, 12, 8, 16)), m, (P(None, "model"), P(None, "data")))


@program
def dropout_network() -> Case:
    """A network with dropout: random bits made where they are used."""
    m, r = mesh(data=4, model=2), R(16)

    def loss(p: Any, seed: Any, x: Any) -> Any:
        keys = jax.random.split(jax.random.key(seed), 2)
        h = jax.nn.relu(x @ p["a"])
        h = jnp.where(jax.random.bernoulli(keys[0], 0.9, h.shape), h / 0.9, 0)
        y = h @ p["b"] + 0.01 * jax.random.normal(keys[1], (x.shape[0], 32))
        return jnp.mean(y * y)

    params = {"a": f32(r, 32, 128, scale=0.2), "b": f32(r, 128, 32, scale=0.1)}
    specs = {"a": P(None, "model"), "b": P("model")}
    return Case(jax.value_and_grad(loss), (params, np.uint32(3), f32(r, 64, 32)), m, (specs, P(), P("data")))


@program
def low_rank_tuning() -> Case:
    """Gradients of low-rank additions to frozen weights that are split over all devices."""
    m, r = mesh(data=2, model=4), R(17)

    def loss(p: Any, w: Any, x: Any) -> Any:
        h = jax.nn.silu(x @ w["up"] + (x @ p["a"]) @ p["b"])
        return jnp.mean((h @ w["down"]) ** 2)

    params = {"a": f32(r, 64, 4), "b": f32(r, 4, 256) * 0}
    w = {"up": f32(r, 64, 256, scale=0.1), "down": f32(r, 256, 64, scale=0.1)}
    specs = {"up": P("data", "model"), "down": P("model", "data")}
    return Case(jax.value_and_grad(loss), (params, w, f32(r, 32, 64)), m, (P(), specs, P("data")))


@program
def channel_network() -> Case:
    """Convolutions with channels split, down and up again, joined with what was there before; gradients."""
    m, r = mesh(data=2, model=4), R(19)

    def loss(p: Any, x: Any) -> Any:
        a = jax.nn.relu(_conv(x, p["a"]))
        b = jax.nn.relu(_conv(a, p["b"], 2))
        up = jax.image.resize(b, (*a.shape[:3], b.shape[-1]), "nearest")
        return jnp.mean(_conv(jnp.concatenate([a, up], -1), p["c"]) ** 2)

    params = {"a": f32(r, 3, 3, 4, 16, scale=0.2), "b": f32(r, 3, 3, 16, 32, scale=0.1), "c": f32(r, 1, 1, 48, 8)}
    specs = {"a": P(None, None, None, "model"), "b": P(None, None, None, "model"), "c": P(None, None, "model")}
    return Case(jax.value_and_grad(loss), (params, f32(r, 4, 16, 16, 4)), m, (specs, P("data")))


@program
def grouped_attention() -> Case:
    """Attention with fewer heads of keys than of queries, rotated positions, the sequence split; gradients."""
    m, r = mesh(data=2, seq=4), R(20)

    def rotated(x: Any) -> Any:
        angle = jnp.arange(x.shape[1])[:, None, None] * 0.1 ** jnp.arange(x.shape[-1] // 2)
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)

    def loss(p: Any, x: Any) -> Any:
        x = constrained(x, m, "data", "seq", None)
        q = rotated(jnp.einsum("btd,dhk->bthk", x, p["q"]))
        k = jnp.repeat(rotated(jnp.einsum("btd,dhk->bthk", x, p["k"])), 4, 2)
        v = jnp.repeat(jnp.einsum("btd,dhk->bthk", x, p["v"]), 4, 2)
        return jnp.mean(jnp.einsum("bthk,hkd->btd", _attention(q, k, v), p["o"]) ** 2)

    params = {
        "q": f32(r, 64, 8, 8, scale=0.1),
        "k": f32(r, 64, 2, 8, scale=0.1),
        "v": f32(r, 64, 2, 8, scale=0.1),
        "o": f32(r, 8, 8, 64, scale=0.1),
    }
    return Case(jax.value_and_grad(loss), (params, f32(r, 4, 32, 64)), m, (P(), P("data", "seq")))


@program
def mixed_precision_step() -> Case:
    """A network in bfloat16 with float32 weights, their norm clipped, weights split as by FSDP."""
    m, r = mesh(data=8), R(22)

    def loss(p: Any, x: Any, y: Any) -> Any:
        a, b = (p[n].astype(jnp.bfloat16) for n in ("a", "b"))
        out = jax.nn.gelu(x.astype(jnp.bfloat16) @ a) @ b
        return jnp.mean((out.astype(jnp.float32) - y) ** 2)

    def step(p: Any, x: Any, y: Any) -> Any:
        g = jax.grad(loss)(p, x, y)
        norm = jnp.sqrt(sum(jnp.sum(v * v) for v in jax.tree.leaves(g)))
        scale = jnp.minimum(1.0, 1.0 / norm)
        return jax.tree.map(partial(lambda s, w, v: w - 0.1 * s * v, scale), p, g), norm

    params = {"a": f32(r, 64, 256, scale=0.1), "b": f32(r, 256, 64, scale=0.1)}
    specs = {"a": P("data"), "b": P("data")}
    args = (params, f32(r, 64, 64), f32(r, 64, 64))
    return Case(step, args, m, (specs, P("data"), P("data")), (specs, P()), donate=(0,))
