"""Partial differential equations on grids, as users of jax.numpy and diffrax write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


@program((32, 10), (1024, 50), (65536, 20))
def implicit_diffusion(draw: Draws, n: int, steps: int) -> Made:
    """Crank-Nicolson steps of a heat equation: a tridiagonal system each."""

    def run(u):
        r = 0.4
        low, high = (jnp.full(n, -r).at[k].set(0.0) for k in (0, -1))

        def step(u, _):
            right = u + r * (jnp.roll(u, 1).at[0].set(0.0) - 2 * u + jnp.roll(u, -1).at[-1].set(0.0))
            return lax.linalg.tridiagonal_solve(low, jnp.full(n, 1 + 2 * r), high, right[:, None])[:, 0], u[n // 2]

        return lax.scan(step, u, None, length=steps)

    return run, (draw.normal(n),)


@program((12, 5), (48, 10), (96, 10))
def wave_equation(draw: Draws, n: int, steps: int) -> Made:
    """A seven-point stencil in three dimensions with absorbing borders."""

    def run(u, before, speed):
        x = jnp.abs(jnp.linspace(-1.0, 1.0, n))
        damp = jnp.exp(-(jnp.maximum(x[:, None, None], jnp.maximum(x[:, None], x)) ** 8))

        def step(_, state):
            u, before = state
            p = jnp.pad(u, 1)
            around = p[2:, 1:-1, 1:-1] + p[:-2, 1:-1, 1:-1] + p[1:-1, 2:, 1:-1] + p[1:-1, :-2, 1:-1]
            around = around + p[1:-1, 1:-1, 2:] + p[1:-1, 1:-1, :-2] - 6 * u
            return damp * (2 * u - before + 0.1 * speed * around), damp * u

        return lax.fori_loop(0, steps, step, (u, before))[0]

    return run, (draw.normal(n, n, n), draw.normal(n, n, n), draw.uniform(n, n, n))


@program((64, 10), (4096, 50), (262144, 20))
def flux_limiter(draw: Draws, n: int, steps: int) -> Made:
    """A conservation law by finite volumes with a slope limiter: many selects on shifted arrays."""

    def run(u):
        def slope(u):
            a, b = u - jnp.roll(u, 1), jnp.roll(u, -1) - u
            return jnp.where(a * b > 0, jnp.sign(a) * jnp.minimum(jnp.abs(a), jnp.abs(b)), 0.0)

        def step(u, _):
            s = slope(u)
            left, right = u + 0.5 * s, jnp.roll(u - 0.5 * s, -1)
            speed = jnp.maximum(jnp.abs(left), jnp.abs(right))
            flux = 0.25 * (left**2 + right**2) - 0.5 * speed * (right - left)
            return u - 0.2 * (flux - jnp.roll(flux, 1)), None

        return lax.scan(step, u, None, length=steps)[0]

    return run, (1 + 0.3 * draw.normal(n),)


@program((16, 4), (64, 10), (256, 10), tolerance=1e-3)
def spectral_vorticity(draw: Draws, n: int, steps: int) -> Made:
    """Two-dimensional turbulence: real transforms both ways, products in space, dealiasing."""

    def run(w):
        kx, ky = jnp.fft.fftfreq(n, 1 / n)[:, None], jnp.fft.rfftfreq(n, 1 / n)[None]
        k2 = kx**2 + ky**2
        inverse = jnp.where(k2 > 0, 1 / jnp.maximum(k2, 1.0), 0.0)
        kept = (jnp.abs(kx) < n / 3) & (ky < n / 3)

        def rate(f):
            psi = f * inverse
            parts = [jnp.fft.irfft2(g, (n, n)) for g in (1j * ky * psi, -1j * kx * psi, 1j * kx * f, 1j * ky * f)]
            u, v, wx, wy = parts
            return -jnp.where(kept, jnp.fft.rfft2(u * wx + v * wy), 0) - 1e-3 * k2 * f

        def step(_, f):
            middle = f + 0.005 * rate(f)
            return f + 0.01 * rate(middle)

        return jnp.fft.irfft2(lax.fori_loop(0, steps, step, jnp.fft.rfft2(w)), (n, n))

    return run, (draw.normal(n, n),)


@program((16,), (64,), (256,))
def multigrid(draw: Draws, n: int) -> Made:
    """Two V-cycles for Poisson's equation: smoothing, coarser grids, corrections."""

    def laplace(u):
        p = jnp.pad(u, 1)
        return 4 * u - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]

    def smooth(u, f):
        return lax.fori_loop(0, 2, lambda _, u: u + 0.2 * (f - laplace(u)), u)

    def cycle(u, f):
        u = smooth(u, f)
        if u.shape[0] > 4:
            rest = f - laplace(u)
            coarse = 4 * rest.reshape(u.shape[0] // 2, 2, -1, 2).mean((1, 3))
            fixed = cycle(jnp.zeros_like(coarse), coarse)
            u = u + jnp.repeat(jnp.repeat(fixed, 2, 0), 2, 1)
        return smooth(u, f)

    def run(f):
        u = cycle(cycle(jnp.zeros_like(f), f), f)
        return u, jnp.linalg.norm(f - laplace(u))

    return run, (draw.normal(n, n),)


@program((16, 4), (64, 20), (256, 20))
def lattice_boltzmann(draw: Draws, n: int, steps: int) -> Made:
    """Nine directions that stream and collide, with a solid cylinder."""
    directions = [(i, j) for i in (0, 1, -1) for j in (0, 1, -1)]
    weights = [4 / 9 if (i, j) == (0, 0) else 1 / 9 if i * j == 0 else 1 / 36 for i, j in directions]
    opposite = [directions.index((-i, -j)) for i, j in directions]

    def run(f):
        c, w = jnp.array(directions, jnp.float32), jnp.array(weights)[:, None, None]
        grid = jnp.arange(n) - n / 2
        solid = grid[:, None] ** 2 + grid**2 < (n / 8) ** 2

        def step(_, f):
            f = jnp.stack([jnp.roll(f[k], d, (0, 1)) for k, d in enumerate(directions)])
            rho = f.sum(0)
            u = jnp.einsum("kxy,kd->dxy", f, c) / rho
            cu = jnp.einsum("kd,dxy->kxy", c, u)
            calm = w * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (u**2).sum(0))
            return jnp.where(solid, f[jnp.array(opposite)], f + 0.6 * (calm - f))

        return lax.fori_loop(0, steps, step, f)

    return run, (1 + 0.1 * draw.uniform(9, n, n),)


@program((16, 5), (100, 20), (400, 20))
def shallow_water(draw: Draws, n: int, steps: int) -> Made:
    """Heights and two velocities on staggered grids, steps recorded."""

    def run(h):
        def step(state, _):
            h, u, v = state
            u = u.at[1:].add(-0.1 * (h[1:] - h[:-1]))
            v = v.at[:, 1:].add(-0.1 * (h[:, 1:] - h[:, :-1]))
            flow = (jnp.pad(u, ((0, 1), (0, 0)))[1:] - u) + (jnp.pad(v, ((0, 0), (0, 1)))[:, 1:] - v)
            return (h - 0.1 * flow, 0.999 * u, 0.999 * v), (h**2).sum()

        return lax.scan(step, (h, jnp.zeros((n, n)), jnp.zeros((n, n))), None, length=steps)

    return run, (draw.uniform(n, n),)


@program((16, 20), (128, 50), (512, 50))
def reaction_diffusion(draw: Draws, n: int, steps: int) -> Made:
    """Two chemicals that spread and react on a torus, by rolls."""

    def run(a, b):
        def spread(x):
            return sum(jnp.roll(x, s, k) for s in (-1, 1) for k in (0, 1)) - 4 * x

        def step(_, state):
            a, b = state
            made = a * b * b
            return a + 0.16 * spread(a) - made + 0.035 * (1 - a), b + 0.08 * spread(b) + made - 0.1 * b

        return lax.fori_loop(0, steps, step, (a, b))

    return run, (draw.uniform(n, n), draw.uniform(n, n))


@program((8, 10), (64, 40), (512, 100), wide=True)
def adjoint_of_dynamics(draw: Draws, n: int, steps: int) -> Made:
    """A sensitivity of a food chain's end state to its rates: Runge-Kutta steps, checkpointed, backwards."""

    def loss(rates, y):
        def field(y):
            grow, eat, die = rates
            a, b, c = y
            return jnp.stack(
                [grow * a * (1 - a) - eat * a * b, eat * a * b - die * b - 0.3 * b * c, 0.3 * b * c - 0.1 * c]
            )

        @jax.checkpoint
        def step(y, _):
            k1 = field(y)
            k2 = field(y + 0.05 * k1)
            k3 = field(y + 0.05 * k2)
            k4 = field(y + 0.1 * k3)
            return y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        return (lax.scan(step, y, None, length=steps)[0] ** 2).sum()

    return jax.value_and_grad(loss), (draw.uniform(3, low=0.4, dtype="float64"), draw.uniform(3, n, dtype="float64"))
