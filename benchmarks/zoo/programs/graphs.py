"""Graphs and particles, as users of jraph, jax-md and e3nn write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


@program((50, 200, 8), (2000, 20000, 32))
def message_passing(draw: Draws, nodes: int, edges: int, width: int) -> Made:
    """Two rounds of messages with sums at the receivers, and their gradient."""

    def loss(p, x, senders, receivers):
        for w, u in p:
            message = jax.nn.relu(jnp.concatenate([x[senders], x[receivers]], -1) @ w)
            x = x + jax.nn.relu(jax.ops.segment_sum(message, receivers, nodes) @ u)
        return (x.mean(0) ** 2).sum()

    p = [(draw.normal(2 * width, width, scale=0.2), draw.normal(width, width, scale=0.2)) for _ in range(2)]
    return jax.value_and_grad(loss), (
        p,
        draw.normal(nodes, width),
        draw.integers(nodes, edges),
        draw.integers(nodes, edges),
    )


@program((50, 200, 4), (2000, 20000, 8))
def graph_attention(draw: Draws, nodes: int, edges: int, heads: int) -> Made:
    """Softmax over the edges that arrive at a node: segment maxima and sums."""

    def run(w, a, x, senders, receivers):
        h = (x @ w).reshape(nodes, heads, 8)
        logits = jax.nn.leaky_relu((jnp.concatenate([h[senders], h[receivers]], -1) * a).sum(-1))
        top = jax.ops.segment_max(logits, receivers, nodes)
        e = jnp.exp(logits - top[receivers])
        weight = e / jax.ops.segment_sum(e, receivers, nodes)[receivers]
        return jax.nn.elu(jax.ops.segment_sum(weight[..., None] * h[senders], receivers, nodes))

    return run, (
        draw.normal(16, heads * 8, scale=0.3),
        draw.normal(heads, 16),
        draw.normal(nodes, 16),
        draw.integers(nodes, edges),
        draw.integers(nodes, edges),
    )


@program((64,), (1000,))
def lennard_jones(draw: Draws, n: int) -> Made:
    """Velocity Verlet of particles in a periodic box, every pair."""

    def energy(x):
        d = x[:, None] - x[None]
        d = d - 10 * jnp.round(d / 10)
        r2 = (d**2).sum(-1) + jnp.eye(n)
        s6 = 1.0 / jnp.maximum(r2, 0.64) ** 3
        return 2 * ((s6**2 - s6) * (1 - jnp.eye(n))).sum()

    def run(x, v):
        force = jax.grad(lambda x: -energy(x))

        def step(_, state):
            x, v = state
            v = v + 5e-5 * force(x)
            x = x + 1e-4 * v
            return x, v + 5e-5 * force(x)

        return lax.fori_loop(0, 3, step, (x, v))

    return run, (draw.uniform(n, 3, high=10.0), draw.normal(n, 3))


@program((64, 8), (4000, 40))
def neighbour_lists(draw: Draws, n: int, neighbours: int) -> Made:
    """Forces along lists of neighbours with masks: gathers, scatter-adds in the gradient."""

    def energy(x, index):
        d = x[:, None] - x[index]
        r2 = jnp.maximum((d**2).sum(-1), 0.5)
        return jnp.where(r2 < 9, r2**-6 - r2**-3, 0.0).sum()

    return jax.value_and_grad(energy), (draw.uniform(n, 3, high=10.0), draw.integers(n, n, neighbours))


@program((32, 6), (1000, 8))
def cell_lists(draw: Draws, n: int, cells: int) -> Made:
    """Particles sorted into cells: integer division, sorts, searches, bounded buckets."""

    def run(x):
        cell = (x / (10 / cells)).astype(jnp.int32)
        key = (cell[:, 0] * cells + cell[:, 1]) * cells + cell[:, 2]
        order = jnp.argsort(key)
        key, x = key[order], x[order]
        first = jnp.searchsorted(key, jnp.arange(cells**3))
        place = jnp.arange(n) - first[key]
        table = jnp.full((cells**3, 8), n, jnp.int32).at[key, jnp.minimum(place, 7)].set(jnp.arange(n, dtype=jnp.int32))
        near = table[(key + 1) % cells**3]
        d = x[:, None] - jnp.concatenate([x, jnp.full((1, 3), 1e3)])[near]
        return ((d**2).sum(-1) < 4).sum(1), key // cells % cells

    return run, (draw.uniform(n, 3, high=9.99),)


@program((100,), (5000,))
def rigid_bodies(draw: Draws, n: int) -> Made:
    """Quaternions to rotation matrices, inertia in world frames, small solves."""

    def run(q, v, w, torque):
        q = q / jnp.linalg.norm(q, axis=-1, keepdims=True)
        a, b, c, d = jnp.moveaxis(q, -1, 0)
        rows = [
            [1 - 2 * (c * c + d * d), 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), 1 - 2 * (b * b + d * d), 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), 1 - 2 * (b * b + c * c)],
        ]
        r = jnp.stack([jnp.stack(row, -1) for row in rows], -2)
        inertia = r @ jnp.diag(jnp.array([1.0, 2.0, 3.0])) @ r.mT
        spin = jnp.einsum("nij,nj->ni", inertia, w)
        rate = jnp.linalg.solve(inertia, (torque - jnp.cross(w, spin))[..., None])[..., 0]
        return w + 0.01 * rate, jnp.einsum("nij,nj->ni", r, v)

    return run, (draw.normal(n, 4), draw.normal(n, 3), draw.normal(n, 3), draw.normal(n, 3))


@program((50, 200), (1000, 10000))
def equivariant_features(draw: Draws, nodes: int, edges: int) -> Made:
    """Spherical harmonics up to degree two, tensor products with small contractions, sums at the nodes."""

    def run(x, s, receivers, senders, cg):
        d = x[senders] - x[receivers]
        r = jnp.sqrt((d**2).sum(-1, keepdims=True) + 1e-3)
        u = d / r
        a, b, c = u[:, :1], u[:, 1:2], u[:, 2:]
        harmonics = jnp.concatenate([a * b, b * c, (3 * c * c - 1) / 2, a * c, (a * a - b * b) / 2], -1)
        radial = jnp.exp(-((r - jnp.linspace(0.0, 4.0, 8)) ** 2))
        message = jnp.einsum("ei,ej,ijk,ec->eck", harmonics, u, cg, s[senders] * radial)
        return jax.ops.segment_sum(message, receivers, nodes)

    return run, (
        draw.normal(nodes, 3),
        draw.normal(nodes, 8),
        draw.integers(nodes, edges),
        draw.integers(nodes, edges),
        draw.normal(5, 3, 3),
    )


@program((200, 1000), (10000, 100000))
def page_rank(draw: Draws, nodes: int, edges: int) -> Made:
    """Power iterations along edges."""

    def run(senders, receivers):
        degree = jnp.maximum(jnp.zeros(nodes).at[senders].add(1.0), 1.0)

        def step(_, rank):
            return 0.15 / nodes + 0.85 * jnp.zeros(nodes).at[receivers].add((rank / degree)[senders])

        return lax.fori_loop(0, 10, step, jnp.full(nodes, 1 / nodes))

    return run, (draw.integers(nodes, edges), draw.integers(nodes, edges))


@program((20, 60), (300, 3000), (3000, 30000))
def relaxed_paths(draw: Draws, nodes: int, edges: int) -> Made:
    """Distances along edges that are relaxed all at once, until none gets less."""

    def run(senders, receivers, length):
        def relax(state):
            distance, _, rounds = state
            less = distance.at[receivers].min(distance[senders] + length)
            return less, (less < distance).any(), rounds + 1

        start = jnp.full(nodes, jnp.inf).at[0].set(0.0)
        return lax.while_loop(lambda s: s[1] & (s[2] < 50), relax, (start, True, 0))[::2]

    return run, (draw.integers(nodes, edges), draw.integers(nodes, edges), draw.uniform(edges))
