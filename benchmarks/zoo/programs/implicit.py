"""Solutions of equations and their gradients, and searches without them, as users of jaxopt and optimistix do it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


@program((10, 3), (200, 10), (2000, 50), wide=True)
def implicit_gradient(draw: Draws, n: int, d: int) -> Made:
    """The gradient of a validation loss by a penalty, through the solution of a ridge regression found by Newton."""

    def run(penalty, x, y, vx, vy):
        def stationary(w, penalty):
            s = jax.nn.sigmoid(-y * (x @ w))
            return -(x * (s * y)[:, None]).mean(0) + jnp.exp(penalty) * w

        def solution(penalty):
            def step(_, w):
                return w - jnp.linalg.solve(jax.jacfwd(stationary)(w, penalty), stationary(w, penalty))

            return lax.custom_root(
                lambda w: stationary(w, penalty),
                jnp.zeros(d),
                lambda f, w: lax.fori_loop(0, 6, step, w),
                lambda g, b: jnp.linalg.solve(jax.jacfwd(g)(jnp.zeros(d)), b),
            )

        return jax.value_and_grad(lambda p: jnp.logaddexp(0.0, -vy * (vx @ solution(p))).mean())(penalty)

    def half():
        x = draw.normal(n, d, dtype="float64")
        return x, jnp.sign(x[:, 0] + 0.1)

    return run, (draw.normal(scale=0.1, dtype="float64"), *half(), *half())


@program((8, 10), (50, 30), (200, 50), tolerance=2e-3)
def fixed_point_network(draw: Draws, batch: int, width: int) -> Made:
    """A layer's fixed point by Anderson acceleration, and its gradient by iterating the transposed Jacobian."""

    def run(w, x, y):
        f = lambda w, z: jnp.tanh(z @ w + x)  # noqa: E731

        def solve(g, z):
            def step(k, state):
                zs, fs = state
                r = (fs - zs).reshape(4, -1)
                gram = r @ r.T + 1e-3 * jnp.eye(4)
                alpha = jnp.linalg.solve(gram, jnp.ones(4))
                z = jnp.tensordot(alpha / alpha.sum(), fs, 1)
                return zs.at[k % 4].set(z), fs.at[k % 4].set(g(z))

            zs = jnp.stack([z * s for s in (1.0, 0.5, 0.25, 0.0)])
            zs, fs = lax.fori_loop(0, 10, step, (zs, jax.vmap(g)(zs)))
            return fs.mean(0)

        z = solve(lambda z: f(w, z), x)
        back = jax.vjp(f, w, z)[1]
        slope = z - y
        adjoint = lax.fori_loop(0, 20, lambda _, u: back(u)[1] + slope, slope)
        return ((z - y) ** 2).sum(), back(adjoint)[0]

    return run, (
        draw.normal(width, width, scale=0.4 * width**-0.5),
        draw.normal(batch, width),
        draw.normal(batch, width),
    )


@program((4, 20), (10, 200), (30, 500), tolerance=5e-3)
def simplex_search(draw: Draws, d: int, steps: int) -> Made:
    """Nelder and Mead's moves of a simplex: sorts, branches and shrinks in a loop."""

    def f(x):
        return ((x - 1) ** 2).sum() + 0.1 * (x[1:] * x[:-1]).sum()

    def run(points):
        def step(_, state):
            points, values = state
            order = jnp.argsort(values)
            points, values = points[order], values[order]
            middle = points[:-1].mean(0)
            mirrored = 2 * middle - points[-1]
            further, nearer = 3 * middle - 2 * points[-1], 0.5 * (middle + points[-1])
            v = f(mirrored)

            def replace(x):
                return lambda: (points.at[-1].set(x), values.at[-1].set(f(x)))

            def shrink():
                small = points[0] + 0.5 * (points - points[0])
                return small, jax.vmap(f)(small)

            which = jnp.where(
                v < values[0],
                jnp.where(f(further) < v, 0, 1),
                jnp.where(v < values[-2], 1, jnp.where(f(nearer) < values[-1], 2, 3)),  # noqa: E501
            )
            return lax.switch(which, [replace(further), replace(mirrored), replace(nearer), shrink])

        return lax.fori_loop(0, steps, step, (points, jax.vmap(f)(points)))[1].min()

    return run, (draw.normal(d + 1, d),)


@program((10, 4), (100, 40), (1000, 300))
def splitting_method(draw: Draws, n: int, d: int) -> Made:
    """ADMM for a lasso with box constraints: one factorisation, many triangular solves."""

    def run(a, b):
        factor = jax.scipy.linalg.cho_factor(a.T @ a + jnp.eye(d))
        ab = a.T @ b

        def step(state, _):
            x, z, u = state
            x = jax.scipy.linalg.cho_solve(factor, ab + z - u)
            z = jnp.clip(jnp.sign(x + u) * jnp.maximum(jnp.abs(x + u) - 0.1, 0.0), -1, 1)
            return (x, z, u + x - z), jnp.linalg.norm(x - z)

        zero = jnp.zeros(d)
        return lax.scan(step, (zero, zero, zero), None, length=15)

    return run, (draw.normal(n, d, scale=n**-0.5), draw.normal(n))
