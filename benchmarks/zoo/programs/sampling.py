"""Markov chains, filters and mixtures, as users of numpyro, blackjax and distrax write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import stats

from benchmarks.zoo.catalogue import Draws, Made, program


def _seed(draw: Draws):
    return draw.rng.integers(0, 2**32, 2).astype("uint32")


@program((100, 5), (1000, 20), tolerance=5e-3)
def hamiltonian_monte_carlo(draw: Draws, n: int, d: int) -> Made:
    """Logistic regression: leapfrog steps with an accept test."""

    def logp(w, x, y):
        return -jnp.logaddexp(0.0, -y * (x @ w)).sum() - 0.5 * (w**2).sum()

    def sample(seed, w, x, y):
        grad = jax.grad(logp)

        def step(w, key):
            k1, k2 = jax.random.split(key)
            p = jax.random.normal(k1, w.shape)

            def leap(_, state):
                q, r = state
                r = r + 0.005 * grad(q, x, y)
                q = q + 0.01 * r
                return q, r + 0.005 * grad(q, x, y)

            q, r = lax.fori_loop(0, 8, leap, (w, p))
            delta = logp(q, x, y) - logp(w, x, y) + 0.5 * ((p**2).sum() - (r**2).sum())
            w = jnp.where(jnp.log(jax.random.uniform(k2)) < delta, q, w)
            return w, w[0]

        return lax.scan(step, w, jax.random.split(jax.random.wrap_key_data(seed), 20))

    x = draw.normal(n, d)
    return sample, (_seed(draw), draw.normal(d, scale=0.1), x, jnp.sign(x[:, 0] + 0.1))


@program((4, 6), (64, 8), wide=True, tolerance=1e-6)
def no_u_turn_step(draw: Draws, chains: int, d: int) -> Made:
    """Doubling trajectories until a U-turn, mapped over chains, in f64."""

    def logp(q):
        return -0.5 * (q**2 / jnp.arange(1.0, d + 1)).sum()

    def one(q, p):
        def body(state):
            left, right, best, depth, _ = state

            def leap(z, _):
                q, p = z
                p = p + 0.05 * jax.grad(logp)(q)
                q = q + 0.1 * p
                return (q, p + 0.05 * jax.grad(logp)(q)), logp(q) - 0.5 * (p**2).sum()

            right, energies = lax.scan(leap, right, None, length=4)
            left = (left[0] - 0.4 * left[1], left[1] - 0.4 * jax.grad(logp)(left[0]))
            best = jnp.where(energies.max() > logp(best), right[0], best)
            span = right[0] - left[0]
            return left, right, best, depth + 1, (span @ left[1] > 0) & (span @ right[1] > 0)

        start = ((q, p), (q, p), q, 0, True)
        return lax.while_loop(lambda s: s[4] & (s[3] < 8), body, start)[2]

    return jax.vmap(one), (draw.normal(chains, d, dtype="float64"), draw.normal(chains, d, dtype="float64"))


@program((256, 50), (8192, 50), tolerance=1e-2)
def particle_filter(draw: Draws, n: int, steps: int) -> Made:
    """A bootstrap filter with systematic resampling."""

    def run(seed, observed):
        def step(carry, given):
            x, evidence = carry
            key, y = given
            k1, k2 = jax.random.split(key)
            x = 0.9 * x + jax.random.normal(k1, (n,)) * 0.5
            w = stats.norm.logpdf(y, x, 0.7)
            weights = jax.nn.softmax(w)
            places = (jnp.arange(n) + jax.random.uniform(k2)) / n
            index = jnp.clip(jnp.searchsorted(jnp.cumsum(weights), places), 0, n - 1)
            return (x[index], evidence + jax.nn.logsumexp(w) - jnp.log(n)), (weights * x).sum()

        keys = jax.random.split(jax.random.wrap_key_data(seed), steps)
        return lax.scan(step, (jnp.zeros(n), 0.0), (keys, observed))[0][1]

    return run, (_seed(draw), draw.normal(steps))


@program((1000, 3, 2), (20000, 10, 6))
def gaussian_mixture(draw: Draws, n: int, k: int, d: int) -> Made:
    """Expectation maximisation with full covariances."""

    def run(x, mean):
        def step(state, _):
            mean, cov, weight = state
            chol = jnp.linalg.cholesky(cov)
            diff = x[:, None] - mean
            white = jax.vmap(lambda c, v: jax.scipy.linalg.solve_triangular(c, v.T, lower=True).T, (0, 1), 1)(
                chol, diff
            )
            logs = jnp.log(weight) - 0.5 * (white**2).sum(-1) - jnp.log(jnp.diagonal(chol, axis1=1, axis2=2)).sum(-1)
            r = jax.nn.softmax(logs, -1)
            total = r.sum(0)
            mean = r.T @ x / total[:, None]
            diff = x[:, None] - mean
            cov = jnp.einsum("nk,nki,nkj->kij", r, diff, diff) / total[:, None, None] + 1e-3 * jnp.eye(d)
            return (mean, cov, total / n), jax.nn.logsumexp(logs, -1).mean()

        return lax.scan(step, (mean, jnp.stack([jnp.eye(d)] * k), jnp.ones(k) / k), None, length=5)

    return run, (draw.normal(n, d), draw.normal(k, d))


@program((40,), (400,), wide=True)
def gaussian_process(draw: Draws, n: int) -> Made:
    """Marginal likelihood of a Matérn kernel and its gradient, in f64."""

    def loss(p, x, y):
        r = jnp.sqrt(((x[:, None] - x[None]) ** 2).sum(-1) + 1e-12) / jnp.exp(p[0])
        k = jnp.exp(p[1]) * (1 + jnp.sqrt(3.0) * r) * jnp.exp(-jnp.sqrt(3.0) * r) + jnp.exp(p[2]) * jnp.eye(n)
        c = jax.scipy.linalg.cho_factor(k, lower=True)
        return 0.5 * y @ jax.scipy.linalg.cho_solve(c, y) + jnp.log(jnp.diagonal(c[0])).sum()

    x = draw.normal(n, 2, dtype="float64")
    return jax.value_and_grad(loss), (jnp.array([0.0, 0.0, -2.0]), x, jnp.sin(x[:, 0]))


@program((500, 2), (20000, 8))
def random_walk_metropolis(draw: Draws, chains: int, d: int) -> Made:
    """Many chains of a banana-shaped density."""

    def logp(q):
        return -0.5 * (q[..., 0] ** 2 + (q[..., 1] - q[..., 0] ** 2) ** 2) - 0.5 * (q[..., 2:] ** 2).sum(-1)

    def run(seed, q):
        def step(i, q):
            k1, k2 = jax.random.split(jax.random.fold_in(jax.random.wrap_key_data(seed), i))
            new = q + 0.3 * jax.random.normal(k1, q.shape)
            accept = jnp.log(jax.random.uniform(k2, (chains,))) < logp(new) - logp(q)
            return jnp.where(accept[:, None], new, q)

        return lax.fori_loop(0, 20, step, q).mean(0)

    return run, (_seed(draw), draw.normal(chains, d))


@program((64, 8, 4), (1024, 16, 8))
def normalizing_spline_flow(draw: Draws, n: int, bins: int, d: int) -> Made:
    """Rational-quadratic splines: softmax, cumsum, searches in rows, gathers; with its gradient."""

    def spline(x, w, h, s):
        w = jnp.pad(jnp.cumsum(jax.nn.softmax(w), -1), [(0, 0)] * (w.ndim - 1) + [(1, 0)]) * 6 - 3
        h = jnp.pad(jnp.cumsum(jax.nn.softmax(h), -1), [(0, 0)] * (h.ndim - 1) + [(1, 0)]) * 6 - 3
        s = jax.nn.softplus(s) + 1e-3
        i = jnp.clip((x[..., None] >= w[..., :-1]).sum(-1) - 1, 0, bins - 1)[..., None]
        take = lambda a, j: jnp.take_along_axis(a, j, -1)[..., 0]  # noqa: E731
        x0, x1, y0, y1 = take(w, i), take(w, i + 1), take(h, i), take(h, i + 1)
        d0, d1 = take(s, i), take(s, i + 1)
        slope, t = (y1 - y0) / (x1 - x0), jnp.clip((x - x0) / (x1 - x0), 0, 1)
        below = slope + (d1 + d0 - 2 * slope) * t * (1 - t)
        y = y0 + (y1 - y0) * (slope * t**2 + d0 * t * (1 - t)) / below
        logdet = jnp.log(slope**2 * (d1 * t**2 + 2 * slope * t * (1 - t) + d0 * (1 - t) ** 2)) - 2 * jnp.log(below)
        return y, logdet.sum(-1)

    def loss(p, x):
        total = 0.0
        for layer in p:
            net = jnp.tanh(x @ layer[0]) @ layer[1]
            w, h, s = jnp.split(net.reshape(n, d, 3 * bins + 1), [bins, 2 * bins], -1)
            x, logdet = spline(jnp.roll(x, 1, -1), w, h, s)
            total += logdet
        return (0.5 * (x**2).sum(-1) - total).mean()

    p = [(draw.normal(d, 32, scale=0.3), draw.normal(32, d * (3 * bins + 1), scale=0.1)) for _ in range(2)]
    return jax.value_and_grad(loss), (p, draw.normal(n, d))


@program((2000, 4), (50000, 16))
def k_means(draw: Draws, n: int, k: int) -> Made:
    """Lloyd's algorithm with segment sums."""

    def run(x, centres):
        def step(centres, _):
            nearest = jnp.argmin(((x[:, None] - centres) ** 2).sum(-1), 1)
            count = jax.ops.segment_sum(jnp.ones(n), nearest, k)
            return jax.ops.segment_sum(x, nearest, k) / jnp.maximum(count, 1)[:, None], None

        return lax.scan(step, centres, None, length=5)[0]

    return run, (draw.normal(n, 3), draw.normal(k, 3))


@program((300, 8), (3000, 40))
def bayesian_hierarchy(draw: Draws, n: int, groups: int) -> Made:
    """Log density of a hierarchical model and its gradient: gathers of group effects, special functions."""

    def logp(p, group, x, y):
        mean, spread = p["mean"], jnp.exp(p["log_spread"])
        rate = p["effect"][group] + x @ p["slope"]
        prior = stats.norm.logpdf(p["effect"], mean, spread).sum() + stats.gamma.logpdf(spread, 2.0)
        return prior + stats.poisson.logpmf(y, jnp.exp(rate)).sum() + stats.t.logpdf(p["slope"], 3.0).sum()

    p = {
        "mean": jnp.float32(0.1),
        "log_spread": jnp.float32(-0.5),
        "effect": draw.normal(groups, scale=0.3),
        "slope": draw.normal(4, scale=0.1),
    }
    return jax.value_and_grad(logp), (p, draw.integers(groups, n), draw.normal(n, 4), draw.integers(6, n))
