"""More sharded programs of single ideas: rings, beams, sorts, scans, grids, solvers, histograms, stages."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from benchmarks.devices.case import Case, R, constrained, f32, mesh
from benchmarks.devices.wider import program


@program
def ring_matmul() -> Case:
    """A product whose rows travel around a ring while columns are computed, written by hand with ppermute."""
    m, r = mesh(x=8), R(6)

    def f(a: Any, b: Any) -> Any:
        def local(a: Any, b: Any) -> Any:
            me, rows = lax.axis_index("x"), a.shape[0]
            out = jnp.zeros((rows * 8, b.shape[1]), a.dtype)
            for n in range(8):
                out = lax.dynamic_update_slice(out, a @ b, ((me - n) % 8 * rows, 0))
                if n < 7:
                    a = lax.ppermute(a, "x", [(d, (d + 1) % 8) for d in range(8)])
            return out

        return jax.shard_map(local, mesh=m, in_specs=(P("x"), P(None, "x")), out_specs=P(None, "x"), check_vma=False)(
            a, b
        )

    return Case(f, (f32(r, 64, 96), f32(r, 96, 64)), m, (P("x"), P(None, "x")))


@program
def beam_search_step() -> Case:
    """Top-k over a split vocabulary, and beams picked by it from split states."""
    m, r = mesh(data=2, vocab=4), R(8)

    def f(scores: Any, logits: Any, states: Any) -> Any:
        total = (scores[..., None] + jax.nn.log_softmax(logits)).reshape(scores.shape[0], -1)
        best, at = lax.top_k(total, 4)
        beams = at // logits.shape[-1]
        return best, at % logits.shape[-1], jnp.take_along_axis(states, beams[..., None], 1), jnp.argmax(logits, -1)

    args = (f32(r, 8, 4), f32(r, 8, 4, 256), f32(r, 8, 4, 32))
    return Case(f, args, m, (P("data"), P("data", None, "vocab"), P("data")))


@program
def ranks_and_sums() -> Case:
    """Cumulative sums, differences, sorts, ranks and medians along split dimensions."""
    m, r = mesh(x=4, y=2), R(9)

    def f(a: Any) -> Any:
        ranks = jnp.argsort(jnp.argsort(a, 1), 1)
        return jnp.cumsum(a, 0), jnp.diff(a, axis=0), jnp.sort(a, 1), ranks, jnp.median(a, 1), jnp.flip(a, 0)

    return Case(f, (f32(r, 64, 48),), m, (P("x", "y"),))


@program
def state_space_scan() -> Case:
    """A linear recurrence by an associative scan along a split sequence."""
    m, r = mesh(data=2, seq=4), R(13)

    def f(a: Any, b: Any, c: Any) -> Any:
        def join(left: Any, right: Any) -> Any:
            return left[0] * right[0], right[0] * left[1] + right[1]

        _, h = lax.associative_scan(join, (jax.nn.sigmoid(a), b), axis=1)
        return jnp.sum(h * c, -1)

    spec = P("data", "seq")
    return Case(f, tuple(f32(r, 4, 64, 16) for _ in range(3)), m, (spec, spec, spec), spec)


@program
def stencil() -> Case:
    """Heat on a grid split in both dimensions: ten steps with neighbours by padding and slices."""
    m, r = mesh(x=4, y=2), R(14)

    def f(u: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            p = jnp.pad(u, 1)
            return u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)

        return lax.fori_loop(0, 10, step, u)

    return Case(f, (f32(r, 64, 64),), m, (P("x", "y"),), P("x", "y"))


@program
def conjugate_gradients() -> Case:
    """Eight steps of conjugate gradients with a matrix split in both dimensions."""
    m, r = mesh(x=4, y=2), R(15)

    def f(a: Any, b: Any) -> Any:
        def step(_: Any, c: Any) -> Any:
            x, res, d, rr = c
            ad = a @ d
            alpha = rr / (d @ ad)
            res = res - alpha * ad
            new = res @ res
            return x + alpha * d, res, res + new / rr * d, new

        return lax.fori_loop(0, 8, step, (b * 0, b, b, b @ b))[0]

    a = f32(r, 128, 128)
    return Case(f, (a @ a.T / 128 + np.eye(128, dtype=np.float32), f32(r, 128)), m, (P("x", "y"), P("x")), P("x"))


@program
def histograms() -> Case:
    """Counts and sums by segment of split data, and values read back by segment."""
    m, r = mesh(x=8), R(18)

    def f(values: Any, segments: Any) -> Any:
        sums = jax.ops.segment_sum(values, segments, 16)
        counts = jnp.bincount(segments, length=16)
        mean = sums / jnp.maximum(counts, 1)[:, None]
        return sums, counts, values - mean[segments], jax.ops.segment_max(values, segments, 16)

    return Case(f, (f32(r, 256, 8), r.integers(0, 16, 256).astype(np.int32)), m, (P("x"), P("x")))


@program
def stacked_stages() -> Case:
    """Layers split over stages as a dimension, micro-batches shifted through them by a roll."""
    m, r = mesh(stage=4, data=2), R(21)

    def f(w: Any, x: Any) -> Any:
        def tick(carry: Any, fed: Any) -> Any:
            carry = jnp.roll(carry, 1, 0).at[0].set(fed)
            carry = constrained(jnp.tanh(jnp.einsum("sbd,sde->sbe", carry, w)), m, "stage", "data", None)
            return carry, carry[-1]

        fed = jnp.concatenate([x, jnp.zeros((3, *x.shape[1:]))])
        _, out = lax.scan(tick, jnp.zeros((4, *x.shape[1:])), fed)
        return out[3:]

    return Case(f, (f32(r, 4, 64, 64, scale=0.1), f32(r, 8, 8, 64)), m, (P("stage"), P(None, "data")))
