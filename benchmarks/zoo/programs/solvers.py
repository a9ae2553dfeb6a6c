"""Differential equations, root finding and optimisation, as users of diffrax, optimistix and jaxopt write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


def _lotka(y, p):
    prey, predator = y
    return jnp.stack([p[0] * prey - p[1] * prey * predator, p[2] * prey * predator - p[3] * predator])


@program((16,), (256,), (4096,))
def adaptive_runge_kutta(draw: Draws, n: int) -> Made:
    """Heun-Euler with a step-size controller, mapped over initial values."""

    def solve(y0, p):
        def body(state):
            t, y, h, steps = state
            k1 = _lotka(y, p)
            k2 = _lotka(y + h * k1, p)
            high, low = y + h * 0.5 * (k1 + k2), y + h * k1
            error = jnp.sqrt(jnp.mean(((high - low) / (1e-4 + 1e-3 * jnp.abs(y))) ** 2)) + 1e-8
            accept = error < 1.0
            factor = jnp.clip(0.9 * error**-0.5, 0.2, 5.0)
            return jnp.where(accept, t + h, t), jnp.where(accept, high, y), jnp.minimum(h * factor, 2.0 - t), steps + 1

        return lax.while_loop(lambda s: (s[0] < 2.0 - 1e-6) & (s[3] < 300), body, (0.0, y0, 0.01, 0))[1]

    return jax.vmap(solve, (0, None)), (draw.uniform(n, 2, low=0.5), jnp.array([1.1, 0.4, 0.1, 0.4], jnp.float32))


@program((64, 32), (1024, 64))
def neural_ode(draw: Draws, n: int, width: int) -> Made:
    """Fourth-order Runge-Kutta through a small network, and its gradient."""

    def field(p, y):
        return jnp.tanh(y @ p[0] + p[1]) @ p[2]

    def loss(p, y):
        def step(y, _):
            k1 = field(p, y)
            k2 = field(p, y + 0.05 * k1)
            k3 = field(p, y + 0.05 * k2)
            k4 = field(p, y + 0.1 * k3)
            return y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        return jnp.mean(lax.scan(step, y, None, length=20)[0] ** 2)

    p = draw.normal(4, width, scale=0.5), draw.normal(width), draw.normal(width, 4, scale=0.2)
    return jax.value_and_grad(loss), (p, draw.normal(n, 4))


@program((64, 64), (1024, 200))
def stochastic_differential_equation(draw: Draws, n: int, steps: int) -> Made:
    """Euler-Maruyama with noise drawn in the loop."""

    def solve(seed, y):
        def step(carry, key):
            y, t = carry
            noise = jax.random.normal(key, y.shape)
            y = y + 0.01 * (jnp.sin(t) - y) + 0.1 * noise * jnp.sqrt(jnp.abs(y))
            return (y, t + 0.01), y.mean()

        return lax.scan(step, (y, 0.0), jax.random.split(jax.random.wrap_key_data(seed), steps))

    return solve, (draw.rng.integers(0, 2**32, 2).astype("uint32"), draw.uniform(n, 3))


@program((20, 2), (20, 50), wide=True)
def stiff_newton(draw: Draws, steps: int, n: int) -> Made:
    """Backward Euler for a stiff system, Newton steps with small dense solves, in f64."""

    def field(y):
        a, b, c = y[0], y[1], y[2]
        return jnp.stack([-0.04 * a + 1e4 * b * c, 0.04 * a - 1e4 * b * c - 3e7 * b * b, 3e7 * b * b])

    def one(y):
        def step(y, _):
            def newton(_, z):
                jacobian = jnp.eye(3) - 0.01 * jax.jacfwd(field)(z)
                return z - jnp.linalg.solve(jacobian, z - y - 0.01 * field(z))

            return lax.fori_loop(0, 4, newton, y), None

        return lax.scan(step, y, None, length=steps)[0]

    y = draw.uniform(n, 3, dtype="float64") * [0.1, 1e-5, 0.1] + [1.0, 0.0, 0.0]
    return jax.vmap(one), (y,)


@program((10,), (100,))
def quasi_newton(draw: Draws, n: int) -> Made:
    """BFGS with a backtracking search on Rosenbrock's function."""

    def f(x):
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def minimise(x):
        def body(state):
            x, h, k = state
            g = jax.grad(f)(x)
            d = -h @ g
            t = lax.while_loop(
                lambda t: (f(x + t * d) > f(x) + 1e-4 * t * (g @ d)) & (t > 1e-6), lambda t: 0.5 * t, jnp.float32(1)
            )
            s = t * d
            y = jax.grad(f)(x + s) - g
            rho = 1 / jnp.maximum(y @ s, 1e-6)
            v = jnp.eye(n) - rho * jnp.outer(s, y)
            return x + s, v @ h @ v.T + rho * jnp.outer(s, s), k + 1

        x, _, _ = lax.while_loop(lambda s: s[2] < 12, body, (x, jnp.eye(n), 0))
        return f(x)

    return minimise, (draw.uniform(n, high=0.5),)


@program((32, 16), (256, 64))
def levenberg_marquardt(draw: Draws, points: int, problems: int) -> Made:
    """Curve fits, mapped over problems: Jacobians and small normal equations."""

    def fit(x, y, p):
        def residual(p):
            return p[0] * jnp.exp(-p[1] * x) + p[2] - y

        def step(p, _):
            r, j = residual(p), jax.jacfwd(residual)(p)
            return p - jnp.linalg.solve(j.T @ j + 0.1 * jnp.eye(3), j.T @ r), (r**2).sum()

        return lax.scan(step, p, None, length=10)

    x = draw.uniform(problems, points, high=3.0)
    return jax.vmap(fit), (x, 2 * jnp.exp(-x) + 0.1, draw.uniform(problems, 3, low=0.5))


@program((12, 8), (60, 40), wide=True)
def linear_program(draw: Draws, columns: int, rows: int) -> Made:
    """Simplex pivots on a tableau, in f64."""

    def solve(tableau):
        def body(state):
            t, k = state
            column = jnp.argmin(t[-1, :-1])
            ratios = jnp.where(t[:-1, column] > 1e-9, t[:-1, -1] / t[:-1, column], jnp.inf)
            row = jnp.argmin(ratios)
            pivot = t[row] / t[row, column]
            t = t - jnp.outer(t[:, column], pivot)
            return t.at[row].set(pivot), k + 1

        return lax.while_loop(lambda s: (s[0][-1, :-1].min() < -1e-9) & (s[1] < 200), body, (tableau, 0))

    a = draw.uniform(rows, columns, low=0.1, dtype="float64")
    top = jnp.concatenate([a, jnp.eye(rows), jnp.ones((rows, 1))], 1)
    cost = -draw.uniform(1, columns, low=0.1, dtype="float64")
    return solve, (jnp.concatenate([top, jnp.concatenate([cost, jnp.zeros((1, rows + 1))], 1)]),)


@program((32,), (128,))
def conjugate_gradient(draw: Draws, n: int) -> Made:
    """A Poisson problem by conjugate gradients, matrix-free."""

    def apply(u):
        p = jnp.pad(u, 1)
        return 4 * u - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]

    return lambda b: jax.scipy.sparse.linalg.cg(apply, b, maxiter=60, tol=0.0)[0], (draw.normal(n, n),)


@program((200,), (1500,))
def projected_gradient(draw: Draws, n: int) -> Made:
    """Lasso by accelerated proximal steps: matrix-vector products in a loop."""

    def solve(a, b):
        def step(state, _):
            x, z, t = state
            y = z - 0.3 / n * (a.T @ (a @ z - b))
            new = jnp.sign(y) * jnp.maximum(jnp.abs(y) - 1e-3, 0)
            s = (1 + jnp.sqrt(1 + 4 * t * t)) / 2
            return (new, new + (t - 1) / s * (new - x), s), None

        zero = jnp.zeros(n)
        return lax.scan(step, (zero, zero, jnp.float32(1)), None, length=30)[0][0]

    return solve, (draw.normal(n, n, scale=0.3), draw.normal(n))


@program((128, 64), (600, 500))
def sinkhorn(draw: Draws, n: int, m: int) -> Made:
    """Entropic optimal transport in log space."""

    def solve(a, b):
        cost = ((a[:, None] - b[None]) ** 2).sum(-1)

        def step(state, _):
            f, g = state
            f = -0.5 * jax.nn.logsumexp((g[None] - cost) / 0.5, 1)
            g = -0.5 * jax.nn.logsumexp((f[:, None] - cost) / 0.5, 0)
            return (f, g), None

        f, g = lax.scan(step, (jnp.zeros(n), jnp.zeros(m)), None, length=20)[0]
        return jnp.sum(jnp.exp((f[:, None] + g[None] - cost) / 0.5) * cost)

    return jax.value_and_grad(solve), (draw.normal(n, 3), draw.normal(m, 3))
