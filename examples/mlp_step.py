"""One step of training a small network, for `heron view examples/mlp_step.py:step`: lines of this file are shown there."""

import jax
import jax.numpy as jnp


def loss(parameters, x, y):
    w1, b1, w2, b2 = parameters
    hidden = jax.nn.gelu(x @ w1 + b1)
    hidden = hidden / jnp.sqrt(jnp.mean(hidden**2, axis=1, keepdims=True) + 1e-6)
    scores = jax.nn.log_softmax(hidden @ w2 + b2)
    return -jnp.mean(jnp.take_along_axis(scores, y[:, None], axis=1))


def step(w1: "f32[784,512]", b1: "f32[512]", w2: "f32[512,10]", b2: "f32[10]", x: "f32[256,784]", y: "s32[256]"):
    parameters = (w1, b1, w2, b2)
    error, slopes = jax.value_and_grad(loss)(parameters, x, y)
    return error, *(p - 0.1 * s for p, s in zip(parameters, slopes, strict=True))
