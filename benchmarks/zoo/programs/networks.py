"""Layers and losses of neural networks with their gradients, as users of flax, haiku, equinox and rlax write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program

_IMAGES = ("NHWC", "HWIO", "NHWC")


def _conv(x, w, stride=1, groups=1, padding="SAME"):
    return lax.conv_general_dilated(
        x, w, (stride, stride), padding, dimension_numbers=_IMAGES, feature_group_count=groups
    )


@program((2, 16, 8), (8, 32, 16))
def pooling_network(draw: Draws, batch: int, size: int, width: int) -> Made:
    """Convolutions with max-pooling of 3 x 3 windows, and its gradient."""

    def loss(p, x, y):
        for w in p["conv"]:
            x = jax.nn.relu(_conv(x, w))
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        logits = x.reshape(batch, -1) @ p["dense"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

    p = {
        "conv": [draw.normal(3, 3, 3, width, scale=0.2), draw.normal(3, 3, width, 2 * width, scale=0.1)],
        "dense": draw.normal((size // 4) ** 2 * 2 * width, 10, scale=0.1),
    }
    return jax.value_and_grad(loss), (p, draw.normal(batch, size, size, 3), draw.integers(10, batch))


@program((2, 14, 13), (8, 28, 96))
def inverted_residual(draw: Draws, batch: int, size: int, width: int) -> Made:
    """Pointwise and depthwise convolutions with squeeze and excitation; odd widths too."""

    def run(p, x):
        h = jax.nn.silu(_conv(x, p["up"]))
        h = jax.nn.silu(_conv(h, p["depth"], groups=h.shape[-1]))
        gate = jax.nn.sigmoid(jax.nn.silu(h.mean((1, 2)) @ p["squeeze"]) @ p["excite"])
        return x + _conv(h * gate[:, None, None], p["down"])

    p = {
        "up": draw.normal(1, 1, width, 4 * width, scale=0.1),
        "depth": draw.normal(5, 5, 1, 4 * width, scale=0.1),
        "squeeze": draw.normal(4 * width, width, scale=0.1),
        "excite": draw.normal(width, 4 * width, scale=0.1),
        "down": draw.normal(1, 1, 4 * width, width, scale=0.1),
    }
    return run, (p, draw.normal(batch, size, size, width))


@program((2, 100, 7), (4, 2000, 33), (4, 2000, 128))
def temporal_convolutions(draw: Draws, batch: int, length: int, width: int) -> Made:
    """Dilated causal convolutions in one dimension, dense and depthwise, with their gradient."""

    def loss(p, x):
        for n, (dense, depth) in enumerate(p):
            kept = x
            for w, groups in ((depth, width), (dense, 1)):
                x = lax.conv_general_dilated(
                    jax.nn.gelu(x),
                    w,
                    (1,),
                    [(2 * 2**n, 0)],
                    rhs_dilation=(2**n,),
                    dimension_numbers=("NWC", "WIO", "NWC"),
                    feature_group_count=groups,
                )
            x = x + kept
        return (x**2).mean()

    p = [(draw.normal(3, width, width, scale=0.1), draw.normal(3, 1, width, scale=0.3)) for _ in range(3)]
    return jax.value_and_grad(loss), (p, draw.normal(batch, length, width))


@program((2, 4, 32, 16), (4, 8, 300, 64))
def grouped_attention(draw: Draws, batch: int, heads: int, length: int, width: int) -> Made:
    """Causal attention with rotary positions and keys that heads share, and its gradient."""

    def rotate(x):
        angle = jnp.arange(length)[:, None] / 10000 ** (jnp.arange(width // 2) / (width // 2))
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)

    def loss(q, k, v):
        q, k = rotate(q), rotate(k)
        q = q.reshape(batch, heads // 2, 2, length, width)
        score = jnp.einsum("bgrqd,bgkd->bgrqk", q, k) / width**0.5
        score = jnp.where(jnp.tril(jnp.ones((length, length), bool)), score, -1e9)
        return (jnp.einsum("bgrqk,bgkd->bgrqd", jax.nn.softmax(score), v) ** 2).mean()

    shared = (batch, heads // 2, length, width)
    return jax.grad(loss, (0, 1, 2)), (
        draw.normal(batch, heads, length, width),
        draw.normal(*shared),
        draw.normal(*shared),
    )


@program((2, 32, 8, 4), (4, 512, 64, 16))
def linear_attention(draw: Draws, batch: int, length: int, width: int, chunk: int) -> Made:
    """Attention without softmax, chunk by chunk, with a state that decays."""

    def run(q, k, v):
        cut = lambda a: a.reshape(batch, length // chunk, chunk, width).swapaxes(0, 1)  # noqa: E731
        decay = 0.9 ** jnp.arange(chunk)
        mask = jnp.tril(decay[:, None] / decay[None])

        def step(state, given):
            q, k, v = given
            inside = jnp.einsum("bqd,bkd->bqk", q, k) * mask
            out = inside @ v + jnp.einsum("bqd,bde->bqe", q * decay[:, None], state)
            return state * 0.9**chunk + jnp.einsum("bkd,bke->bde", k, v), out

        return lax.scan(step, jnp.zeros((batch, width, width)), (cut(q), cut(k), cut(v)))[1]

    return run, tuple(draw.normal(batch, length, width) for _ in range(3))


@program((16, 4, 8), (512, 8, 64))
def mixture_of_experts(draw: Draws, tokens: int, experts: int, width: int) -> Made:
    """Tokens to their two best experts by one-hot dispatch, and its gradient."""

    def loss(p, x):
        probability = jax.nn.softmax(x @ p["gate"])
        best, index = lax.top_k(probability, 2)
        mask = jax.nn.one_hot(index, experts).sum(1)
        place = (jnp.cumsum(mask, 0) - 1) * mask
        capacity = max(2, 3 * tokens // experts)
        dispatch = jax.nn.one_hot(place.astype(int), capacity) * mask[..., None]
        inside = jax.nn.gelu(jnp.einsum("tec,td,edf->ecf", dispatch, x, p["in"]))
        weight = (jax.nn.one_hot(index, experts) * best[..., None]).sum(1)
        return (jnp.einsum("tec,te,ecf,efd->td", dispatch, weight, inside, p["out"]) ** 2).mean()

    p = {
        "gate": draw.normal(width, experts, scale=0.3),
        "in": draw.normal(experts, width, 2 * width, scale=0.1),
        "out": draw.normal(experts, 2 * width, width, scale=0.1),
    }
    return jax.value_and_grad(loss), (p, draw.normal(tokens, width))


@program((32, 4), (256, 64))
def policy_loss(draw: Draws, steps: int, actors: int) -> Made:
    """PPO: generalised advantages by a reverse scan, clipped ratios, entropy; with its gradient."""

    def loss(p, x, action, reward, done, old):
        hidden = jnp.tanh(x @ p["hidden"])
        logits, value = jax.nn.log_softmax(hidden @ p["policy"]), (hidden @ p["value"])[..., 0]
        following = jnp.concatenate([lax.stop_gradient(value[1:]), jnp.zeros((1, actors))])
        delta = reward + 0.99 * following * (1 - done) - lax.stop_gradient(value)

        def back(a, given):
            d, e = given
            a = d + 0.95 * 0.99 * (1 - e) * a
            return a, a

        advantage = lax.scan(back, jnp.zeros(actors), (delta, done), reverse=True)[1]
        target = advantage + lax.stop_gradient(value)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        logp = jnp.take_along_axis(logits, action[..., None], -1)[..., 0]
        ratio = jnp.exp(logp - old)
        clipped = jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage)
        entropy = -(jnp.exp(logits) * logits).sum(-1)
        return -clipped.mean() + 0.5 * ((value - target) ** 2).mean() - 0.01 * entropy.mean()

    p = {"hidden": draw.normal(8, 64, scale=0.3), "policy": draw.normal(64, 5, scale=0.3), "value": draw.normal(64, 1)}
    done = (draw.uniform(steps, actors) < 0.05).astype("float32")
    arrays = draw.normal(steps, actors, 8), draw.integers(5, steps, actors), draw.normal(steps, actors), done
    return jax.value_and_grad(loss), (p, *arrays, -draw.uniform(steps, actors, high=2.0))


@program((64, 51), (2048, 51))
def distributional_value_loss(draw: Draws, batch: int, atoms: int) -> Made:
    """The projection of a categorical value distribution (C51) onto its support, and its gradient."""

    def loss(logits, following, reward):
        z = jnp.linspace(-10.0, 10.0, atoms)
        target = jnp.clip(reward[:, None] + 0.99 * z, -10, 10)
        width = z[1] - z[0]
        spread = jnp.clip(1 - jnp.abs(target[:, None, :] - z[None, :, None]) / width, 0, 1)
        projected = lax.stop_gradient((spread * jax.nn.softmax(following)[:, None]).sum(-1))
        return -(projected * jax.nn.log_softmax(logits)).sum(-1).mean()

    return jax.value_and_grad(loss), (draw.normal(batch, atoms), draw.normal(batch, atoms), draw.normal(batch))


@program((2, 8, 4), (8, 32, 32))
def group_norm_residual(draw: Draws, batch: int, size: int, width: int) -> Made:
    """A residual block with group norm and a strided convolution, and its gradient."""

    def norm(x, scale):
        groups = x.reshape(batch, -1, 4, x.shape[-1] // 4)
        mean, var = groups.mean((1, 3), keepdims=True), groups.var((1, 3), keepdims=True)
        return ((groups - mean) * lax.rsqrt(var + 1e-5)).reshape(x.shape) * scale

    def loss(p, x):
        h = _conv(jax.nn.silu(norm(x, p["first"])), p["conv1"], stride=2)
        h = _conv(jax.nn.silu(norm(h, p["second"])), p["conv2"])
        return ((h + _conv(x, p["short"], stride=2)) ** 2).mean()

    p = {
        "first": draw.normal(width),
        "second": draw.normal(2 * width),
        "conv1": draw.normal(3, 3, width, 2 * width, scale=0.2),
        "conv2": draw.normal(3, 3, 2 * width, 2 * width, scale=0.1),
        "short": draw.normal(1, 1, width, 2 * width, scale=0.2),
    }
    return jax.grad(loss), (p, draw.normal(batch, size, size, width))


@program((64,), (1024,))
def implicit_field(draw: Draws, points: int) -> Made:
    """A network of sines with its spatial gradient and Laplacian per point."""

    def field(p, x):
        for w, b in p[:-1]:
            x = jnp.sin(3 * (x @ w + b))
        return (x @ p[-1][0] + p[-1][1])[0]

    def loss(p, x):
        grad = jax.vmap(jax.grad(field, 1), (None, 0))(p, x)
        laplace = jax.vmap(lambda x: jnp.trace(jax.hessian(field, 1)(p, x)))(x)
        return ((jnp.sqrt((grad**2).sum(-1) + 1e-9) - 1) ** 2).mean() + (laplace**2).mean() * 1e-3

    p = [(draw.normal(a, b, scale=0.3), draw.normal(b)) for a, b in ((3, 32), (32, 32), (32, 1))]
    return loss, (p, draw.normal(points, 3))
