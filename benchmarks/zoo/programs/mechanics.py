"""Bodies, joints and contacts, as users of mujoco-mjx, brax and jaxopt write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


def _turn(q, v):
    """A vector turned by a unit quaternion."""
    u = q[..., 1:]
    t = 2 * jnp.cross(u, v)
    return v + q[..., :1] * t + jnp.cross(u, t)


def _times(p, q):
    """The product of two quaternions."""
    a, u, b, v = p[..., :1], p[..., 1:], q[..., :1], q[..., 1:]
    return jnp.concatenate([a * b - (u * v).sum(-1, keepdims=True), a * v + b * u + jnp.cross(u, v)], -1)


@program((4, 3), (256, 7), (4096, 16))
def chain_of_joints(draw: Draws, n: int, joints: int) -> Made:
    """Poses along a chain by a scan over its joints, and the Jacobian of the last one."""

    def end(angles, axes, offsets):
        def step(pose, joint):
            place, q = pose
            angle, axis, offset = joint
            q = _times(q, jnp.concatenate([jnp.cos(angle / 2)[None], jnp.sin(angle / 2) * axis]))
            place = place + _turn(q, offset)
            return (place, q), place

        return lax.scan(step, (jnp.zeros(3), jnp.array([1.0, 0, 0, 0])), (angles, axes, offsets))

    def run(angles, axes, offsets):
        last = lambda a: end(a, axes, offsets)[0][0]  # noqa: E731
        return jax.vmap(lambda a: end(a, axes, offsets)[1])(angles), jax.vmap(jax.jacrev(last))(angles)

    axes = draw.normal(joints, 3)
    axes /= (axes**2).sum(1, keepdims=True) ** 0.5
    return run, (draw.normal(n, joints), axes, draw.normal(joints, 3, scale=0.3))


@program((4, 3), (128, 6), (2048, 8), tolerance=1e-3)
def mass_matrix(draw: Draws, n: int, joints: int) -> Made:
    """A pendulum of several links: the Lagrangian's second derivatives, a Cholesky solve, and a step."""

    def kinetic(q, w):
        v = jnp.stack([jnp.cumsum(jnp.cos(q) * w), jnp.cumsum(jnp.sin(q) * w)])
        return 0.5 * (v**2).sum() + 0.05 * (w**2).sum()

    def one(q, w):
        m = jax.hessian(kinetic, 1)(q, w)
        pull = jax.grad(lambda q: -9.8 * jnp.cumsum(jnp.cos(q)).sum())(q)
        force = jax.grad(kinetic)(q, w) - pull - jax.jvp(lambda q: jax.grad(kinetic, 1)(q, w), (q,), (w,))[1]
        a = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(m), force)
        return q + 0.01 * w, w + 0.01 * a

    return jax.vmap(one), (draw.normal(n, joints), draw.normal(n, joints))


@program((2, 6), (64, 12), (1024, 24))
def contact_solver(draw: Draws, scenes: int, contacts: int) -> Made:
    """Impulses at contacts by projected Gauss-Seidel sweeps, mapped over scenes."""

    def one(a, b):
        def visit(k, x):
            rest = b[k] - a[k] @ x
            return x.at[k].set(jnp.maximum(x[k] + rest / a[k, k], 0.0))

        sweep = lambda _, x: lax.fori_loop(0, contacts, visit, x)  # noqa: E731
        return lax.fori_loop(0, 6, sweep, jnp.zeros(contacts))

    j = draw.normal(scenes, contacts, contacts, scale=0.4)
    return jax.vmap(one), (j @ j.swapaxes(1, 2) + 2 * jnp.eye(contacts), draw.normal(scenes, contacts))


@program((8, 4), (32, 10), (128, 10))
def cloth(draw: Draws, size: int, steps: int) -> Made:
    """Position-based springs on a grid, two directions and a pinned edge, over a ball."""

    def run(x):
        def pull(x, axis):
            a, b = (lax.slice_in_dim(x, k, size - 1 + k, axis=axis) for k in (0, 1))
            d = b - a
            length = jnp.sqrt((d**2).sum(-1, keepdims=True) + 1e-9)
            move = 0.25 * d * (1 - 1 / length)
            ends = [(0, 0)] * 3
            ends[axis] = (0, 1)
            x = x + jnp.pad(move, ends)
            ends[axis] = (1, 0)
            return x - jnp.pad(move, ends)

        def step(_, state):
            x, before = state
            new = x + 0.99 * (x - before) - jnp.array([0.0, 0.0, 0.01])
            new = lax.fori_loop(0, 4, lambda _, y: pull(pull(y, 0), 1), new)
            away = jnp.linalg.norm(new, axis=-1, keepdims=True)
            new = jnp.where(away < 2.0, new / jnp.maximum(away, 1e-3) * 2.0, new)
            return new.at[0].set(x[0]), x

        return lax.fori_loop(0, steps, step, (x, x))[0]

    grid = jnp.stack(jnp.meshgrid(jnp.arange(size), jnp.arange(size), indexing="ij"), -1) * 1.05
    return run, (jnp.concatenate([grid, 3 + 0.1 * draw.normal(size, size, 1)], -1),)


@program((64, 4), (2048, 16), (65536, 32), wide=True)
def ray_casting(draw: Draws, rays: int, spheres: int) -> Made:
    """The nearest sphere on each ray, its normal, and light with a shadow, in f64."""

    def nearest(origin, ray, centre, radius):
        to = centre - origin[:, None]
        along = (to * ray[:, None]).sum(-1)
        gap = radius**2 - (to**2).sum(-1) + along**2
        t = along - jnp.sqrt(jnp.maximum(gap, 0.0))
        return jnp.where((gap > 0) & (t > 1e-3), t, jnp.inf)

    def run(origin, ray, centre, radius):
        ray = ray / jnp.linalg.norm(ray, axis=1, keepdims=True)
        t = nearest(origin, ray, centre, radius)
        which, first = t.argmin(1), t.min(1)
        hit = jnp.isfinite(first)
        place = origin + jnp.where(hit, first, 0.0)[:, None] * ray
        normal = (place - centre[which]) / radius[which][:, None]
        light = jnp.broadcast_to(jnp.array([0.6, 0.0, 0.8]), ray.shape)
        dark = jnp.isfinite(nearest(place + 1e-2 * normal, light, centre, radius)).any(1)
        return jnp.where(hit & ~dark, jnp.maximum((normal * light).sum(1), 0.0), 0.05)

    return run, (
        draw.normal(rays, 3, dtype="float64"),
        draw.normal(rays, 3, dtype="float64"),
        draw.normal(spheres, 3, scale=5.0, dtype="float64"),
        draw.uniform(spheres, low=0.5, dtype="float64"),
    )


@program((8, 5), (256, 20), (8192, 20))
def spinning_bodies(draw: Draws, n: int, steps: int) -> Made:
    """Free bodies that spin: quaternion products, renormalised, and energy at each step."""

    def run(q, w, inertia):
        def step(state, _):
            q, w = state
            w = w + 0.01 * jnp.cross(inertia * w, w) / inertia
            q = q + 0.005 * _times(q, jnp.concatenate([jnp.zeros((n, 1)), w], 1))
            q = q / jnp.linalg.norm(q, axis=1, keepdims=True)
            return (q, w), (inertia * w**2).sum(1)

        return lax.scan(step, (q, w), None, length=steps)

    return run, (draw.normal(n, 4), draw.normal(n, 3), draw.uniform(n, 3, low=0.5, high=2.0))


@program((16, 4), (128, 10), (1024, 10))
def discs_that_collide(draw: Draws, n: int, steps: int) -> Made:
    """Every pair of discs in a box: overlaps pushed apart, impulses along normals, walls."""

    def run(x, v):
        def step(_, state):
            x, v = state
            d = x[:, None] - x[None]
            r = jnp.sqrt((d**2).sum(-1) + 1e-6)
            overlap = jnp.maximum(0.3 - r, 0.0) * (1 - jnp.eye(n))
            normal = d / r[..., None]
            closing = ((v[:, None] - v[None]) * normal).sum(-1)
            push = jnp.where((overlap > 0) & (closing < 0), -0.5 * closing, 0.0)
            v = v + (push[..., None] * normal).sum(1)
            x = x + 0.3 * (overlap[..., None] * normal).sum(1) + 0.01 * v
            v = jnp.where((x < 0) | (x > 10), -v, v)
            return jnp.clip(x, 0, 10), v

        return lax.fori_loop(0, steps, step, (x, v))

    return run, (draw.uniform(n, 2, high=10.0), draw.normal(n, 2))


@program((4, 10), (64, 30), (512, 50), wide=True)
def model_predictive_control(draw: Draws, n: int, horizon: int) -> Made:
    """A linear-quadratic regulator's backward Riccati pass, then the controlled path, for many systems; in f64.

    In f32 the path grows rounding errors a thousandfold.
    """

    def one(a, b, x):
        def back(p, _):
            k = jnp.linalg.solve(jnp.eye(2) + b.T @ p @ b, b.T @ p @ a)
            return jnp.eye(4) + a.T @ p @ (a - b @ k), k

        gains = lax.scan(back, jnp.eye(4), None, length=horizon)[1]
        return lax.scan(lambda x, k: ((a - b @ k) @ x, -k @ x), x, gains, reverse=True)

    return jax.vmap(one), (
        np.eye(4) + draw.normal(n, 4, 4, scale=0.1, dtype=np.float64),
        draw.normal(n, 4, 2, dtype=np.float64),
        draw.normal(n, 4, dtype=np.float64),
    )
