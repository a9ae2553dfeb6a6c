"""What a program says to compute twice is computed twice: jax.checkpoint's barriers hold until it is scheduled."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from heron import Options, frontends, targets
from heron.backends.compiler import Compilation
from heron.buffers.memory import Memory
from heron.compiling import compile as compile_module
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.trace import Trace

LAYERS, DEPTH, WIDTH, BATCH = 4, 3, 8, 512


def step(checkpointed: bool) -> Module:
    """The gradient of a network of four layers, each kept whole or computed again."""

    def layer(weights: jax.Array, x: jax.Array) -> jax.Array:
        for n in range(DEPTH):
            x = jnp.tanh(x @ weights[n])
        return x

    run = jax.checkpoint(layer) if checkpointed else layer

    def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
        for n in range(LAYERS):
            x = run(weights[n], x)
        return jnp.sum(x * x)

    text = jax.jit(jax.grad(loss)).lower(jnp.zeros((LAYERS, DEPTH, WIDTH, WIDTH)), jnp.zeros((BATCH, WIDTH))).as_text()
    return frontends.from_bytes(text.encode(), "step.mlir", verify=True)


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_checkpoints_save_memory(target: str) -> None:
    plain, checkpointed = (
        Compilation(step(c), targets.get(target), Options(memory_limit=""), Trace()) for c in (False, True)
    )
    dots = [sum(map(_is_product, c.scheduled.instructions())) for c in (plain, checkpointed)]
    assert dots[1] - dots[0] == LAYERS * DEPTH
    assert Memory.of(checkpointed.buffers).temp < 0.7 * Memory.of(plain.buffers).temp


def test_values_are_the_same() -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(LAYERS, DEPTH, WIDTH, WIDTH)).astype(np.float32)
    x = rng.normal(size=(BATCH, WIDTH)).astype(np.float32)
    outputs = [
        compile_module(step(c), "cpu", Options(memory_limit=limit))(weights, x)
        for c, limit in ((False, ""), (True, ""), (False, "60%"))
    ]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    np.testing.assert_array_equal(outputs[0], outputs[2])


def _is_product(i: Instruction) -> bool:
    """A dot, or the call of a library that it has become."""
    return i.opcode == "dot" or "__cublas" in i.attrs.get("custom_call_target", "")
