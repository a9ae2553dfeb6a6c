"""Steps of optimisers and training loops, as users of optax write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


def _network(draw: Draws, width: int):
    return [(draw.normal(a, b, scale=0.2), draw.normal(b)) for a, b in ((16, width), (width, width), (width, 4))]


def _loss(p, x, y):
    for w, b in p[:-1]:
        x = jax.nn.gelu(x @ w + b)
    return ((x @ p[-1][0] + p[-1][1] - y) ** 2).mean()


@program((8, 16), (128, 256))
def adam_steps(draw: Draws, batch: int, width: int) -> Made:
    """Steps of Adam with clipping and a schedule, inside a loop."""

    def run(p, x, y):
        def step(state, t):
            p, m, v = state
            value, g = jax.value_and_grad(_loss)(p, x[t], y[t])
            norm = jnp.sqrt(sum((a**2).sum() for a in jax.tree.leaves(g)))
            g = jax.tree.map(lambda a: a * jnp.minimum(1.0, 1.0 / norm), g)
            m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
            v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
            rate = 1e-3 * (1 + jnp.cos(jnp.pi * t / 10))
            p = jax.tree.map(
                lambda a, b, c: a - rate * (b / (1 - 0.9 ** (t + 1)) / (jnp.sqrt(c / (1 - 0.999 ** (t + 1))) + 1e-8)),
                p,
                m,
                v,
            )
            return (p, m, v), value

        zero = jax.tree.map(jnp.zeros_like, p)
        return lax.scan(step, (p, zero, zero), jnp.arange(10))

    return run, (_network(draw, width), draw.normal(10, batch, 16), draw.normal(10, batch, 4))


@program((64,), (512,))
def lion_step(draw: Draws, width: int) -> Made:
    """One step of Lion with weight decay, state given and returned."""

    def step(p, m, x, y):
        g = jax.grad(_loss)(p, x, y)
        update = jax.tree.map(lambda m, g: jnp.sign(0.9 * m + 0.1 * g), m, g)
        m = jax.tree.map(lambda m, g: 0.99 * m + 0.01 * g, m, g)
        return jax.tree.map(lambda p, u: p - 1e-4 * (u + 0.1 * p), p, update), m

    p = _network(draw, width)
    return step, (p, jax.tree.map(jnp.zeros_like, p), draw.normal(32, 16), draw.normal(32, 4))


@program((16,), (96,), tolerance=2e-3)
def shampoo_step(draw: Draws, n: int) -> Made:
    """Inverse fourth roots of two statistics by Newton iterations."""

    def root(a):
        a = a / jnp.trace(a)

        def step(_, state):
            y, z = state
            t = 0.5 * (3 * jnp.eye(n) - z @ y)
            return y @ t, t @ z

        return lax.fori_loop(0, 8, step, (a, jnp.eye(n)))[1]

    def run(w, g, left, right):
        left, right = left + g @ g.T, right + g.T @ g
        return w - 0.1 * root(left) @ g @ root(right), left, right

    return run, (draw.normal(n, n), draw.normal(n, n), jnp.eye(n), jnp.eye(n))


@program((5, 8, 8), (20, 64, 32))
def ensemble(draw: Draws, members: int, batch: int, width: int) -> Made:
    """Gradients of many small networks at once."""

    def run(p, x, y):
        return jax.vmap(jax.value_and_grad(_loss), (0, None, None))(p, x, y)

    p = jax.tree.map(lambda *a: jnp.stack(a), *[_network(draw, width) for _ in range(members)])
    return run, (p, draw.normal(batch, 16), draw.normal(batch, 4))


@program((16, 16), (128, 128))
def per_example_gradients(draw: Draws, batch: int, width: int) -> Made:
    """Clipped gradients of single examples, summed, with noise."""

    def run(seed, p, x, y):
        g = jax.vmap(jax.grad(_loss), (None, 0, 0))(p, x[:, None], y[:, None])
        norm = jnp.sqrt(sum((a.reshape(batch, -1) ** 2).sum(1) for a in jax.tree.leaves(g)))
        scale = jnp.minimum(1.0, 1.0 / norm)
        key = jax.random.wrap_key_data(seed)
        return jax.tree.map(lambda a: jnp.tensordot(scale, a, 1) + jax.random.normal(key, a.shape[1:]), g)

    arrays = _network(draw, width), draw.normal(batch, 16), draw.normal(batch, 4)
    return run, (draw.rng.integers(0, 2**32, 2).astype("uint32"), *arrays)


@program((4, 10), (16, 100))
def evolution_strategy(draw: Draws, population: int, steps: int) -> Made:
    """Generations of perturbed controllers, ranked, on a pole to balance."""

    def reward(w):
        def step(s, _):
            force = jnp.tanh(s @ w)
            x, v, a, o = s
            alpha = 9.8 * jnp.sin(a) - force * jnp.cos(a)
            s = jnp.stack([x + 0.02 * v, v + 0.02 * force, a + 0.02 * o, o + 0.02 * alpha])
            return s, jnp.cos(a)

        return lax.scan(step, jnp.array([0.0, 0.0, 0.1, 0.0]), None, length=steps)[1].sum()

    def run(seed, w):
        def generation(w, key):
            noise = jax.random.normal(key, (population, 4))
            value = jax.vmap(reward)(w + 0.1 * noise)
            rank = jnp.argsort(jnp.argsort(value)) / (population - 1) - 0.5
            return w + 0.1 * rank @ noise, value.max()

        return lax.scan(generation, w, jax.random.split(jax.random.wrap_key_data(seed), 5))

    return run, (draw.rng.integers(0, 2**32, 2).astype("uint32"), draw.normal(4))
