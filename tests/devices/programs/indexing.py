"""Sorts, gathers, scatters, segments, searches and cumulative ops with sharded arrays, indices and updates."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.devices.program import Devices, Family, integers, normal

PROGRAMS = Family()
program = PROGRAMS.program


def _distinct(*dims: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).permutation(int(np.prod(dims))).reshape(dims).astype(np.float32)


@program()
def sorts_along_sharded_rows(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    def f(x: Any, y: Any) -> Any:
        x = d.keep(x, mesh, "y", "x")
        keys, values = lax.sort((x, y), dimension=0, num_keys=1)
        order = jnp.argsort(x, axis=1, descending=True)
        top, where = lax.top_k(x, 3)
        return d.keep(keys, mesh, "x"), values, order, top, where, jnp.median(x, axis=0), jnp.percentile(x, 30.0)

    return jax.jit(f)(_distinct(13, 7), d.put(integers(13, 7), mesh))


@program()
def stable_sort_of_ties(d: Devices) -> Any:
    mesh = d.mesh(8)
    x, y = integers(24, low=0, high=4), np.arange(24)

    def f(x: Any, y: Any) -> Any:
        first = lax.sort((x, y), num_keys=1, is_stable=True)
        lex = jnp.lexsort((y % 3, x))
        return first, lex, jnp.argmax(x), jnp.argmin(x), jnp.unique(x, size=6, fill_value=-1)

    return jax.jit(f)(d.put(x, mesh, "x"), d.put(y, mesh, "x"))


@program()
def nans_and_zeros_in_order(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    x = np.array([[np.nan, -0.0, 0.0, 1], [np.inf, np.nan, -np.inf, -1], [0, 0, 0, 0], [2, 3, 1, np.nan]], np.float32)
    x = np.tile(x, (2, 2))

    def f(x: Any) -> Any:
        return (
            jnp.sort(x, 0), jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.nanmax(x, 0), jnp.max(x, 1),
            lax.cummax(x, 1), jnp.sign(x), jnp.nanargmin(x, 1), lax.top_k(x.T, 2),
        )  # fmt: skip

    return jax.jit(f)(d.put(x, mesh, "x", "y"))


@program()
def cumulative_uneven(d: Devices) -> Any:
    mesh = d.mesh(4, 2)

    def f(x: Any) -> Any:
        x = d.keep(x, mesh, "x", "y")
        return (
            jnp.cumsum(x, 0), lax.cumsum(x, 1, reverse=True), lax.cummax(x, 0, reverse=True), lax.cummin(x, 1),
            jnp.cumprod(x % 3, 0), d.keep(jnp.diff(x, axis=0), mesh, "y"), jnp.roll(x, 3, 0), jnp.roll(x, (-2, 1), (0, 1)),
        )  # fmt: skip

    return jax.jit(f)(integers(11, 5))


@program(tolerance=1e-4)
def logsumexp_and_scan(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    def f(x: Any) -> Any:
        pairs = lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x * 0.3, x), axis=0)
        return lax.cumlogsumexp(x, 0), jnp.cumsum(x, 0), pairs, jax.nn.log_softmax(x, 0)

    return jax.jit(f)(d.put(normal(16, 4), mesh, ("y", "x")))


@program()
def searches(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    table = np.sort(integers(24, low=0, high=40))

    def f(table: Any, q: Any) -> Any:
        return (
            [jnp.searchsorted(table, q, side=s, method=m) for s in ("left", "right") for m in ("scan", "sort")],
            jnp.digitize(q, table), jnp.bincount(q.astype(int).ravel(), length=9),
            jnp.interp(q, table + jnp.arange(24) * 2, table),
            jnp.histogram(q, bins=5, range=(0, 40))[0], jnp.nonzero(q > 20, size=7), jnp.isin(q, table),
        )  # fmt: skip

    return jax.jit(f)(d.put(table, mesh, "y"), d.put(integers(6, 8, low=-2, high=44), mesh, "x", "y"))


@program()
def segments(d: Devices) -> Any:
    mesh = d.mesh(8)
    x, ids = integers(24, 3), integers(24, low=-1, high=8, dtype=np.int32)

    def f(x: Any, ids: Any) -> Any:
        kinds = (jax.ops.segment_sum, jax.ops.segment_max, jax.ops.segment_min, jax.ops.segment_prod)
        return [
            [k(x, ids, 7), d.keep(k(x, jnp.sort(ids), 7, indices_are_sorted=True), mesh, "x")] for k in kinds
        ], jax.ops.segment_sum(x, ids, 7, mode="drop")  # fmt: skip

    return jax.jit(f)(d.put(x, mesh, "x"), d.put(ids, mesh, "x"))


@program()
def scatters_of_all_kinds(d: Devices) -> Any:
    mesh = d.mesh(2, 2, 2)
    a, u = integers(10, 6), integers(8, 6, seed=2)
    i = integers(8, low=-12, high=13, dtype=np.int32)

    def f(a: Any, i: Any, u: Any) -> Any:
        a, u = d.keep(a, mesh, ("x", "z"), "y"), d.keep(u, mesh, "y", "x")
        return (
            a.at[i].add(u), a.at[i].max(u, mode="drop"), a.at[i, i % 6].min(u[:, 0]), a.at[::2, 1].set(9),
            a.at[i].mul(u, mode="clip"), a.at[:, jnp.array([0, 5, 2])].add(1.0), a.at[i].get(mode="fill", fill_value=7),
            a.at[2:7].multiply(u[:5]), a.at[jnp.arange(10) - 4].set(0),
        )  # fmt: skip

    return jax.jit(f)(a, d.put(i, mesh, ("x", "y", "z")), u)


@program()
def embedding_and_its_gradient(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    table, ids, g = integers(20, 6), integers(4, 8, low=0, high=20, dtype=np.int32), integers(4, 8, 6, seed=3)

    def f(table: Any, ids: Any, g: Any) -> Any:
        out, back = jax.vjp(lambda t: d.keep(t[ids], mesh, "x"), table)
        one_hot = jax.nn.one_hot(ids, 20) @ table
        return out, back(g)[0], one_hot, jnp.take_along_axis(g, ids[..., None] % 6, axis=2)

    return d.jit(f, None if d.one else (d.on(mesh, "x"), d.on(mesh, "y"), d.on(mesh), d.on(mesh)))(
        d.put(table, mesh, "y"), d.put(ids, mesh, "x"), d.put(g, mesh, "x", "y")
    )


@program()
def dynamic_places(d: Devices) -> Any:
    mesh = d.mesh(4, 2)

    def f(x: Any, i: Any, j: Any) -> Any:
        x = d.keep(x, mesh, "x", "y")
        window = lax.dynamic_slice(x, (i, j), (5, 3))
        wrote = lax.dynamic_update_slice(x, window * 2, (j, i - 20))
        row = lax.dynamic_index_in_dim(wrote, i, 0)
        many = jax.vmap(lambda k: lax.dynamic_slice(x, (k, 0), (2, 5)))(jnp.arange(7) * i - 3)
        return window, wrote, row, many, x[i], x[:, j], x[jnp.array([i, j, -1])]

    return jax.jit(f)(integers(13, 5), 3, 9), jax.jit(f)(integers(13, 5), -2, 1)


@program()
def slices_pads_and_joins(d: Devices) -> Any:
    mesh = d.mesh(3, 2)

    def f(x: Any, y: Any) -> Any:
        x = d.keep(x, mesh, "x", "y")
        joined = d.keep(jnp.concatenate([x[1:], y, x[:, ::-1][:3]]), mesh, "y", "x")
        padded = lax.pad(x, 7.0, ((2, -1, 1), (-1, 3, 0)))
        return (
            joined, padded, x[::-2, 1::2], jnp.stack([x, y[:1].repeat(11, 0)], 1), jnp.tile(x, (2, 3)),
            jnp.pad(x, 2, mode="reflect"), jnp.pad(x, ((0, 3), (1, 1)), mode="wrap"), jnp.split(x, (2, 7)),
            x.reshape(5, 11), x.ravel()[3:40].reshape(37), d.keep(x.T.reshape(11, 5), mesh, ("y", "x")),
        )  # fmt: skip

    return jax.jit(f)(integers(11, 5), integers(2, 5, seed=1))


@program()
def windows_over_edges(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    def f(x: Any) -> Any:
        x = d.keep(x, mesh, None, "y", "x")
        pool = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2), (1, 2, 1), ((0, 0), (2, 1), (0, 1)))
        sums = lax.reduce_window(x, 0.0, lax.add, (1, 4, 1), (1, 1, 1), "SAME", window_dilation=(1, 2, 1))
        grad = jax.grad(lambda v: jnp.sum(lax.reduce_window(v, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID") ** 2))
        return pool, sums, grad(x + jnp.arange(x.size).reshape(x.shape) * 100)

    return jax.jit(f)(integers(2, 13, 6))


@program(tolerance=0)
def booleans_and_bits(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    x, y = integers(9, 8, low=0, high=255, dtype=np.uint8), integers(9, 8, low=-100, high=100, dtype=np.int8)

    def f(x: Any, y: Any) -> Any:
        x, p = d.keep(x, mesh, "y", "x"), d.keep(y > 3, mesh, "x", "y")
        return (
            p.all(0), p.any(1), jnp.sum(p, 0), lax.population_count(x), jnp.packbits(x, axis=1), jnp.unpackbits(x[:, :2], axis=0),
            lax.bitcast_convert_type(y, jnp.uint8) ^ x, jnp.bitwise_xor.reduce(x, axis=0), x << 3, y >> 1, x // 7, y % 5,
            lax.clz(x), jnp.where(p, x, y.astype(jnp.uint8)), x.astype(jnp.float16), y.max(), y.sum(0), x.prod(1),
            lax.reduce_or(x, (0,)), lax.reduce_and(x, (1,)),
        )  # fmt: skip

    return jax.jit(f)(x, y)
