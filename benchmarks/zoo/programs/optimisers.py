"""Steps of optimisers, as users of optax and jaxopt write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


def _rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def _regression(w, x, y):
    return jnp.logaddexp(0.0, -y * (x @ w)).mean() + 0.01 * (w**2).sum()


def _data(draw: Draws, n: int, d: int):
    x = draw.normal(n, d)
    return draw.normal(d, scale=0.1), x, jnp.sign(x[:, 0] + 0.3 * draw.normal(n))


@program((20, 3, 4), (500, 20, 10), (5000, 200, 10), tolerance=2e-3)
def limited_memory_search(draw: Draws, n: int, d: int, memory: int) -> Made:
    """L-BFGS: two loops over a ring of differences, and a backtracking line search."""

    def run(w, x, y):
        f = lambda w: _regression(w, x, y)  # noqa: E731

        def direction(g, s, r, rho):
            def first(q, pair):
                a = pair[2] * (pair[0] @ q)
                return q - a * pair[1], a

            q, a = lax.scan(first, g, (s, r, rho), reverse=True)
            q = q * jnp.where(rho[-1] > 0, 1 / (rho[-1] * (r[-1] @ r[-1]) + 1e-9), 1.0)
            return lax.scan(lambda q, p: (q + p[0] * (p[3] - p[2] * (p[1] @ q)), None), q, (s, r, rho, a))[0]

        def step(state, _):
            w, g, s, r, rho = state
            d = -direction(g, s, r, rho)
            t = lax.while_loop(
                lambda t: (f(w + t * d) > f(w) + 1e-4 * t * (g @ d)) & (t > 1e-4), lambda t: 0.5 * t, jnp.float32(1)
            )
            new = jax.grad(f)(w + t * d)
            ds, dr = t * d, new - g
            push = lambda a, b: jnp.roll(a, -1, 0).at[-1].set(b)  # noqa: E731
            return (w + ds, new, push(s, ds), push(r, dr), push(rho, 1 / jnp.maximum(ds @ dr, 1e-9))), f(w)

        zero = jnp.zeros((memory, d))
        return lax.scan(step, (w, jax.grad(f)(w), zero, zero, jnp.zeros(memory)), None, length=8)[1]

    return run, _data(draw, n, d)


@program((8,), (64,), (256,), tolerance=2e-3)
def orthogonal_momentum(draw: Draws, n: int) -> Made:
    """Muon: momentum made orthogonal by five polynomial steps, for two shapes of weights."""

    def orthogonal(g):
        x = g / (jnp.linalg.norm(g) + 1e-7)
        x = x if g.shape[0] <= g.shape[1] else x.T

        def step(_, x):
            a = x @ x.T
            return 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x

        x = lax.fori_loop(0, 5, step, x)
        return x if g.shape[0] <= g.shape[1] else x.T

    def run(p, m, g):
        m = jax.tree.map(lambda m, g: 0.95 * m + g, m, g)
        return jax.tree.map(lambda p, m, g: p - 0.02 * orthogonal(g + 0.95 * m), p, m, g), m

    tree = lambda: [draw.normal(n, n), draw.normal(4 * n, n)]  # noqa: E731
    return run, (tree(), tree(), tree())


@program((8, 12), (128, 64), (1024, 512))
def factored_moments(draw: Draws, m: int, n: int) -> Made:
    """Adafactor: second moments by rows and columns, updates clipped by their root mean square, relative steps."""

    def run(p, row, column, g):
        g2 = g**2 + 1e-30
        row, column = 0.99 * row + 0.01 * g2.mean(1), 0.99 * column + 0.01 * g2.mean(0)
        update = g * lax.rsqrt(row / row.mean())[:, None] * lax.rsqrt(column)
        update = update / jnp.maximum(1.0, jnp.sqrt((update**2).mean()))
        scale = jnp.maximum(1e-3, jnp.sqrt((p**2).mean()))
        return p - 0.01 * scale * update, row, column

    return run, (draw.normal(m, n), draw.uniform(m), draw.uniform(n), draw.normal(m, n))


@program((16, 3), (256, 20), (4096, 100))
def sharpness_aware_step(draw: Draws, n: int, d: int) -> Made:
    """A gradient at a point uphill, then decayed steps with trust ratios by layer."""

    def run(p, x, y):
        def loss(p):
            return ((jax.nn.gelu(x @ p["a"]) @ p["b"])[:, 0] - y).std()

        g = jax.grad(loss)(p)
        norm = jnp.sqrt(sum((a**2).sum() for a in jax.tree.leaves(g)))
        g = jax.grad(loss)(jax.tree.map(lambda a, b: a + 0.05 * b / norm, p, g))

        def move(a, b):
            b = b + 0.01 * a
            return a - 0.1 * jnp.linalg.norm(a) / jnp.maximum(jnp.linalg.norm(b), 1e-6) * b

        return jax.tree.map(move, p, g)

    return run, ({"a": draw.normal(d, 32), "b": draw.normal(32, 1)}, draw.normal(n, d), draw.normal(n))


@program((4, 8, 5), (16, 20, 10), (64, 60, 10), tolerance=5e-3)
def covariance_adaptation(draw: Draws, d: int, population: int, generations: int) -> Made:
    """An evolution strategy that learns a covariance: eigenvectors, ranks and paths in a scan."""

    def run(seed, mean):
        weights = jnp.maximum(jnp.log(population / 2 + 0.5) - jnp.log(jnp.arange(1.0, population + 1)), 0)
        weights = weights / weights.sum()

        def generation(state, key):
            mean, cov, path, sigma = state
            root = jnp.linalg.cholesky(cov)
            z = jax.random.normal(key, (population, d))
            x = mean + sigma * z @ root.T
            value = jax.vmap(_rosenbrock)(x)
            order = jnp.argsort(value)
            move = (weights[:, None] * (x[order] - mean)).sum(0) / sigma
            path = 0.8 * path + 0.6 * jax.scipy.linalg.solve_triangular(root, move, lower=True)
            step = (x[order] - mean) / sigma
            cov = 0.9 * cov + 0.1 * jnp.einsum("p,pi,pj->ij", weights, step, step)
            sigma = sigma * jnp.exp(0.2 * (jnp.linalg.norm(path) / d**0.5 - 1))
            return (mean + sigma * move, cov, path, sigma), value.min()

        start = mean, jnp.eye(d), jnp.zeros(d), jnp.float32(0.5)
        return lax.scan(generation, start, jax.random.split(jax.random.wrap_key_data(seed), generations))

    return run, (draw.rng.integers(0, 2**32, 2).astype("uint32"), draw.normal(d, scale=0.1))


@program((16, 3), (256, 20), (4096, 100))
def curvature_products(draw: Draws, n: int, d: int) -> Made:
    """Newton steps by conjugate gradients on Hessian-vector products, and the Hessian's diagonal by random signs."""

    def run(w, x, y, signs):
        g = jax.grad(lambda w: _regression(w, x, y))
        product = lambda v: jax.jvp(g, (w,), (v,))[1]  # noqa: E731
        step = jax.scipy.sparse.linalg.cg(product, -g(w), maxiter=5, tol=0.0)[0]
        return w + step, (signs * jax.vmap(product)(signs)).mean(0)

    return run, (*_data(draw, n, d), draw.rng.choice([-1.0, 1.0], (8, d)).astype("float32"))
