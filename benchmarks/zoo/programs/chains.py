"""Chains, particles and filters, as users of numpyro, blackjax and dynamax write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import stats

from benchmarks.zoo.catalogue import Draws, Made, program


def _keys(draw: Draws):
    return draw.rng.integers(0, 2**32, 2).astype("uint32")


@program((16, 4, 5), (128, 10, 20), (1024, 20, 50), tolerance=5e-3)
def parallel_tempering(draw: Draws, chains: int, rungs: int, steps: int) -> Made:
    """Chains at several temperatures on a two-humped density, with swaps of neighbours."""

    def logp(x):
        return jnp.logaddexp(-0.5 * ((x - 2) ** 2).sum(-1), -0.5 * ((x + 2) ** 2).sum(-1))

    def run(seed, x):
        beta = 1 / (1 + jnp.arange(rungs))

        def step(x, key):
            k1, k2, k3 = jax.random.split(key, 3)
            new = x + 0.5 * jax.random.normal(k1, x.shape)
            accept = jnp.log(jax.random.uniform(k2, x.shape[:2])) < beta * (logp(new) - logp(x))
            x = jnp.where(accept[..., None], new, x)
            gain = (beta[:-1] - beta[1:]) * (logp(x[:, 1:]) - logp(x[:, :-1]))
            swap = (jnp.log(jax.random.uniform(k3, gain.shape)) < gain) & (jnp.arange(rungs - 1) % 2 == 0)
            up, down = jnp.pad(swap, ((0, 0), (0, 1))), jnp.pad(swap, ((0, 0), (1, 0)))
            x = jnp.where(up[..., None], jnp.roll(x, -1, 1), jnp.where(down[..., None], jnp.roll(x, 1, 1), x))
            return x, x[:, 0].mean(0)

        return lax.scan(step, x, jax.random.split(jax.random.wrap_key_data(seed), steps))[1]

    return run, (_keys(draw), draw.normal(chains, rungs, 2))


@program((8, 5), (100, 20), (2000, 50), tolerance=5e-3)
def elliptical_slice(draw: Draws, n: int, steps: int) -> Made:
    """A Gaussian prior's ellipse searched by a bracket that shrinks, a loop of unknown length each step."""

    def run(seed, root, y):
        def logp(f):
            return stats.norm.logpdf(y, f, 0.7).sum()

        def step(f, key):
            k1, k2, k3 = jax.random.split(key, 3)
            nu = root * jax.random.normal(k1, f.shape)
            level = logp(f) + jnp.log(jax.random.uniform(k2))
            angle = jax.random.uniform(k3, maxval=2 * jnp.pi)

            def shrink(state):
                angle, low, high, k = state
                low, high = jnp.where(angle < 0, angle, low), jnp.where(angle < 0, high, angle)
                return jax.random.uniform(k, minval=low, maxval=high), low, high, jax.random.split(k)[0]

            place = lambda a: f * jnp.cos(a) + nu * jnp.sin(a)  # noqa: E731
            start = angle, angle - 2 * jnp.pi, angle, key
            angle = lax.while_loop(lambda s: logp(place(s[0])) <= level, shrink, start)[0]
            return place(angle), logp(f)

        return lax.scan(step, jnp.zeros(n), jax.random.split(jax.random.wrap_key_data(seed), steps))

    return run, (_keys(draw), draw.uniform(n, low=0.5), draw.normal(n))


@program((32, 2, 3), (512, 4, 10), (8192, 8, 20), tolerance=5e-3)
def tempered_particles(draw: Draws, n: int, d: int, stages: int) -> Made:
    """Sequential Monte Carlo from prior to posterior: weights, resampling by counts, Langevin moves."""

    def run(seed, x, data):
        def loglike(x):
            return -0.5 * ((data - x) ** 2).sum() - 0.1 * (x**4).sum()

        def stage(x, given):
            key, t = given
            k1, k2, k3 = jax.random.split(key, 3)
            w = jax.nn.softmax(jax.vmap(loglike)(x) / stages)
            counts = jnp.cumsum(w) * n
            index = jnp.searchsorted(counts, jnp.arange(n) + jax.random.uniform(k1))
            x = x[jnp.clip(index, 0, n - 1)]
            g = jax.vmap(jax.grad(lambda x: t * loglike(x) - 0.5 * (x**2).sum()))(x)
            x = x + 0.02 * g + 0.2 * jax.random.normal(k2, x.shape)
            return x, 1 / (w**2).sum()

        times = (jnp.arange(stages) + 1) / stages
        return lax.scan(stage, x, (jax.random.split(jax.random.wrap_key_data(seed), stages), times))

    return run, (_keys(draw), draw.normal(n, d), draw.normal(d))


@program((8, 4), (64, 20), (512, 20))
def spin_lattice(draw: Draws, n: int, sweeps: int) -> Made:
    """Ising spins on a torus: two colours of a checkerboard in turn, with energies."""

    def run(seed, spin):
        black = (jnp.arange(n)[:, None] + jnp.arange(n)) % 2 == 0

        def sweep(spin, key):
            for colour, k in zip((black, ~black), jax.random.split(key), strict=True):
                around = sum(jnp.roll(spin, s, axis) for s in (1, -1) for axis in (0, 1))
                up = jax.random.uniform(k, (n, n)) < jax.nn.sigmoid(0.8 * around)
                spin = jnp.where(colour, jnp.where(up, 1, -1), spin)
            return spin, -(spin * (jnp.roll(spin, 1, 0) + jnp.roll(spin, 1, 1))).mean()

        return lax.scan(sweep, spin, jax.random.split(jax.random.wrap_key_data(seed), sweeps))

    return run, (_keys(draw), draw.rng.choice([-1, 1], (n, n)).astype("int32"))


@program((10, 2), (100, 4), (1000, 6), wide=True)
def smoother(draw: Draws, length: int, d: int) -> Made:
    """A linear filter forward and a Rauch-Tung-Striebel pass backward, in f64."""

    def run(a, y):
        q, r = 0.1 * jnp.eye(d), 0.5 * jnp.eye(d)

        def forward(state, y):
            m, p = a @ state[0], a @ state[1] @ a.T + q
            gain = jnp.linalg.solve(p + r, p).T
            new = m + gain @ (y - m), p - gain @ p
            return new, (new, (m, p))

        (filtered, predicted) = lax.scan(forward, (jnp.zeros(d), jnp.eye(d)), y)[1]

        def backward(state, given):
            (m, p), (after_m, after_p) = given
            gain = jnp.linalg.solve(after_p, a @ p).T
            new = m + gain @ (state[0] - after_m), p + gain @ (state[1] - after_p) @ gain.T
            return new, new[0]

        last = jax.tree.map(lambda x: x[-1], filtered)
        given = jax.tree.map(lambda x: x[:-1], filtered), jax.tree.map(lambda x: x[1:], predicted)
        return lax.scan(backward, last, given, reverse=True)[1]

    return run, (0.9 * jnp.eye(d) + 0.1 * draw.normal(d, d, dtype="float64"), draw.normal(length, d, dtype="float64"))


@program((10, 2), (100, 4), (500, 8), tolerance=2e-3)
def sigma_point_filter(draw: Draws, length: int, d: int) -> Made:
    """An unscented filter: points along a Cholesky factor through a non-linear motion."""

    def run(y):
        def spread(m, p):
            root = jnp.linalg.cholesky(d * p + 1e-4 * jnp.eye(d))
            return jnp.concatenate([m + root.T, m - root.T])

        def step(state, y):
            x = jax.vmap(lambda x: x + 0.1 * jnp.sin(jnp.roll(x, 1)))(spread(*state))
            m = x.mean(0)
            p = (x - m).T @ (x - m) / (2 * d) + 0.05 * jnp.eye(d)
            x = spread(m, p)
            z = jnp.tanh(x)
            mz = z.mean(0)
            s = (z - mz).T @ (z - mz) / (2 * d) + 0.2 * jnp.eye(d)
            gain = jnp.linalg.solve(s, (z - mz).T @ (x - m) / (2 * d)).T
            return (m + gain @ (y - mz), p - gain @ s @ gain.T), m

        return lax.scan(step, (jnp.zeros(d), jnp.eye(d)), y)[1]

    return run, (jnp.tanh(draw.normal(length, d)),)
