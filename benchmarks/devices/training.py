"""Products and training steps, sharded in the ways of the field."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from benchmarks.devices.case import Case, R, constrained, f32, mesh, program


def mlp_params(r: Any, sizes: Any) -> Any:
    return [(f32(r, a, b, scale=a**-0.5), f32(r, b, scale=0.1)) for a, b in itertools.pairwise(sizes)]


def mlp_loss(params: Any, x: Any, y: Any) -> Any:
    for n, (w, b) in enumerate(params):
        x = x @ w + b
        x = jnp.tanh(x) if n + 1 < len(params) else x
    return jnp.mean((x - y) ** 2)


@program
def seed_matmul() -> Case:
    """-((a @ b) * 0.125), int8 a, float b, mesh x=2 y=1, constraint on the output; b's columns sharded over x too."""
    m = mesh(x=2, y=1)
    r = R(0)

    def f(a, b):
        return constrained(-((a @ b) * 0.125), m, "x", "y")

    return Case(
        f, (r.integers(-20, 20, (1024, 2048)).astype(np.int8), f32(r, 2048, 1024)), m, (P("x", None), P(None, "x"))
    )


@program
def seed_contracting() -> Case:
    """The same with the contracted dimension sharded over y=2: partial sums."""
    m = mesh(x=1, y=2)
    r = R(1)

    def f(a, b):
        return constrained(-((a @ b) * 0.125), m, "x", "y")

    return Case(
        f, (r.integers(-20, 20, (1024, 2048)).astype(np.int8), f32(r, 2048, 1024)), m, (P("x", "y"), P("y", None))
    )


@program
def dp_mlp_train() -> Case:
    """Data-parallel MLP step: batch over 8, parameters replicated, SGD, donated parameters."""
    m = mesh(data=8)
    r = R(2)

    def step(params, x, y):
        loss, grads = jax.value_and_grad(mlp_loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

    params = mlp_params(r, (512, 1024, 1024, 256))
    return Case(
        step,
        (params, f32(r, 1024, 512), f32(r, 1024, 256)),
        m,
        (P(), P("data"), P("data")),
        out_specs=(P(), P()),
        donate=(0,),
    )


@program
def gspmd_tp_train() -> Case:
    """Tensor-parallel MLP training step lowered for GSPMD: shardings of HLO, no mesh."""
    m = mesh(data=4, model=2)
    r = R(27)
    specs = [(P(None, "model"), P("model")), (P("model", None), P()), (P(None, "model"), P("model"))]

    def step(params, x, y):
        loss, grads = jax.value_and_grad(mlp_loss)(params, constrained(x, m, "data", None), y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

    return Case(
        step,
        (mlp_params(r, (512, 1024, 1024, 256)), f32(r, 1024, 512), f32(r, 1024, 256)),
        m,
        (specs, P("data"), P("data")),
        out_specs=(specs, P()),
    )


@program
def fsdp_train() -> Case:
    """Fully sharded: parameters, gradients and batch over one axis of 8; a scan gathers each layer."""
    m = mesh(fsdp=8)
    r = R(6)

    def loss(params, x, y):
        def layer(h, w):
            h = constrained(h, m, "fsdp", None)
            return jnp.tanh(h @ constrained(w, m, None, None)), None

        h, _ = lax.scan(layer, x, params["layers"])
        return jnp.mean((h @ params["head"] - y) ** 2)

    def step(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    specs = {"layers": P(None, "fsdp", None), "head": P("fsdp", None)}
    params = {"layers": f32(r, 6, 512, 512, scale=0.05), "head": f32(r, 512, 128, scale=0.05)}
    return Case(
        step, (params, f32(r, 512, 512), f32(r, 512, 128)), m, (specs, P("fsdp"), P("fsdp")), out_specs=(specs, P())
    )


@program
def summa_einsum() -> Case:
    """Products over a 2x2x2 mesh: batch, rows, columns and contraction sharded in all ways, chained."""
    m = mesh(x=2, y=2, z=2)
    r = R(7)

    def f(a, b, c):
        ab = jnp.einsum("bik,bkj->bij", a, b)
        return jnp.einsum("bij,jl->bil", ab, c), jnp.einsum("bij,bil->bjl", a, a), jnp.einsum("bik,bik->b", a, a)

    return Case(
        f,
        (f32(r, 8, 256, 384), f32(r, 8, 384, 256), f32(r, 256, 512)),
        m,
        (P("x", "y", "z"), P("x", "z", None), P("z", "y")),
    )
