"""Training and inference as users of flax, optax, equinox and plain JAX write them."""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax import nnx

from tests.devices.program import Devices, Family, integers, normal

PROGRAMS = Family()
program = PROGRAMS.program


class Mlp(nn.Module):
    """Two layers with partitioned kernels."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        first = nn.with_partitioning(nn.initializers.lecun_normal(), (None, "y"))
        second = nn.with_partitioning(nn.initializers.lecun_normal(), ("y", None))
        x = nn.gelu(nn.Dense(24, kernel_init=first)(x))
        return nn.Dense(5, kernel_init=second)(nn.LayerNorm()(x))


@program(tolerance=1e-4)
def flax_linen_adam(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    model, x, y = Mlp(), normal(8, 12), normal(8, 5, seed=1)
    boxed = jax.eval_shape(model.init, jax.random.key(0), x)
    specs = nn.get_partition_spec(boxed)
    shardings = None if d.one else jax.tree.map(lambda s: d.on(mesh, *s), specs)
    params = d.jit(lambda k: nn.meta.unbox(model.init(k, x)), shardings)(jax.random.key(0))
    optimizer = optax.adamw(1e-2)
    state = jax.jit(optimizer.init)(params)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((model.apply(p, x) - y) ** 2))(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    x, y = d.put(x, mesh, "x"), d.put(y, mesh, "x")
    losses = []
    for _ in range(4):
        params, state, loss = step(params, state, x, y)
        losses.append(loss)
    return params, losses


@program(tolerance=1e-4)
def flax_attention_dropout(d: Devices) -> Any:
    mesh = d.mesh(4, 2)
    model = nn.MultiHeadDotProductAttention(num_heads=4, qkv_features=16, dropout_rate=0.25, deterministic=False)
    x = normal(4, 7, 16)
    params = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, x)

    @jax.jit
    def run(p: Any, x: Any, key: Any) -> Any:
        x = d.keep(x, mesh, "x", "y")
        return d.keep(model.apply(p, x, rngs={"dropout": key}), mesh, None, "x", "y")

    return run(params, d.put(x, mesh, "x"), jax.random.key(2))


@program(tolerance=1e-4)
def flax_batchnorm_conv(d: Devices) -> Any:
    mesh = d.mesh(8)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Conv(6, (3, 3), strides=2, use_bias=False)(x)))
            return nn.Dense(3)(nn.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1))

    model, x = Net(), normal(16, 9, 9, 3)
    variables = model.init(jax.random.key(0), x)

    @jax.jit
    def step(variables: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            out, changed = model.apply({**variables, "params": params}, x, mutable=["batch_stats"])
            return optax.softmax_cross_entropy_with_integer_labels(out, jnp.arange(16) % 3).mean(), changed

        (value, changed), grads = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        return value, changed, grads

    return step(d.put(variables, mesh), d.put(x, mesh, "x"))


@program(tolerance=1e-4)
def nnx_lstm(d: Devices) -> Any:
    mesh = d.mesh(2, 2, 2)
    cell = nnx.RNN(nnx.LSTMCell(6, 10, rngs=nnx.Rngs(0)))
    graph, state = nnx.split(cell)

    @jax.jit
    def run(state: Any, x: Any) -> Any:
        out: Any = nnx.merge(graph, state)(d.keep(x, mesh, ("x", "y"), None, "z"))
        return d.keep(out, mesh, "z", "x"), jnp.sum(out**2)

    return jax.jit(jax.grad(lambda x: run(state, x)[1]))(d.put(normal(4, 5, 6), mesh, "x")), run(state, normal(4, 5, 6))


@program(tolerance=1e-4)
def equinox_mlp_filtered(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    model = eqx.nn.MLP(6, 3, 16, 2, key=jax.random.key(0))
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1, momentum=0.9))

    @eqx.filter_jit
    def step(model: Any, state: Any, x: Any, y: Any) -> Any:
        x = d.keep(x, mesh, ("x", "y"))
        loss, grads = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        updates, state = optimizer.update(grads, state, model)
        return eqx.apply_updates(model, updates), state, loss

    state = optimizer.init(eqx.filter(model, eqx.is_array))
    x, y = d.put(normal(16, 6), mesh, "y"), d.put(normal(16, 3, seed=4), mesh, "y")
    if not d.one:
        model = eqx.filter_shard(model, d.on(mesh))
        state = eqx.filter_shard(state, d.on(mesh))
    for _ in range(3):
        model, state, loss = step(model, state, x, y)
    return eqx.filter(model, eqx.is_array), loss


@program(tolerance=1e-4)
def fsdp_remat_scan(d: Devices) -> Any:
    """Layers in a scan, weights gathered in each, recomputed in the backward pass."""
    mesh = d.mesh(2, 4)
    w, x = normal(3, 8, 8), normal(8, 8, seed=1)

    def loss(w: Any, x: Any) -> Any:
        @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
        def layer(x: Any, w: Any) -> Any:
            full = d.keep(w, mesh)
            return d.keep(jnp.tanh(x @ full), mesh, ("x", "y")), jnp.sum(x)

        last, sums = jax.lax.scan(layer, x, w)
        return jnp.sum(last**2) + jnp.sum(sums)

    where = d.on(mesh, None, ("x", "y"))
    grad = d.jit(jax.value_and_grad(loss), None if d.one else (d.on(mesh), where))
    return grad(d.put(w, mesh, None, ("x", "y")), d.put(x, mesh, ("x", "y")))


@program(tolerance=2e-2)
def transformer_bf16(d: Devices) -> Any:
    """A block with split heads, in bfloat16."""
    mesh = d.mesh(2, 4)
    b, s, h, e = 2, 6, 4, 16
    wq, wo = normal(e, 3, h, 4, dtype=jnp.bfloat16), normal(h, 4, e, seed=1, dtype=jnp.bfloat16)

    def block(x: Any, wq: Any, wo: Any) -> Any:
        q, k, v = jnp.einsum("bse,ethd->tbhsd", x, wq)
        scores = jnp.einsum("bhsd,bhtd->bhst", q, k) / 2
        scores = jnp.where(jnp.tril(jnp.ones((s, s), bool)), scores, -jnp.inf)
        mixed = jnp.einsum("bhst,bhtd->bshd", jax.nn.softmax(scores.astype(jnp.float32)).astype(v.dtype), v)
        return d.keep(x + jnp.einsum("bshd,hde->bse", mixed, wo), mesh, "x", None, "y")

    x = normal(b, s, e, seed=2, dtype=jnp.bfloat16)
    return jax.jit(block)(d.put(x, mesh, "x"), d.put(wq * 0.25, mesh, None, None, "y"), d.put(wo * 0.25, mesh, "y"))


@program()
def int8_quantized_matmul(d: Devices) -> Any:
    mesh = d.mesh(4, 2)
    x, w = integers(12, 16, low=-100, high=100, dtype=np.int8), integers(16, 10, low=-100, high=100, dtype=np.int8)

    def f(x: Any, w: Any, scale: Any) -> Any:
        y = jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        y = d.keep(y, mesh, "x", "y")
        out = jnp.clip(jnp.round(y * scale), -128, 127).astype(jnp.int8)
        return out, y.sum(axis=0), jnp.argmax(out, axis=1)

    return jax.jit(f)(d.put(x, mesh, "x", "y"), d.put(w, mesh, "y"), np.float32(0.01))


@program(tolerance=1e-4)
def moe_top2(d: Devices) -> Any:
    """Experts along an axis, tokens along both; an uneven number of tokens."""
    mesh = d.mesh(2, 4)
    tokens, e, width = 13, 4, 6
    x, gate, w = normal(tokens, width), normal(width, e, seed=1), normal(e, width, width, seed=2)

    def f(x: Any, gate: Any, w: Any) -> Any:
        x = d.keep(x, mesh, ("x", "y"))
        values, chosen = jax.lax.top_k(jax.nn.softmax(x @ gate), 2)
        weights = jnp.zeros((tokens, e)).at[jnp.arange(tokens)[:, None], chosen].add(values)
        hidden = d.keep(jnp.einsum("te,tw,ewv->etv", weights, x, w), mesh, "y", "x")
        return jnp.sum(jax.nn.silu(hidden), 0), chosen

    return jax.jit(f)(x, gate, d.put(w, mesh, "y"))


@program(tolerance=1e-4)
def gradient_accumulation(d: Devices) -> Any:
    mesh = d.mesh(8)
    w, x = normal(6, 4), normal(3, 16, 6, seed=1)

    def step(w: Any, x: Any) -> Any:
        grad = jax.grad(lambda w, x: jnp.mean(jnp.tanh(x @ w) ** 2))

        def one(total: Any, x: Any) -> Any:
            return jax.tree.map(jnp.add, total, grad(w, d.keep(x, mesh, "x"))), None

        total, _ = jax.lax.scan(one, jnp.zeros_like(w), x)
        return w - 0.1 * total / 3

    return d.jit(step, d.on(mesh), donate_argnums=0)(d.put(w, mesh), d.put(x, mesh, None, "x"))


@program()
def kv_cache_decode(d: Devices) -> Any:
    """A cache along devices, written at a traced place in a loop with a dynamic end."""
    mesh = d.mesh(2, 4)
    cache, x = np.zeros((4, 16, 6), np.float32), integers(4, 6)

    def decode(cache: Any, x: Any, n: Any) -> Any:
        def body(state: Any) -> Any:
            k, cache, x = state
            cache = jax.lax.dynamic_update_slice(cache, x[:, None], (0, k, 0))
            seen = jnp.where(jnp.arange(16)[None, :, None] <= k, cache, 0)
            return k + 1, d.keep(cache, mesh, "x", "y"), x + seen.max(axis=1)

        return jax.lax.while_loop(lambda s: s[0] < n, body, (3, cache, x))

    return jax.jit(decode, donate_argnums=0)(d.put(cache, mesh, "x", "y"), d.put(x, mesh, "x"), 11)


@program(tolerance=1e-4)
def custom_vjp_clipped(d: Devices) -> Any:
    mesh = d.mesh(3, 2)

    @jax.custom_vjp
    def clipped(x: Any) -> Any:
        return jnp.sin(x)

    def forward(x: Any) -> Any:
        return clipped(x), x

    def backward(x: Any, g: Any) -> Any:
        return (jnp.clip(d.keep(g, mesh, "y", "x"), -0.5, 0.5) * x,)

    clipped.defvjp(forward, backward)

    def f(x: Any) -> Any:
        return jnp.sum(clipped(d.keep(x, mesh, "x", "y")) ** 2) + jnp.sum(clipped(x[:4] * 2))

    return jax.jit(jax.value_and_grad(f))(d.put(normal(6, 4), mesh, "x")), jax.jit(jax.grad(f))(normal(7, 5))
