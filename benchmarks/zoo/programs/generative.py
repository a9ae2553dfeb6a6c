"""Diffusion samplers, normalising flows, autoencoders and adversaries, as users of distrax and equinox write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


def _seed(draw: Draws):
    return draw.rng.integers(0, 2**32, 2).astype("uint32")


def _mlp(draw: Draws, *widths: int):
    return [
        (draw.normal(a, b, scale=a**-0.5), draw.normal(b, scale=0.1)) for a, b in zip(widths, widths[1:], strict=False)
    ]


def _apply(p, x):
    for w, b in p[:-1]:
        x = jnp.tanh(x @ w + b)
    return x @ p[-1][0] + p[-1][1]


@program((16, 4), (256, 16), (2048, 32))
def denoising_sampler(draw: Draws, n: int, d: int) -> Made:
    """Deterministic steps from noise to samples with a network that knows the time."""

    def run(p, x):
        alpha = jnp.cumprod(1 - jnp.linspace(1e-4, 0.05, 30))

        def step(x, t):
            time = jnp.stack([jnp.sin(t / 5.0), jnp.cos(t / 5.0)])
            noise = _apply(p, jnp.concatenate([x, jnp.broadcast_to(time, (n, 2))], 1))
            clean = jnp.clip((x - jnp.sqrt(1 - alpha[t]) * noise) / jnp.sqrt(alpha[t]), -3, 3)
            before = jnp.where(t > 0, alpha[jnp.maximum(t - 1, 0)], 1.0)
            return jnp.sqrt(before) * clean + jnp.sqrt(1 - before) * noise, clean.std()

        return lax.scan(step, x, jnp.arange(29, -1, -1))

    return run, (_mlp(draw, d + 2, 4 * d, d), draw.normal(n, d))


@program((16, 4), (256, 16), (2048, 32), tolerance=1e-3)
def score_matching(draw: Draws, n: int, d: int) -> Made:
    """Sliced score matching: a directional derivative inside a gradient."""

    def loss(p, x, v):
        score, along = jax.jvp(lambda x: _apply(p, x), (x,), (v,))
        return ((along * v).sum(1) + 0.5 * (score**2).sum(1)).mean()

    return jax.value_and_grad(loss), (_mlp(draw, d, 64, 64, d), draw.normal(n, d), draw.normal(n, d))


@program((8, 2), (256, 8), (2048, 16))
def flow_matching(draw: Draws, n: int, d: int) -> Made:
    """The loss of a velocity field between noise and data, and samples by Heun's method."""

    def velocity(p, x, t):
        return _apply(p, jnp.concatenate([x, t], 1))

    def run(p, noise, data, t):
        def loss(p):
            at = (1 - t) * noise + t * data
            return ((velocity(p, at, t) - (data - noise)) ** 2).mean()

        def step(x, t):
            now = jnp.full((n, 1), t)
            a = velocity(p, x, now)
            b = velocity(p, x + a / 20, now + 1 / 20)
            return x + (a + b) / 40, None

        return jax.value_and_grad(loss)(p), lax.scan(step, noise, jnp.arange(20) / 20)[0]

    return run, (_mlp(draw, d + 1, 32, 32, d), draw.normal(n, d), draw.normal(n, d), draw.uniform(n, 1))


@program((16, 4), (256, 8), (4096, 16))
def coupling_flow(draw: Draws, n: int, d: int) -> Made:
    """Affine couplings with alternating halves: log densities, gradients, and the inverse."""

    def forward(p, x):
        total = jnp.zeros(n)
        for k, net in enumerate(p):
            a, b = jnp.split(x, 2, 1)
            a, b = (a, b) if k % 2 else (b, a)
            shift, scale = jnp.split(_apply(net, a), 2, 1)
            b = b * jnp.exp(jnp.tanh(scale)) + shift
            total = total + jnp.tanh(scale).sum(1)
            x = jnp.concatenate([a, b] if k % 2 else [b, a], 1)
        return x, total

    def loss(p, x):
        z, total = forward(p, x)
        return (0.5 * (z**2).sum(1) - total).mean()

    return jax.value_and_grad(loss), ([_mlp(draw, d // 2, 32, d) for _ in range(6)], draw.normal(n, d))


@program((8, 4), (128, 8), (1024, 24))
def autoregressive_flow(draw: Draws, n: int, d: int) -> Made:
    """Masked layers give all densities at once; samples need a loop over dimensions."""

    def net(p, x):
        order = jnp.arange(d)
        first = jnp.arange(4 * d) % d
        h = jnp.tanh(x @ (p[0] * (order[:, None] <= first)) + p[1])
        out = (h @ (p[2].reshape(4 * d, 2, d) * (first[:, None, None] < order)).reshape(4 * d, 2 * d)) * 0.3
        return out[:, :d], out[:, d:]

    def run(p, z, x):
        shift, scale = net(p, x)
        density = -0.5 * (((x - shift) * jnp.exp(-scale)) ** 2 + 2 * scale).sum(1)

        def fill(k, x):
            shift, scale = net(p, x)
            column = z * jnp.exp(scale) + shift
            return x.at[:, k].set(lax.dynamic_index_in_dim(column, k, 1, False))

        return density, lax.fori_loop(0, d, fill, jnp.zeros_like(x))

    p = draw.normal(d, 4 * d, scale=0.3), draw.normal(4 * d), draw.normal(4 * d, 2 * d, scale=0.1)
    return run, (p, draw.normal(n, d), draw.normal(n, d))


@program((8, 2), (128, 4), (1024, 8))
def continuous_flow(draw: Draws, n: int, d: int) -> Made:
    """A density carried along an ODE, its trace estimated with random signs, and the gradient."""

    def loss(p, x, signs):
        def field(x, t):
            return _apply(p, jnp.concatenate([x, jnp.broadcast_to(t, (n, 1))], 1))

        def step(state, t):
            x, density = state
            v, back = jax.vjp(lambda x: field(x, t), x)
            trace = (back(signs)[0] * signs).sum(1)
            return (x + 0.1 * v, density - 0.1 * trace), None

        x, density = lax.scan(step, (x, jnp.zeros(n)), jnp.arange(10) / 10)[0]
        return (0.5 * (x**2).sum(1) - density).mean()

    signs = draw.rng.choice([-1.0, 1.0], (n, d)).astype("float32")
    return jax.value_and_grad(loss), (_mlp(draw, d + 1, 32, d), draw.normal(n, d), signs)


@program((1, 8, 4), (4, 16, 8), (8, 32, 16), tolerance=1e-3)
def invertible_convolution(draw: Draws, batch: int, size: int, width: int) -> Made:
    """Squeezed images, channels mixed by a matrix whose determinant counts, per-channel scales."""

    def loss(p, x):
        x = x.reshape(batch, size // 2, 2, size // 2, 2, -1).transpose(0, 1, 3, 2, 4, 5)
        x = x.reshape(batch, size // 2, size // 2, width)
        total = 0.0
        for w, scale in p:
            x = (x * jnp.exp(scale)) @ w
            total = total + (size // 2) ** 2 * (jnp.linalg.slogdet(w)[1] + scale.sum())
        return 0.5 * (x**2).sum() / batch - total

    p = [(jnp.eye(width) + draw.normal(width, width, scale=0.1), draw.normal(width, scale=0.1)) for _ in range(3)]
    return jax.value_and_grad(loss), (p, draw.normal(batch, size, size, width // 4))


@program((8, 12, 2), (64, 100, 8), (256, 784, 16))
def variational_autoencoder(draw: Draws, batch: int, width: int, latent: int) -> Made:
    """Binary pixels, a reparametrised latent, the evidence bound and its gradient."""

    def loss(p, x, seed):
        mean, log_var = jnp.split(_apply(p["encode"], x), 2, 1)
        noise = jax.random.normal(jax.random.wrap_key_data(seed), mean.shape)
        logits = _apply(p["decode"], mean + jnp.exp(0.5 * log_var) * noise)
        fit = -(x * jax.nn.log_sigmoid(logits) + (1 - x) * jax.nn.log_sigmoid(-logits)).sum(1)
        return (fit + 0.5 * (jnp.exp(log_var) + mean**2 - 1 - log_var).sum(1)).mean()

    p = {"encode": _mlp(draw, width, 64, 2 * latent), "decode": _mlp(draw, latent, 64, width)}
    x = (draw.uniform(batch, width) < 0.3).astype("float32")
    return jax.value_and_grad(loss), (p, x, _seed(draw))


@program((8, 4), (64, 16), (512, 64), tolerance=1e-3)
def adversarial_steps(draw: Draws, batch: int, width: int) -> Made:
    """A critic with a gradient penalty (a gradient of a gradient), then a step of the generator."""

    def critic_loss(c, g, real, noise, mix):
        fake = _apply(g, noise)
        middle = mix * real + (1 - mix) * fake
        slope = jax.vmap(jax.grad(lambda x: _apply(c, x)[0]))(middle)
        penalty = ((jnp.sqrt((slope**2).sum(1) + 1e-8) - 1) ** 2).mean()
        return (_apply(c, fake) - _apply(c, real)).mean() + 10 * penalty

    def step(c, g, real, noise, mix):
        c = jax.tree.map(lambda a, b: a - 0.01 * b, c, jax.grad(critic_loss)(c, g, real, noise, mix))
        slope = jax.grad(lambda g: -_apply(c, _apply(g, noise)).mean())(g)
        return c, jax.tree.map(lambda a, b: a - 0.01 * b, g, slope)

    critic, generator = _mlp(draw, width, 64, 1), _mlp(draw, 8, 64, width)
    return step, (critic, generator, draw.normal(batch, width), draw.normal(batch, 8), draw.uniform(batch, 1))
