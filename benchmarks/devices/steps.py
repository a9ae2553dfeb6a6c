"""Further programs: training steps, by hand in shard_map and left to the partitioner."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from benchmarks.devices.blocks import norm
from benchmarks.devices.case import Case, R, constrained, f32, mesh, program
from benchmarks.devices.training import mlp_loss, mlp_params


@program
def mlp_psum() -> Case:
    """Data-parallel MLP step in shard_map: gradients of the local batch, averaged by pmean; momentum."""
    m = mesh(data=8)
    r = R(40)

    def body(params, velocity, x, y):
        loss, grads = jax.value_and_grad(mlp_loss)(params, x, y)
        grads, loss = lax.pmean(grads, "data"), lax.pmean(loss, "data")
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        return jax.tree.map(lambda p, v: p - 0.05 * v, params, velocity), velocity, loss

    f = jax.shard_map(
        body, mesh=m, in_specs=(P(), P(), P("data"), P("data")), out_specs=(P(), P(), P()), check_vma=False
    )
    params = mlp_params(r, (256, 512, 512, 64))
    velocity = jax.tree.map(np.zeros_like, params)
    return Case(
        f, (params, velocity, f32(r, 1024, 256), f32(r, 1024, 64)), m, (P(), P(), P("data"), P("data")),
        donate=(0, 1),
    )  # fmt: skip


@program
def conv_psum() -> Case:
    """Data-parallel step of a small convolutional network in shard_map, with batch norm over all devices."""
    m = mesh(data=8)
    r = R(41)

    def body(params, images, labels):
        def loss(params):
            x = images
            for w in params["convs"]:
                x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
                mean = lax.pmean(jnp.mean(x, (0, 1, 2)), "data")
                x = jax.nn.relu((x - mean) * lax.rsqrt(lax.pmean(jnp.mean((x - mean) ** 2, (0, 1, 2)), "data") + 1e-5))
                x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            logits = x.reshape(x.shape[0], -1) @ params["head"]
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))

        value, grads = jax.value_and_grad(loss)(params)
        grads = lax.pmean(grads, "data")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), lax.pmean(value, "data")

    f = jax.shard_map(body, mesh=m, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()), check_vma=False)
    params = {
        "convs": [f32(r, 3, 3, a, b, scale=0.1) for a, b in ((3, 16), (16, 32), (32, 32))],
        "head": f32(r, 4 * 4 * 32, 10, scale=0.05),
    }
    images = f32(r, 128, 32, 32, 3)
    return Case(f, (params, images, r.integers(0, 10, 128).astype(np.int32)), m, (P(), P("data"), P("data")))


@program
def fsdp_transformer() -> Case:
    """Loss and gradient of 4 transformer layers in a scan; every matrix sharded over all devices, and the batch."""
    m = mesh(fsdp=8)
    r = R(42)
    layers, d, ff, heads = 4, 128, 512, 4

    def layer(x, w):
        w = {k: constrained(v, m) for k, v in w.items()}
        b, t, _ = x.shape
        h = norm(x, 1.0)
        q, k, v = (z.reshape(b, t, heads, d // heads) for z in jnp.split(h @ w["qkv"], 3, axis=-1))
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (d // heads) ** -0.5
        s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e9)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v).reshape(b, t, d) @ w["out"]
        h = norm(x, 1.0)
        x = x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
        return constrained(x, m, "fsdp", None, None), None

    def loss(params, x):
        x, _ = lax.scan(jax.checkpoint(layer), x, params)
        return jnp.mean(x**2)

    shapes = dict(qkv=(d, 3 * d), out=(d, d), gate=(d, ff), up=(d, ff), down=(ff, d))
    params = {k: f32(r, layers, *s, scale=s[0] ** -0.5) for k, s in shapes.items()}
    specs = {k: P(None, "fsdp", None) for k in shapes}
    x = P("fsdp", None, None)
    return Case(jax.value_and_grad(loss), (params, f32(r, 16, 128, d)), m, (specs, x), out_specs=(P(), specs))


@program
def tp_mlp() -> Case:
    """Tensor-parallel gated MLP by hand: columns, rows, psum; forward and gradient in shard_map."""
    m = mesh(data=2, model=4)
    r = R(43)

    def body(x, up, gate, down):
        def f(x, up, gate, down):
            return lax.psum((jax.nn.silu(x @ gate) * (x @ up)) @ down, "model")

        y, pull = jax.vjp(f, x, up, gate, down)
        dx, dup, dgate, ddown = pull(y)
        return y, lax.psum(dx, "model"), *(lax.psum(g, "data") for g in (dup, dgate, ddown))

    specs = (P("data"), P(None, "model"), P(None, "model"), P("model", None))
    f = jax.shard_map(body, mesh=m, in_specs=specs, out_specs=(P("data"), *specs), check_vma=False)
    d, ff = 256, 1024
    weights = (f32(r, d, ff, scale=d**-0.5), f32(r, d, ff, scale=d**-0.5), f32(r, ff, d, scale=ff**-0.5))
    return Case(f, (f32(r, 512, d), *weights), m, specs)


@program
def vocab_cross_entropy() -> Case:
    """Embedding and cross-entropy with the vocabulary over 8 devices by hand: masked lookups, pmax, psum; gradients."""
    m = mesh(vocab=8)
    r = R(44)
    vocab, d = 8192, 128

    def body(table, ids, targets):
        first = lax.axis_index("vocab") * table.shape[0]

        def local(table, ids):
            place = ids - first
            inside = (place >= 0) & (place < table.shape[0])
            return jnp.where(inside[..., None], table[jnp.clip(place, 0, table.shape[0] - 1)], 0), inside

        def loss(table):
            h = jnp.tanh(lax.psum(local(table, ids)[0], "vocab"))
            logits = h @ table.T
            top = lax.stop_gradient(lax.pmax(lax.stop_gradient(jnp.max(logits, -1)), "vocab"))
            total = lax.psum(jnp.sum(jnp.exp(logits - top[:, None]), -1), "vocab")
            place = targets - first
            inside = (place >= 0) & (place < table.shape[0])
            mine = jnp.take_along_axis(logits, jnp.clip(place, 0, table.shape[0] - 1)[:, None], 1)[:, 0]
            return jnp.mean(jnp.log(total) + top - lax.psum(jnp.where(inside, mine, 0), "vocab"))

        value, grad = jax.value_and_grad(loss)(table)
        return value, table - 0.1 * grad

    f = jax.shard_map(body, mesh=m, in_specs=(P("vocab"), P(), P()), out_specs=(P(), P("vocab")), check_vma=False)
    ids: Any = r.integers(0, vocab, (2, 512)).astype(np.int32)
    return Case(f, (f32(r, vocab, d, scale=0.1), ids[0], ids[1]), m, (P("vocab"), P(), P()))
