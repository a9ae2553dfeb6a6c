"""Programs made of collectives: shard_map."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from benchmarks.devices.case import Case, R, f32, mesh, program


@program
def collectives_zoo() -> Case:
    """Every collective of jax.lax in shard_map over one and over two axes."""
    m = mesh(x=4, y=2)
    r = R(8)

    def body(a, i):
        n = lax.axis_index("x")
        return dict(
            psum=lax.psum(a, "x"),
            psum_both=lax.psum(a, ("x", "y")),
            pmean=lax.pmean(a, "y"),
            pmax=lax.pmax(a, "x"),
            pmin=lax.pmin(i, ("x", "y")),
            gather_tiled=lax.all_gather(a, "x", axis=0, tiled=True),
            gather=lax.all_gather(i, "y", axis=1),
            gather_both=lax.all_gather(i, ("y", "x"), axis=0, tiled=True),
            scatter=lax.psum_scatter(jnp.tile(a, (4, 1)), "x", scatter_dimension=0, tiled=True),
            scatter_untiled=lax.psum_scatter(jnp.stack([a, a * 2]), "y", scatter_dimension=0),
            shift=lax.ppermute(a, "x", [(k, (k + 1) % 4) for k in range(4)]),
            some=lax.ppermute(i, "y", [(0, 1)]),
            swap=lax.pshuffle(a, "x", [2, 3, 0, 1]),
            all_to_all=lax.all_to_all(jnp.tile(a, (1, 4)), "x", 1, 0, tiled=True),
            all_to_all_untiled=lax.all_to_all(jnp.stack([i, i + 1]), "y", 0, 1),
            groups=lax.psum(a, "x", axis_index_groups=[[0, 1], [2, 3]]),
            gather_groups=lax.all_gather(i, "x", axis_index_groups=[[0, 2], [1, 3]], axis=0, tiled=True),
            index=jnp.full((1, 1), n * 10 + lax.axis_index("y"), jnp.int32),
            size=jnp.full((1, 1), lax.axis_size("x")),
            bools=lax.psum(i > 3, "x"),
            halves=lax.psum(a.astype(jnp.bfloat16), "y").astype(jnp.float32),
        )

    f = jax.shard_map(body, mesh=m, in_specs=(P("x", "y"), P("x", "y")), out_specs=P("x", "y"), check_vma=False)
    return Case(f, (f32(r, 2048, 1536), r.integers(0, 9, (2048, 1024)).astype(np.int32)), m, (P("x", "y"), P("x", "y")))


@program
def moe_all_to_all() -> Case:
    """Mixture of experts: tokens go to the devices of their experts and back by all_to_all, in shard_map."""
    m = mesh(expert=8)
    r = R(9)
    tokens, d, capacity = 512, 128, 96

    def body(x, wg, w1, w2):
        x = x[0]
        gates = jax.nn.softmax(x @ wg)
        choice = jnp.argmax(gates, -1)
        onehot = jax.nn.one_hot(choice, 8)
        place = jnp.cumsum(onehot, 0) * onehot
        place = (jnp.max(place, -1) - 1).astype(jnp.int32)
        kept = place < capacity
        sent = jnp.zeros((8, capacity, d)).at[choice, jnp.where(kept, place, capacity)].set(x, mode="drop")
        got = lax.all_to_all(sent, "expert", 0, 0)
        out = jax.nn.relu(got @ w1[0]) @ w2[0]
        back = lax.all_to_all(out, "expert", 0, 0)
        y = back[choice, jnp.minimum(place, capacity - 1)] * jnp.where(kept, jnp.max(gates, -1), 0)[:, None]
        return y[None], lax.psum(jnp.sum(kept), "expert")

    f = jax.shard_map(
        body,
        mesh=m,
        in_specs=(P("expert"), P(), P("expert"), P("expert")),
        out_specs=(P("expert"), P()),
        check_vma=False,
    )
    return Case(
        f,
        (f32(r, 8, tokens, d), f32(r, d, 8), f32(r, 8, d, 512, scale=0.1), f32(r, 8, 512, d, scale=0.05)),
        m,
        (P("expert"), P(), P("expert"), P("expert")),
    )


@program
def ring_attention() -> Case:
    """Attention with the sequence over 8 devices: keys and values go round by ppermute in a scan."""
    m = mesh(sp=8)
    r = R(10)

    def body(q, k, v):
        def step(carry, _):
            o, top, total, k, v = carry
            s = jnp.einsum("btd,bsd->bts", q, k) * q.shape[-1] ** -0.5
            now = jnp.maximum(top, jnp.max(s, -1))
            p, old = jnp.exp(s - now[..., None]), jnp.exp(top - now)
            o = o * old[..., None] + jnp.einsum("bts,bsd->btd", p, v)
            shift = [(n, (n + 1) % 8) for n in range(8)]
            return (
                o,
                now,
                total * old + jnp.sum(p, -1),
                lax.ppermute(k, "sp", shift),
                lax.ppermute(v, "sp", shift),
            ), None

        start = (jnp.zeros_like(q), jnp.full(q.shape[:2], -jnp.inf), jnp.zeros(q.shape[:2]), k, v)
        (o, _, total, _, _), _ = lax.scan(step, start, None, length=8)
        return (o / total[..., None],)

    spec = P(None, "sp", None)
    f = jax.shard_map(body, mesh=m, in_specs=(spec,) * 3, out_specs=(spec,), check_vma=False)
    return Case(f, tuple(f32(r, 4, 1024, 64) for _ in range(3)), m, (spec,) * 3)


@program
def pipeline() -> Case:
    """Four stages of a pipeline over microbatches: shard_map, scan, ppermute, psum at the end."""
    m = mesh(stage=4)
    r = R(11)
    micro, size, d = 8, 64, 256

    def body(w, x):
        n = lax.axis_index("stage")

        def tick(carry, t):
            state, out = carry
            state = jnp.where(n == 0, lax.dynamic_index_in_dim(x, jnp.minimum(t, micro - 1), 0, False), state)
            state = jnp.tanh(state @ w[0])
            done = jnp.clip(t - 3, 0, micro - 1)
            out = jnp.where((n == 3) & (t >= 3), lax.dynamic_update_index_in_dim(out, state, done, 0), out)
            return (lax.ppermute(state, "stage", [(k, (k + 1) % 4) for k in range(4)]), out), None

        (_, out), _ = lax.scan(tick, (jnp.zeros((size, d)), jnp.zeros((micro, size, d))), jnp.arange(micro + 3))
        return lax.psum(jnp.where(n == 3, out, 0), "stage")

    f = jax.shard_map(body, mesh=m, in_specs=(P("stage"), P()), out_specs=P(), check_vma=False)
    return Case(f, (f32(r, 4, d, d, scale=0.1), f32(r, micro, size, d)), m, (P("stage"), P()))


@program
def partial_manual() -> Case:
    """Shard_map over one axis of two, the other left to the partitioner; nested in automatic code."""
    m = mesh(x=4, y=2)
    r = R(12)

    def body(a, w):
        a = lax.psum_scatter(a @ w, "x", scatter_dimension=1, tiled=True)
        return lax.ppermute(a, "x", [(k, (k + 1) % 4) for k in range(4)])

    def f(a, w):
        a = jnp.sin(a) + 1
        b = jax.shard_map(
            body, mesh=m, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"), axis_names={"x"}
        )(a, w)
        return jnp.sum(b, 0), b * 2

    return Case(f, (f32(r, 512, 512), f32(r, 512, 768)), m, (P("y", "x"), P("x", "y")))


@program
def gspmd_shard_map() -> Case:
    """Shard_map and automatic code lowered for GSPMD: SPMDFullToShardShape, SPMDShardToFullShape, manual subgroups."""
    m = mesh(x=4, y=2)
    r = R(28)

    def body(a):
        return lax.psum(a, "x") + lax.ppermute(a, "x", [(0, 1), (1, 2), (2, 3), (3, 0)])

    def f(a):
        whole = jax.shard_map(body, mesh=m, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=False)(a * 2)
        part = jax.shard_map(body, mesh=m, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}, check_vma=False)(whole)
        return jnp.sort(part, 0), part

    return Case(f, (f32(r, 2048, 1024),), m, (P("x", "y"),))
