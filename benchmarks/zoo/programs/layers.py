"""Layers of image, video and quantised networks, and their gradients, as users of flax and keras write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


def _convolve(x, w, stride: int = 1, **more):
    rank = x.ndim - 2
    form = ("NHWC", "HWIO", "NHWC") if rank == 2 else ("NDHWC", "DHWIO", "NDHWC")
    return lax.conv_general_dilated(x, w, (stride,) * rank, "SAME", dimension_numbers=form, **more)


@program((8, 32, 16), (64, 256, 128), (256, 1024, 512))
def quantised_layer(draw: Draws, batch: int, width: int, out: int) -> Made:
    """A layer in s8: inputs scaled by their rows' maxima, weights by column, sums in s32."""

    def run(x, w, scale, bias):
        step = jnp.maximum(jnp.abs(x).max(1, keepdims=True), 1e-6) / 127
        q = jnp.clip(jnp.round(x / step), -127, 127).astype(jnp.int8)
        total = lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        return jax.nn.relu(total * step * scale + bias)

    w = (draw.integers(255, width, out) - 127).astype("int8")
    return run, (draw.normal(batch, width), w, draw.uniform(out, high=0.01), draw.normal(out))


@program((8, 16), (64, 128), (256, 512), tolerance=2e-2)
def mixed_precision_step(draw: Draws, batch: int, width: int) -> Made:
    """A training step with weights in f32, products in bf16, a loss scale, and a check for overflow."""

    def loss(p, x, y, scale):
        h = x.astype(jnp.bfloat16)
        for w in p:
            h = jax.nn.silu(h @ w.astype(jnp.bfloat16))
        return ((h.astype(jnp.float32) - y) ** 2).mean() * scale

    def step(p, x, y, scale):
        value, g = jax.value_and_grad(loss)(p, x, y, scale)
        g = [a / scale for a in g]
        fine = jnp.isfinite(sum(jnp.abs(a).sum() for a in g))
        return value, [jnp.where(fine, a - 0.1 * b, a) for a, b in zip(p, g, strict=True)], fine

    p = [draw.normal(width, width, scale=width**-0.5) for _ in range(3)]
    return step, (p, draw.normal(batch, width), draw.normal(batch, width), draw.uniform(low=100.0, high=200.0))


@program((1, 6, 3), (2, 12, 16), (2, 20, 32))
def video_network(draw: Draws, batch: int, size: int, width: int) -> Made:
    """Two 3-D convolutions with a pool in space and time, and the gradient."""

    def loss(p, x):
        x = jax.nn.relu(_convolve(x, p[0]))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 2, 1), (1, 2, 2, 2, 1), "VALID")
        x = jax.nn.relu(_convolve(x, p[1])).mean((1, 2, 3))
        return jnp.square(x @ p[2]).sum()

    p = (
        draw.normal(3, 3, 3, 3, width, scale=0.2),
        draw.normal(3, 3, 3, width, width, scale=0.1),
        draw.normal(width, 5),
    )
    return jax.value_and_grad(loss), (p, draw.normal(batch, size, size, size, 3))


@program((1, 16, 4), (2, 32, 16), (4, 64, 16))
def segmentation_network(draw: Draws, batch: int, size: int, width: int) -> Made:
    """Down by strides, up by a transposed convolution, a skip connection, and a loss by pixel."""

    def loss(p, x, labels):
        a = jax.nn.relu(_convolve(x, p["in"]))
        b = jax.nn.relu(_convolve(a, p["down"], 2))
        c = lax.conv_transpose(b, p["up"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        logits = _convolve(jnp.concatenate([a, jax.nn.relu(c)], -1), p["out"])
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)
        return -picked.mean()

    p = {
        "in": draw.normal(3, 3, 3, width, scale=0.3),
        "down": draw.normal(3, 3, width, 2 * width, scale=0.1),
        "up": draw.normal(2, 2, 2 * width, width, scale=0.2),
        "out": draw.normal(1, 1, 2 * width, 6, scale=0.3),
    }
    return jax.value_and_grad(loss), (p, draw.normal(batch, size, size, 3), draw.integers(6, batch, size, size))


@program((2, 8, 8), (8, 16, 32), (16, 32, 64))
def squeeze_and_excite(draw: Draws, batch: int, size: int, width: int) -> Made:
    """Channels weighed by a small network on their means; hard activations."""

    def run(x, w, u):
        s = jax.nn.relu(x.mean((1, 2)) @ w)
        return x * jax.nn.hard_sigmoid(s @ u)[:, None, None] + jax.nn.hard_swish(x)

    return run, (
        draw.normal(batch, size, size, width),
        draw.normal(width, width // 4),
        draw.normal(width // 4, width),
    )


@program((2, 9, 8), (8, 64, 64), (16, 196, 256))
def token_mixer(draw: Draws, batch: int, tokens: int, width: int) -> Made:
    """Products along tokens and along channels in turn, with norms."""

    def norm(x):
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-6)

    def run(x, p):
        for a, b, c, d in p:
            x = x + (jax.nn.gelu(norm(x).mT @ a) @ b).mT
            x = x + jax.nn.gelu(norm(x) @ c) @ d
        return x

    shapes = (tokens, 2 * tokens), (2 * tokens, tokens), (width, 2 * width), (2 * width, width)
    return run, (
        draw.normal(batch, tokens, width),
        [tuple(draw.normal(*s, scale=s[0] ** -0.5) for s in shapes) for _ in range(2)],
    )


@program((4, 8, 4), (16, 16, 16), (32, 32, 32))
def batch_norm_training(draw: Draws, batch: int, size: int, width: int) -> Made:
    """A convolution with batch statistics, running averages, and gradients through both."""

    def loss(p, state, x):
        h = _convolve(x, p["w"])
        mean, var = h.mean((0, 1, 2)), h.var((0, 1, 2))
        new = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, state, (mean, var))
        h = (h - mean) * lax.rsqrt(var + 1e-5) * p["scale"] + p["shift"]
        return (jax.nn.leaky_relu(h).mean((1, 2)) ** 2).sum(), new

    p = {"w": draw.normal(3, 3, 3, width), "scale": draw.normal(width), "shift": draw.normal(width)}
    state = draw.normal(width), draw.uniform(width, low=0.5)
    return jax.value_and_grad(loss, has_aux=True), (p, state, draw.normal(batch, size, size, 3))


@program((2, 8, 4), (8, 32, 8), (16, 64, 16))
def capsule_routing(draw: Draws, batch: int, inputs: int, outputs: int) -> Made:
    """Votes between capsules, agreed on in three rounds of softmax."""

    def squash(s):
        n = (s**2).sum(-1, keepdims=True)
        return s * n / (1 + n) / jnp.sqrt(n + 1e-7)

    def run(u, w):
        votes = jnp.einsum("bid,iodk->biok", u, w)
        logits = jnp.zeros((batch, inputs, outputs))
        for _ in range(3):
            v = squash((jax.nn.softmax(logits)[..., None] * votes).sum(1))
            logits = logits + jnp.einsum("biok,bok->bio", votes, v)
        return jnp.linalg.norm(v, axis=-1)

    return run, (draw.normal(batch, inputs, 8), draw.normal(inputs, outputs, 8, 16, scale=0.2))


@program((4, 16, 8), (64, 256, 16), (1024, 512, 32))
def vector_quantiser(draw: Draws, n: int, codes: int, width: int) -> Made:
    """Nearest code of each vector, a straight-through gradient, and running counts of codes."""

    def loss(book, x):
        d = (x**2).sum(1, keepdims=True) - 2 * x @ book.T + (book**2).sum(1)
        index = d.argmin(1)
        code = book[index]
        through = x + lax.stop_gradient(code - x)
        parts = ((code - lax.stop_gradient(x)) ** 2).mean() + 0.25 * ((x - lax.stop_gradient(code)) ** 2).mean()
        return parts + jnp.tanh(through).mean(), jnp.zeros(codes).at[index].add(1.0)

    return jax.value_and_grad(loss, (0, 1), has_aux=True), (draw.normal(codes, width), draw.normal(n, width))


@program((8, 8), (64, 64), (512, 128))
def low_rank_adapter(draw: Draws, batch: int, width: int) -> Made:
    """Gradients of thin factors beside a frozen layer, with dropout."""

    def loss(p, w, x, seed):
        key = jax.random.wrap_key_data(seed)
        kept = jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0.0)
        y = x @ w + 2.0 * (kept @ p["a"]) @ p["b"]
        return (jax.nn.softplus(y) ** 2).mean()

    p = {"a": draw.normal(width, 4, scale=0.1), "b": draw.normal(4, width, scale=0.1)}
    seed = draw.rng.integers(0, 2**32, 2).astype("uint32")
    return jax.value_and_grad(loss), (p, draw.normal(width, width, scale=0.1), draw.normal(batch, width), seed)


@program((5, 4), (64, 48), (512, 384), tolerance=5e-3)
def scaled_float8_layers(draw: Draws, n: int, width: int) -> Made:
    """Two layers whose products take 8-bit floats with a scale for each array, forward and backward."""

    def scaled(x, kind):
        most = jnp.finfo(kind).max.astype(jnp.float32)
        scale = jnp.maximum(jnp.abs(x).max(), 1e-6) / most
        return jnp.clip(x / scale, -most, most).astype(kind), scale

    def times(a, b, i, j):
        return lax.dot_general(a[0], b[0], (((i,), (j,)), ((), ())), preferred_element_type=jnp.float32) * (a[1] * b[1])

    def forward(x, w):
        a, b = scaled(x, jnp.float8_e4m3fn), scaled(w, jnp.float8_e4m3fn)
        return times(a, b, 1, 0), (a, b)

    def backward(saved, g):
        a, b = saved
        g = scaled(g, jnp.float8_e5m2)
        return times(g, b, 1, 1), times(a, g, 0, 0)

    product = jax.custom_vjp(lambda x, w: forward(x, w)[0])
    product.defvjp(forward, backward)

    def loss(weights, x):
        for w in weights:
            x = jax.nn.relu(product(x, w))
        return (x**2).mean()

    weights = [draw.normal(width, width, scale=width**-0.5) for _ in range(2)]
    return jax.value_and_grad(loss), (weights, draw.normal(n, width))
