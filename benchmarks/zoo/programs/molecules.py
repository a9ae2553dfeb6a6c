"""Molecular dynamics and equivariant features, as users of jax-md and e3nn write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


@program((12, 10), (64, 20), (256, 20), tolerance=1e-3)
def thermostat(draw: Draws, n: int, steps: int) -> Made:
    """Harmonic pairs in a chain under a Nose-Hoover thermostat."""

    def energy(x):
        d = x[1:] - x[:-1]
        return 0.5 * ((jnp.sqrt((d**2).sum(1) + 1e-6) - 1) ** 2).sum()

    def run(x, v):
        def step(state, _):
            x, v, xi = state
            v = v - 0.01 * (jax.grad(energy)(x) + xi * v)
            x = x + 0.02 * v
            heat = (v**2).sum()
            return (x, v - 0.01 * jax.grad(energy)(x), xi + 0.01 * (heat / (3 * n) - 1)), heat

        return lax.scan(step, (x, v, jnp.float32(0)), None, length=steps)

    return run, (draw.normal(n, 3), draw.normal(n, 3))


@program((6,), (24,), (64,))
def three_body_energy(draw: Draws, n: int) -> Made:
    """Angles of all triples of atoms within a cutoff, and forces."""

    def energy(x):
        d = x[:, None] - x[None]
        r = jnp.sqrt((d**2).sum(-1) + jnp.eye(n))
        near = jnp.where((r < 2.5) & ~jnp.eye(n, dtype=bool), 0.5 * (jnp.cos(jnp.pi * r / 2.5) + 1), 0.0)
        cosine = jnp.einsum("ijd,ikd->ijk", d, d) / (r[:, :, None] * r[:, None])
        return ((cosine + 1 / 3) ** 2 * near[:, :, None] * near[:, None]).sum()

    return jax.value_and_grad(energy), (draw.uniform(n, 3, high=n ** (1 / 3) * 1.5),)


@program((8, 2), (64, 3), (512, 4))
def ewald_sum(draw: Draws, n: int, reach: int) -> Made:
    """Charges in a periodic box: error functions in space, phases in reciprocal space, and forces."""

    def energy(x, charge):
        d = x[:, None] - x[None]
        d = d - jnp.round(d)
        r = jnp.sqrt((d**2).sum(-1) + jnp.eye(n))
        near = 0.5 * (charge[:, None] * charge * jax.scipy.special.erfc(4 * r) / r * (1 - jnp.eye(n))).sum()
        span = jnp.arange(-reach, reach + 1)
        k = 2 * jnp.pi * jnp.stack(jnp.meshgrid(span, span, span), -1).reshape(-1, 3)
        k2 = (k**2).sum(1)
        phase = k @ x.T
        a, b = (jnp.cos(phase) * charge).sum(1), (jnp.sin(phase) * charge).sum(1)
        weight = jnp.where(k2 > 0, jnp.exp(-k2 / 64) / jnp.maximum(k2, 1.0), 0.0)
        return near + 2 * jnp.pi * (weight * (a**2 + b**2)).sum()

    return jax.value_and_grad(energy), (draw.uniform(n, 3), draw.normal(n))


@program((10,), (200,), (10000,))
def bonded_forces(draw: Draws, n: int) -> Made:
    """Bonds, angles and dihedrals of a chain, with their gradient."""

    def energy(x):
        b = x[1:] - x[:-1]
        length = jnp.linalg.norm(b, axis=1)
        bend = jnp.arccos(jnp.clip((b[1:] * b[:-1]).sum(1) / (length[1:] * length[:-1]), -0.99, 0.99))
        p, q = jnp.cross(b[:-2], b[1:-1]), jnp.cross(b[1:-1], b[2:])
        twist = jnp.arctan2((jnp.cross(p, q) * b[1:-1]).sum(1) / length[1:-1], (p * q).sum(1))
        return 50 * ((length - 1) ** 2).sum() + ((bend - 1) ** 2).sum() + (1 + jnp.cos(3 * twist)).sum()

    return jax.value_and_grad(energy), (jnp.cumsum(0.6 * draw.normal(n, 3), 0),)


@program((8, 20), (64, 40), (300, 40), tolerance=5e-3)
def fire_minimiser(draw: Draws, n: int, steps: int) -> Made:
    """Soft spheres relaxed by an inertial minimiser whose step grows and shrinks."""

    def energy(x):
        d = x[:, None] - x[None]
        r = jnp.sqrt((d**2).sum(-1) + jnp.eye(n))
        return 0.25 * (jnp.maximum(1 - r, 0.0) ** 2 * (1 - jnp.eye(n))).sum()

    def run(x):
        def step(state, _):
            x, v, dt, alpha, count = state
            f = -jax.grad(energy)(x)
            power = (f * v).sum()
            v = (1 - alpha) * v + alpha * f * jnp.sqrt((v**2).sum() / ((f**2).sum() + 1e-9))
            good = power > 0
            count = jnp.where(good, count + 1, 0)
            dt = jnp.where(good & (count > 5), jnp.minimum(1.1 * dt, 0.5), jnp.where(good, dt, 0.5 * dt))
            alpha = jnp.where(good, 0.99 * alpha, 0.1)
            v = jnp.where(good, v, 0.0) + dt * f
            return (x + dt * v, v, dt, alpha, count), energy(x)

        start = x, jnp.zeros_like(x), jnp.float32(0.1), jnp.float32(0.1), 0
        return lax.scan(step, start, None, length=steps)[1]

    return run, (draw.uniform(n, 2, high=n**0.5 * 0.7),)


def _harmonics(u):
    x, y, z = u[..., 0], u[..., 1], u[..., 2]
    first = [y, z, x]
    second = [x * y, y * z, 0.5 * (3 * z * z - 1), x * z, 0.5 * (x * x - y * y)]
    third = [
        y * (3 * x * x - y * y),
        x * y * z,
        y * (5 * z * z - 1),
        z * (5 * z * z - 3),
        x * (5 * z * z - 1),
        z * (x * x - y * y),
        x * (x * x - 3 * y * y),
    ]
    return jnp.stack([jnp.ones_like(x), *first, *second, *third], -1)


@program((20, 4), (500, 16), (5000, 32))
def tensor_product(draw: Draws, n: int, channels: int) -> Made:
    """Products of features of degree zero to three by sparse coupling, path by path, and the gradient."""
    parts = [slice(0, 1), slice(1, 4), slice(4, 9), slice(9, 16)]
    paths = [(a, b, c) for a in range(4) for b in range(3) for c in range(4) if abs(a - b) <= c <= a + b]

    def loss(w, x, u, couplings):
        y = _harmonics(u / jnp.linalg.norm(u, axis=1, keepdims=True))
        out = [jnp.zeros((n, channels, 2 * c + 1)) for c in range(4)]
        for k, (a, b, c) in enumerate(paths):
            term = jnp.einsum("nci,nj,ijk->nck", x[..., parts[a]], y[:, parts[b]], couplings[k])
            out[c] = out[c] + w[k][:, None] * term
        gate = jax.nn.sigmoid(out[0])
        return sum(((gate * o) ** 2).mean() for o in out)

    couplings = [draw.normal(2 * a + 1, 2 * b + 1, 2 * c + 1, scale=0.3) for a, b, c in paths]
    return jax.value_and_grad(loss, (0, 1)), (
        draw.normal(len(paths), channels),
        draw.normal(n, channels, 16),
        draw.normal(n, 3),
        couplings,
    )


@program((10, 40), (200, 2000), (2000, 30000))
def radial_basis_messages(draw: Draws, nodes: int, edges: int) -> Made:
    """Bessel functions of distance with a smooth cutoff, a filter network, sums at atoms, and forces."""

    def energy(x, species, p, senders, receivers):
        d = x[senders] - x[receivers] + 1e-3
        r = jnp.sqrt((d**2).sum(1, keepdims=True))
        basis = jnp.sqrt(0.4) * jnp.sin(jnp.arange(1.0, 9) * jnp.pi * r / 5) / r
        s = jnp.clip(r / 5, 0, 1)
        basis = basis * (1 - 10 * s**3 + 15 * s**4 - 6 * s**5)
        h = p["embed"][species]
        filters = jax.nn.silu(basis @ p["a"]) @ p["b"]
        h = h + jax.ops.segment_sum(h[senders] * filters, receivers, nodes)
        return (jax.nn.silu(h @ p["c"]) @ p["d"]).sum()

    shapes = {"embed": (4, 16), "a": (8, 16), "b": (16, 16), "c": (16, 16), "d": (16, 1)}
    p = {k: draw.normal(*s, scale=0.4) for k, s in shapes.items()}
    return jax.value_and_grad(energy), (
        draw.uniform(nodes, 3, high=6.0),
        draw.integers(4, nodes),
        p,
        draw.integers(nodes, edges),
        draw.integers(nodes, edges),
    )


@program((16, 4), (512, 16), (4096, 32))
def symmetric_contraction(draw: Draws, n: int, channels: int) -> Made:
    """Powers of a feature up to the third contracted with symmetric weights, by species."""

    def run(x, species, w1, w2, w3):
        a = jnp.einsum("nci,njc->nijc", x, w1[species])
        b = jnp.einsum("nci,nijc->njc", x, a + w2[species])
        return jnp.einsum("nci,nic->nc", x, b + w3[species])

    return run, (
        draw.normal(n, channels, 4),
        draw.integers(3, n),
        draw.normal(3, 4, channels),
        draw.normal(3, 4, 4, channels),
        draw.normal(3, 4, channels),
    )


@program((20, 10), (128, 10), (512, 10), tolerance=1e-3)
def soft_discs(draw: Draws, n: int, steps: int) -> Made:
    """Discs that repel where they overlap, in a periodic box (by remainders), under Langevin dynamics."""
    box = (n / 0.8) ** 0.5

    def apart(a, b):
        return jnp.mod(a - b + box / 2, box) - box / 2

    def energy(x):
        d = jax.vmap(jax.vmap(apart, (0, None)), (None, 0))(x, x)
        square = (d**2).sum(-1)
        r = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
        pairs = jnp.where(r < 1, (1 - r) ** 2, 0.0) * (1 - jnp.eye(n))
        return 0.5 * pairs.sum()

    def run(x, v, key):
        def step(i, state):
            x, v = state
            v = v - 5e-3 * jax.grad(energy)(x)
            x = jnp.mod(x + 5e-3 * v, box)
            noise = jax.random.normal(jax.random.fold_in(key, i), v.shape)
            v = 0.99 * v + 0.1 * noise
            x = jnp.mod(x + 5e-3 * v, box)
            return x, v - 5e-3 * jax.grad(energy)(x)

        x, v = lax.fori_loop(0, steps, step, (x, v))
        return x, v, energy(x), -jax.grad(energy)(x)

    return run, (draw.uniform(n, 2, high=box), draw.normal(n, 2), jnp.array([1, 5], jnp.uint32))
