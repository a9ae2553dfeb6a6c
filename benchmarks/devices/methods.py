"""Further programs: attention over sequences, stencils, solvers, transforms, order statistics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from benchmarks.devices.case import Case, R, constrained, f32, mesh, program


@program
def ulysses_attention() -> Case:
    """Attention with the sequence sharded: all_to_all to heads and back, in shard_map."""
    m = mesh(sp=8)
    r = R(50)

    def body(q, k, v):
        q, k, v = (lax.all_to_all(x, "sp", 2, 1, tiled=True) for x in (q, k, v))
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        t = s.shape[-1]
        s = jnp.where(jnp.arange(t)[:, None] >= jnp.arange(t), s, -jnp.inf)
        o = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v)
        return lax.all_to_all(o, "sp", 1, 2, tiled=True)

    spec = P(None, "sp")
    f = jax.shard_map(body, mesh=m, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)
    return Case(f, tuple(f32(r, 2, 512, 8, 64) for _ in range(3)), m, (spec,) * 3)


@program
def ring_attention_grad() -> Case:
    """Causal ring attention and its gradient: keys and values go round in a scan, backwards too."""
    m = mesh(sp=8)
    r = R(51)

    def attention(q, k, v):
        t, here = q.shape[1], lax.axis_index("sp")
        rows = here * t + jnp.arange(t)[:, None]

        def step(carry, n):
            o, top, total, k, v = carry
            s = jnp.einsum("btd,bsd->bts", q, k) * q.shape[-1] ** -0.5
            s = jnp.where(rows >= ((here - n) % 8) * t + jnp.arange(t), s, -1e9)
            now = jnp.maximum(top, jnp.max(s, -1))
            p, old = jnp.exp(s - now[..., None]), jnp.exp(top - now)
            o = o * old[..., None] + jnp.einsum("bts,bsd->btd", p, v)
            k, v = lax.ppermute((k, v), "sp", [(i, (i + 1) % 8) for i in range(8)])
            return (o, now, total * old + jnp.sum(p, -1), k, v), None

        start = (jnp.zeros_like(q), jnp.full(q.shape[:2], -1e9), jnp.zeros(q.shape[:2]), k, v)
        (o, _, total, _, _), _ = lax.scan(step, start, jnp.arange(8))
        return o / total[..., None]

    def body(q, k, v):
        return jax.grad(lambda *x: jnp.sum(attention(*x) ** 2), argnums=(0, 1, 2))(q, k, v)

    spec = P(None, "sp", None)
    f = jax.shard_map(body, mesh=m, in_specs=(spec,) * 3, out_specs=(spec,) * 3, check_vma=False)
    return Case(f, tuple(f32(r, 4, 512, 64) for _ in range(3)), m, (spec,) * 3)


@program
def pipeline_grad() -> Case:
    """Gradient of a pipeline of 8 stages: microbatches by ppermute in a scan."""
    m = mesh(stage=8)
    r = R(52)
    micro, size, d = 16, 16, 128

    def body(w, x):
        n = lax.axis_index("stage")

        def run(w):
            def tick(state, t):
                state = jnp.where(n == 0, x[jnp.minimum(t, micro - 1)], state)
                state = jnp.tanh(state @ w[0])
                return lax.ppermute(state, "stage", [(k, (k + 1) % 8) for k in range(8)]), state

            _, states = lax.scan(tick, jnp.zeros((size, d)), jnp.arange(micro + 7))
            return jnp.sum(jnp.where(n == 7, states[7:], 0) ** 2)

        value, grad = jax.value_and_grad(run)(w)
        return lax.psum(value, "stage"), grad

    f = jax.shard_map(body, mesh=m, in_specs=(P("stage"), P()), out_specs=(P(), P("stage")), check_vma=False)
    return Case(f, (f32(r, 8, d, d, scale=0.1), f32(r, micro, size, d)), m, (P("stage"), P()))


@program
def moe_top2() -> Case:
    """Mixture of experts with two experts a token, left to the partitioner: one-hot dispatch, experts sharded."""
    m = mesh(data=2, expert=4)
    r = R(53)
    tokens, d, ff, experts, capacity = 512, 128, 256, 8, 192

    def f(x, wg, w1, w2):
        gates = jax.nn.softmax(x @ wg)
        weights, chosen = lax.top_k(gates, 2)
        onehot = jax.nn.one_hot(chosen, experts)
        place = jnp.cumsum(onehot.reshape(-1, experts), 0).reshape(tokens, 2, experts) * onehot - 1
        slot = jax.nn.one_hot(place, capacity) * onehot[..., None]
        dispatch = jnp.sum(slot, 1)
        combine = jnp.einsum("tk,tkec->tec", weights, slot)
        sent = constrained(jnp.einsum("tec,td->ecd", dispatch, x), m, "expert", None, None)
        out = jnp.einsum("ecf,efd->ecd", jax.nn.relu(jnp.einsum("ecd,edf->ecf", sent, w1)), w2)
        return jnp.einsum("tec,ecd->td", combine, out)

    arguments = (
        f32(r, tokens, d), f32(r, d, experts), f32(r, experts, d, ff, scale=0.1), f32(r, experts, ff, d, scale=0.1)
    )  # fmt: skip
    return Case(f, arguments, m, (P("data"), P(), P("expert"), P("expert")), out_specs=P("data"))


@program
def halo_stencil() -> Case:
    """A wave equation on a grid over 4 x 2 devices: halos by ppermute, 40 steps in a fori loop."""
    m = mesh(x=4, y=2)
    r = R(54)

    def body(now, before):
        def edges(u, axis, size, dim):
            up = lax.ppermute(lax.slice_in_dim(u, -1, None, axis=dim), axis, [(k, (k + 1) % size) for k in range(size)])
            down = lax.ppermute(lax.slice_in_dim(u, 0, 1, axis=dim), axis, [(k, (k - 1) % size) for k in range(size)])
            return jnp.concatenate([up, u, down], dim)

        def step(_, c):
            now, before = c
            u, v = edges(now, "x", 4, 0), edges(now, "y", 2, 1)
            around = u[2:] + u[:-2] + v[:, 2:] + v[:, :-2] - 4 * now
            return 2 * now - before + 0.1 * around, now

        return lax.fori_loop(0, 40, step, (now, before))

    spec = P("x", "y")
    f = jax.shard_map(body, mesh=m, in_specs=(spec, spec), out_specs=(spec, spec), check_vma=False)
    u = f32(r, 1024, 1024)
    return Case(f, (u, u * np.float32(0.99)), m, (spec, spec))


@program
def heat_automatic() -> Case:
    """Heat on a grid over 8 devices with numpy's rolls, left to the partitioner; 30 steps in a scan, and energies."""
    m = mesh(x=8)
    r = R(55)

    def f(u):
        def step(u, _):
            around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
            u = constrained(u + 0.1 * (around - 4 * u), m, "x", None)
            return u, jnp.sum(u * u)

        return lax.scan(step, u, None, length=30)

    return Case(f, (f32(r, 1024, 512),), m, (P("x"),))


@program
def order_statistics() -> Case:
    """Sort, top-k, cumulative sums and a histogram of vectors sharded over 8 devices."""
    m = mesh(x=8)
    r = R(56)

    def f(a, keys, values):
        order = jnp.argsort(keys)
        return (
            jnp.sort(a, -1),
            lax.top_k(a, 16),
            jnp.cumsum(a, 1),
            values[order],
            jnp.zeros(256).at[keys % 256].add(values),
            jnp.searchsorted(jnp.sort(values), a[:, :64]),
        )

    n = 1 << 16
    keys = r.permutation(n).astype(np.int32)
    return Case(f, (f32(r, 256, 4096), keys, f32(r, n)), m, (P("x"), P("x"), P("x")))


@program
def spectral_step() -> Case:
    """A pseudo-spectral step: two-dimensional FFT sharded over rows, a filter, back; in 3 rounds."""
    m = mesh(x=8)
    r = R(57)

    def f(u):
        k = jnp.fft.fftfreq(512)
        decay = jnp.exp(-10 * (k[:, None] ** 2 + k[None, :] ** 2))

        def step(u, _):
            s = constrained(jnp.fft.fft(u, axis=1), m, None, "x")
            s = jnp.fft.fft(s, axis=0) * decay
            u = jnp.fft.ifft(constrained(jnp.fft.ifft(s, axis=0), m, "x", None), axis=1).real
            return jnp.tanh(u), jnp.max(jnp.abs(u))

        return lax.scan(step, u, None, length=3)

    return Case(f, (f32(r, 512, 512),), m, (P("x"),))


@program
def conjugate_gradients() -> Case:
    """Conjugate gradients in shard_map, rows on 8 devices: a while loop until psum of the residual is small."""
    m = mesh(x=8)
    r = R(58)

    def body(a, b):
        def dot(p, q):
            return lax.psum(jnp.vdot(p, q), "x")

        def step(c):
            x, res, p, rr, n = c
            ap = a @ lax.all_gather(p, "x", tiled=True)
            alpha = rr / dot(p, ap)
            x, res = x + alpha * p, res - alpha * ap
            new = dot(res, res)
            return x, res, res + new / rr * p, new, n + 1

        x = jnp.zeros_like(b)
        found = lax.while_loop(lambda c: (c[3] > 1e-8) & (c[4] < 100), step, (x, b, b, dot(b, b), 0))
        return found[0], found[3], found[4]

    f = jax.shard_map(body, mesh=m, in_specs=(P("x"), P("x")), out_specs=(P("x"), P(), P()), check_vma=False)
    a = f32(r, 1024, 1024)
    return Case(f, (a @ a.T / 1024 + np.eye(1024, dtype=np.float32) * 0.5, f32(r, 1024)), m, (P("x"), P("x")))


@program
def kmeans() -> Case:
    """Lloyd's k-means left to the partitioner: points over 8 devices, 10 rounds in a fori loop."""
    m = mesh(x=8)
    r = R(59)

    def f(points, centres):
        def step(_, centres):
            distance = jnp.sum(centres**2, -1) - 2 * points @ centres.T
            member = jax.nn.one_hot(jnp.argmin(distance, -1), centres.shape[0])
            return (member.T @ points) / jnp.maximum(member.sum(0), 1)[:, None]

        return lax.fori_loop(0, 10, step, centres)

    return Case(f, (f32(r, 16384, 32), f32(r, 64, 32)), m, (P("x"), P()))
