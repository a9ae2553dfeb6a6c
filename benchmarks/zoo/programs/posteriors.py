"""Posteriors by bounds and likelihoods with their gradients, as users of numpyro and distrax write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import stats

from benchmarks.zoo.catalogue import Draws, Made, program


def _keys(draw: Draws):
    return draw.rng.integers(0, 2**32, 2).astype("uint32")


@program((20, 3, 4), (500, 10, 20), (5000, 50, 20), tolerance=1e-3)
def variational_regression(draw: Draws, n: int, d: int, steps: int) -> Made:
    """A normal guide with a full covariance factor, fitted by gradients of samples in a loop."""

    def run(seed, x, y):
        def bound(p, key):
            mean, low = p
            root = jnp.tril(low, -1) + jnp.diag(jax.nn.softplus(jnp.diagonal(low)))
            z = jax.random.normal(key, (4, d))
            w = mean + z @ root.T
            fit = stats.poisson.logpmf(y, jnp.exp(jnp.clip(x @ w.T, -3, 3)).T).sum(1)
            return -(fit + stats.norm.logpdf(w).sum(1)).mean() / n - jnp.log(jnp.diagonal(root)).sum() / n

        def step(p, key):
            value, g = jax.value_and_grad(bound)(p, key)
            return jax.tree.map(lambda a, b: a - 0.05 * b, p, g), value

        keys = jax.random.split(jax.random.wrap_key_data(seed), steps)
        return lax.scan(step, (jnp.zeros(d), jnp.eye(d)), keys)

    return run, (_keys(draw), draw.normal(n, d, scale=d**-0.5), draw.integers(4, n).astype("float32"))


@program((10, 20, 3), (100, 500, 10), (500, 5000, 20))
def topic_model(draw: Draws, documents: int, words: int, topics: int) -> Made:
    """Latent topics by variational steps with digamma functions."""

    def run(counts, beta, gamma):
        def step(_, state):
            beta, gamma = state
            a = jnp.exp(jax.scipy.special.digamma(gamma))
            b = jnp.exp(jax.scipy.special.digamma(beta) - jax.scipy.special.digamma(beta.sum(1, keepdims=True)))
            ratio = counts / (a @ b + 1e-10)
            return 0.1 + b * (a.T @ ratio), 0.5 + a * (ratio @ b.T)

        return lax.fori_loop(0, 5, step, (beta, gamma))

    return run, (
        draw.integers(4, documents, words).astype("float32"),
        draw.uniform(topics, words, low=0.5),
        draw.uniform(documents, topics, low=0.5),
    )


@program((20, 4), (500, 20), (5000, 50), tolerance=2e-3)
def inducing_points(draw: Draws, n: int, m: int) -> Made:
    """A sparse Gaussian process's bound and its gradient by kernel and inducing inputs."""

    def loss(p, x, y):
        kernel = lambda a, b: jnp.exp(p["scale"] - 0.5 * ((a[:, None] - b) ** 2).sum(-1) / jnp.exp(p["length"]))  # noqa: E731
        root = jnp.linalg.cholesky(kernel(p["z"], p["z"]) + 1e-2 * jnp.eye(m))
        a = jax.scipy.linalg.solve_triangular(root, kernel(p["z"], x), lower=True) / jnp.exp(p["noise"])
        b = jnp.linalg.cholesky(jnp.eye(m) + a @ a.T)
        c = jax.scipy.linalg.solve_triangular(b, a @ y, lower=True) / jnp.exp(p["noise"])
        fit = jnp.log(jnp.diagonal(b)).sum() + n * p["noise"] + 0.5 * (y**2).sum() / jnp.exp(2 * p["noise"])
        return (fit - 0.5 * (c**2).sum() + 0.5 * (n * jnp.exp(p["scale"] - 2 * p["noise"]) - (a**2).sum())) / n

    p = {"scale": draw.normal(scale=0.1), "length": draw.normal(scale=0.1), "noise": draw.normal(scale=0.1)}
    return jax.value_and_grad(loss), ({**p, "z": draw.normal(m, 2)}, draw.normal(n, 2), draw.normal(n))


@program((20, 3), (1000, 10), (50000, 20))
def survival_model(draw: Draws, n: int, d: int) -> Made:
    """A partial likelihood by sorted times and reverse cumulative sums, gradient and Hessian."""

    def loss(w, x, time, event):
        order = jnp.argsort(-time)
        score = (x @ w)[order]
        top = score.max()
        at_risk = jnp.log(jnp.cumsum(jnp.exp(score - top))) + top
        return -((score - at_risk) * event[order]).sum() / n

    arrays = draw.normal(d), draw.normal(n, d), draw.uniform(n), (draw.uniform(n) < 0.7).astype("float32")
    return lambda *a: (*jax.value_and_grad(loss)(*a), jax.hessian(loss)(*a)), arrays


@program((4, 5, 8), (32, 40, 16), (256, 300, 16))
def mixture_density_heads(draw: Draws, batch: int, length: int, parts: int) -> Made:
    """Discretised logistic mixtures over 8-bit values, their likelihood and gradient."""

    def loss(p, x):
        weight, mean, scale = jnp.split(p, 3, -1)
        scale = jnp.maximum(scale, -5.0)
        centre = x[..., None] - mean
        inner = jnp.exp(-scale)
        high, low = jax.nn.sigmoid(inner * (centre + 1 / 255)), jax.nn.sigmoid(inner * (centre - 1 / 255))
        log_p = jnp.where(
            x[..., None] < -0.99,
            jax.nn.log_sigmoid(inner * (centre + 1 / 255)),
            jnp.where(
                x[..., None] > 0.99,
                -jax.nn.softplus(inner * (centre - 1 / 255)),
                jnp.log(jnp.maximum(high - low, 1e-12)),
            ),  # noqa: E501
        )
        return -jax.nn.logsumexp(jax.nn.log_softmax(weight) + log_p, -1).mean()

    x = (draw.integers(256, batch, length) / 127.5 - 1).astype("float32")
    return jax.value_and_grad(loss), (draw.normal(batch, length, 3 * parts), x)
