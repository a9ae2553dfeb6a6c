"""shard_map and pmap: collectives, nesting, partly manual, gradients, vmap."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.devices.program import Devices, Family, integers, normal

PROGRAMS = Family()
program = partial(PROGRAMS.program, alone=False)


@program()
def collectives_in_one_body(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=False)
    def f(x: Any) -> Any:
        total = lax.psum(x, ("x", "y"))
        part = lax.psum_scatter(x, "y", scatter_dimension=0, tiled=True)
        back = lax.all_gather(part, "y", axis=0, tiled=True)
        turned = lax.all_to_all(x, "y", 0, 1, tiled=True)
        stacked = lax.all_gather(x, "x").sum(0)
        moved = lax.ppermute(x, "y", [(0, 2), (2, 3), (3, 0)])
        top = lax.pmax(x, "x") - lax.pmin(x, "y") + lax.pmean(x, "y")
        return total + back + stacked + moved + top + turned.sum() + lax.axis_index("y") * 3

    return f(integers(16, 8))


@program()
def nested_shard_map(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    def inner(x: Any) -> Any:
        return lax.psum_scatter(x, "y", scatter_dimension=1, tiled=True) + x[:, :1]

    def outer(x: Any) -> Any:
        y = jax.shard_map(inner, in_specs=P(), out_specs=P(None, "y"), axis_names={"y"})(x * 2)
        return lax.psum(y, "x") + x

    f = jax.shard_map(outer, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    with jax.set_mesh(mesh):
        return jax.jit(f)(integers(6, 8)), jax.jit(jax.grad(lambda x: jnp.sum(f(x) ** 2)))(integers(6, 8))


@program()
def partly_manual_with_matmul(d: Devices) -> Any:
    mesh = d.mesh(2, 2, 2)

    @partial(jax.shard_map, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P(None, "x"), axis_names={"x"})
    def f(a: Any, b: Any) -> Any:
        c = d_keep(a @ b.T)
        return lax.psum_scatter(c, "x", scatter_dimension=1, tiled=True)

    def d_keep(x: Any) -> Any:
        return lax.with_sharding_constraint(x, P("y", "z"))

    with jax.set_mesh(mesh):
        a, b = d.put(integers(8, 6), mesh, ("x", "y"), "z"), d.put(integers(8, 6, seed=2), mesh, "x", "z")
        return jax.jit(f)(a, b), jax.jit(jax.grad(lambda a: (f(a, b) ** 2).sum()))(a)


@program()
def vmap_of_shard_map(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    f = jax.shard_map(lambda x, y: lax.psum(x @ y, "y"), mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))
    a, b = integers(3, 4, 8), integers(3, 8, 5, seed=1)
    spread = jax.vmap(f, spmd_axis_name="x", in_axes=(0, None))
    g = jax.shard_map(lambda x: lax.pmax(x, "y") + x, mesh=mesh, in_specs=P("y"), out_specs=P("y"))
    return (
        jax.jit(jax.vmap(f))(a, b),
        jax.jit(jax.vmap(f, in_axes=(0, None)))(a, b[0]),
        jax.jit(jax.vmap(g, spmd_axis_name="x"))(integers(4, 8)),
        spread is not None and jax.jit(jax.vmap(g, in_axes=1, out_axes=1))(integers(8, 3)),
    )


@program(tolerance=1e-4)
def ring_attention(d: Devices) -> Any:
    mesh = d.mesh(8)

    def local(q: Any, k: Any, v: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            k, v, num, den, top = carry
            s = q @ k.T
            new = jnp.maximum(top, s.max(1))
            w = jnp.exp(s - new[:, None])
            num = num * jnp.exp(top - new)[:, None] + w @ v
            den = den * jnp.exp(top - new) + w.sum(1)
            ring = [(i, (i + 1) % 8) for i in range(8)]
            return (lax.ppermute(k, "x", ring), lax.ppermute(v, "x", ring), num, den, new), None

        start = (k, v, jnp.zeros_like(q), jnp.zeros_like(q[:, 0]), jnp.full_like(q[:, 0], -jnp.inf))
        (_, _, num, den, _), _ = lax.scan(step, start, None, 8)
        return num / den[:, None]

    f = jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    q, k, v = (normal(16, 4, seed=n) for n in range(3))
    return jax.jit(f)(q, k, v), jax.jit(jax.grad(lambda q: jnp.sum(f(q, k, v) ** 2)))(q)


@program()
def pipeline_of_stages(d: Devices) -> Any:
    mesh = d.mesh(4)

    def stages(w: Any, x: Any) -> Any:
        rank = lax.axis_index("x")

        def tick(t: Any, state: Any) -> Any:
            held, out = state
            held = jnp.where(rank == 0, x[jnp.minimum(t, 4)], held)
            done = held * w[0] + rank
            out = lax.dynamic_update_index_in_dim(out, done, jnp.clip(t - 3, 0, 4), 0)
            return lax.ppermute(done, "x", [(i, i + 1) for i in range(3)]), out

        start = lax.pcast((jnp.zeros(6), jnp.zeros((5, 6))), "x", to="varying")
        _, out = lax.fori_loop(0, 8, tick, start)
        return lax.psum(jnp.where(rank == 3, out, 0), "x")

    f = jax.shard_map(stages, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())
    return jax.jit(f)(integers(4), integers(5, 6))


@program()
def cond_on_the_rank(d: Devices) -> Any:
    mesh = d.mesh(4, 2)

    def local(x: Any) -> Any:
        k = lax.axis_index("x")
        x = lax.switch(k, [lambda v: v + 1, lambda v: v * 2, lambda v: -v, lambda v: v[::-1]], x)
        total = lax.psum(x, "y")
        return lax.cond(total.sum() > 0, lambda v: v - 1, lambda v: v * 3, total)

    return jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x")))(integers(8, 6))


@program()
def while_with_a_collective_end(d: Devices) -> Any:
    mesh = d.mesh(8)

    def local(x: Any) -> Any:
        def more(s: Any) -> Any:
            return s[1] < 60

        def body(s: Any) -> Any:
            x, _ = s
            x = x + jnp.abs(x) + 1
            return x, lax.pmax(x.max(), "x")

        return lax.while_loop(more, body, (x, lax.pmax(x.max(), "x")))

    return jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P())))(integers(16, 3))


@program(tolerance=1e-4)
def gradient_through_all(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    @jax.custom_vjp
    def scaled(x: Any) -> Any:
        return lax.psum(x, "y")

    scaled.defvjp(lambda x: (scaled(x), None), lambda _, g: (lax.pcast(g, "y", to="varying") * 0.5,))

    def local(x: Any, w: Any) -> Any:
        h = jnp.tanh(lax.all_gather(x, "x", axis=0, tiled=True) @ w)
        return lax.psum_scatter(scaled(h), "x", scatter_dimension=0, tiled=True)

    f = jax.shard_map(local, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))
    g = jax.grad(lambda x, w: jnp.sum(f(x, w) ** 2), argnums=(0, 1))
    h = jax.grad(lambda x, w: jnp.sum(jax.remat(f)(x, w) ** 3))
    x, w = normal(6, 8) * 0.5, normal(8, 3, seed=1)
    return jax.jit(g)(x, w), jax.jit(h)(x, w)


@program()
def pmap_with_groups(d: Devices) -> Any:
    x = integers(8, 5)
    groups = [[0, 3, 5, 6], [1, 2, 4, 7]]

    def f(x: Any) -> Any:
        inside = lax.psum(x, "i", axis_index_groups=groups)
        rows = lax.all_gather(x, "i", axis_index_groups=groups)
        best = lax.pmax(x, "i", axis_index_groups=[[7, 6], [5, 4], [3, 2], [1, 0]])
        turned = lax.all_to_all(rows, "i", 0, 0, axis_index_groups=groups)
        return inside, rows, best, turned, lax.psum_scatter(rows, "i", axis_index_groups=groups)

    return jax.pmap(f, axis_name="i")(x)


@program(tolerance=1e-4)
def pmap_training(d: Devices) -> Any:
    w, x = normal(5, 3), normal(8, 4, 5, seed=1)

    def step(w: Any, x: Any) -> Any:
        loss, g = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
        return w - 0.3 * lax.pmean(g, "i"), lax.pmean(loss, "i")

    step = jax.pmap(step, axis_name="i", in_axes=(None, 0), out_axes=(None, 0))
    for _ in range(3):
        w, loss = step(w, x)
    return w, loss


@program()
def pmap_nested_vmap_and_static(d: Devices) -> Any:
    f = jax.pmap(
        lambda x, n, s: (jax.vmap(lambda r: lax.psum(r, "i") * n)(x), lax.axis_index("i") + s),
        axis_name="i", in_axes=(1, None, 0), static_broadcasted_argnums=1, donate_argnums=2, devices=jax.devices()[3:7],
    )  # fmt: skip
    return f(integers(3, 4, 2), 5, np.arange(4))


@program()
def ragged_exchange(d: Devices) -> Any:
    mesh = d.mesh(4)

    def local(x: Any, out: Any, starts: Any, sizes: Any, places: Any, received: Any) -> Any:
        return lax.ragged_all_to_all(
            x, out, starts.ravel(), sizes.ravel(), places.ravel(), received.ravel(), axis_name="x"
        )

    sizes = np.array([[1, 2, 0, 1], [0, 3, 1, 1], [2, 2, 2, 0], [1, 0, 1, 4]], np.int32)
    starts = np.cumsum(sizes, 1, dtype=np.int32) - sizes
    places = np.cumsum(sizes, 0, dtype=np.int32) - sizes
    x = np.arange(24, dtype=np.float32)
    f = jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    found = jax.jit(f)(x, np.full(32, -1, np.float32), starts, sizes, places, sizes.T.copy())
    want = np.full(32, -1, np.float32)  # JAX's CPU does not know the call
    for k in range(4):
        for to in range(4):
            begin, n = 6 * k + starts[k, to], sizes[k, to]
            want[8 * to + places[k, to] :][:n] = x[begin : begin + n]
    np.testing.assert_array_equal(found, want)
    return found


@program()
def ragged_exchange_rows(d: Devices) -> Any:
    """Rows of two devices at a time, two pieces to each."""
    mesh = d.mesh(2, 4)

    def local(x: Any, out: Any, starts: Any, sizes: Any, places: Any, received: Any) -> Any:
        return lax.ragged_all_to_all(
            x, out, starts.ravel(), sizes.ravel(), places.ravel(), received.ravel(), axis_name="x"
        )

    sizes = np.array([[1, 0, 2, 1], [2, 1, 0, 1]], np.int32)
    starts = np.array([[0, 1, 1, 3], [4, 2, 0, 0]], np.int32)
    places = np.array([[0, 1, 0, 2], [1, 3, 3, 3]], np.int32)
    f = jax.shard_map(
        local, mesh=mesh, in_specs=(P("x", "y"), P("x", "y"), P("x"), P("x"), P("x"), P("x")), out_specs=P("x", "y")
    )
    received = np.array([[1, 0, 2, 1], [2, 1, 0, 1]], np.int32)
    x, want = integers(12, 8), np.zeros((12, 8), np.float32)
    found = jax.jit(f)(x, want, starts, sizes, places, received)
    for k in range(2):
        for piece in range(4):
            begin, n = 6 * k + starts[k, piece], sizes[k, piece]
            want[6 * (piece // 2) + places[k, piece] :][:n] = x[begin : begin + n]
    np.testing.assert_array_equal(found, want)
    return found


@program()
def eager_shard_map(d: Devices) -> Any:
    mesh = d.mesh(2, 4, order=(7, 6, 5, 4, 0, 1, 2, 3))
    f = jax.shard_map(lambda x: jnp.cumsum(x, 0) - lax.axis_index("y"), mesh=mesh, in_specs=P("y"), out_specs=P("y"))
    return f(integers(12, 5)), jax.vmap(f, in_axes=1)(integers(12, 5))


@program()
def axes_named_in_other_order(d: Devices) -> Any:
    mesh = d.mesh(2, 2, 2)
    spec = P(("z", "x"), "y")
    f = jax.shard_map(
        lambda x: lax.all_gather(x, ("x", "z"), axis=0, tiled=True)
        + lax.axis_index(("y", "z")) + 10 * lax.axis_index(("z", "x")),
        mesh=mesh, in_specs=spec, out_specs=P(("x", "y", "z")), check_vma=False,
    )  # fmt: skip
    g = jax.shard_map(
        lambda x: lax.psum_scatter(x, ("z", "y"), scatter_dimension=0, tiled=True), mesh=mesh, in_specs=P(None, "x"),
        out_specs=P(("z", "y"), "x"),
    )  # fmt: skip
    return jax.jit(f)(integers(8, 6)), jax.jit(g)(integers(8, 6))


@program()
def types_through_collectives(d: Devices) -> Any:
    mesh = d.mesh(8)

    def local(*arrays: Any) -> Any:
        ring = [(i, (i + 3) % 8) for i in range(8)]
        return [
            (lax.psum(a, "x"), lax.all_gather(a, "x", tiled=True), lax.ppermute(a, "x", ring))
            for a in arrays
        ]  # fmt: skip

    arrays = [integers(8, 3, dtype=t) for t in (jnp.bfloat16, np.float16, np.int8, np.uint8, np.complex64, np.int16)]
    f = jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=[(P(), P(), P("x"))] * len(arrays), check_vma=False)
    return jax.jit(f)(*arrays), jax.jit(
        jax.shard_map(lambda p: lax.all_gather(p, "x"), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
    )(integers(16) > 0)


@program(wide=True)
def wide_types_through_collectives(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    f = jax.shard_map(
        lambda a: (lax.psum(a, "y"), lax.psum_scatter(a, "x", tiled=True), lax.pmax(a.real, "x")),
        mesh=mesh, in_specs=P(None, "y"), out_specs=(P(), P("x", "y"), P(None, "y")),
    )  # fmt: skip
    return [jax.jit(f)(integers(4, 8, dtype=t)) for t in (np.float64, np.int64, np.complex128)]


@program()
def random_in_each_device(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    def local(key: Any, x: Any) -> Any:
        key = jax.random.fold_in(key[0], lax.axis_index("y"))
        return x + jax.random.normal(key, x.shape), jax.random.bits(key, (1,))

    keys = jax.random.split(jax.random.key(4), 2)
    f = jax.shard_map(local, mesh=mesh, in_specs=(P("x"), P("x", "y")), out_specs=(P("x", "y"), P(("x", "y"))))
    return jax.jit(f)(keys, integers(4, 8))


@program()
def global_in_manual_in_global(d: Devices) -> Any:
    """A body between uneven global ops, its sharding other than theirs."""
    mesh = d.mesh(3, 2)
    body = jax.shard_map(lambda x: x - lax.pmean(x, "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))

    def f(x: Any) -> Any:
        x = lax.with_sharding_constraint(x * 3, d.on(mesh, "y", "x"))
        y = body(jnp.pad(x, ((0, 2), (1, 0))))
        return lax.with_sharding_constraint(y[1:6, ::-1], d.on(mesh, ("y", "x"))), y.sum()

    return jax.jit(f)(integers(7, 5) * 3)


@program()
def psum_of_a_constant_and_of_a_tree(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    def local(x: Any) -> Any:
        n = lax.psum(1, ("x", "y"))
        tree = lax.psum({"a": x, "b": (x[:1] * 2, x.sum())}, "x")
        return n * x, tree["a"], tree["b"][0], tree["b"][1][None] + n

    out = (P("x", "y"), P(None, "y"), P(None, "y"), P("y"))
    return jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=out))(integers(4, 8))


@program(tolerance=1e-4)
def scan_of_shard_map_in_grad(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    mix = jax.shard_map(
        lambda h, w: lax.psum_scatter(jnp.tanh(h) @ w, "y", scatter_dimension=1, tiled=True),
        mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x", "y"),
    )  # fmt: skip

    def loss(w: Any, x: Any) -> Any:
        last, rows = lax.scan(lambda h, w: (h + mix(h, w), h[0]), x, w)
        return jnp.sum(last**2) + jnp.sum(rows)

    return jax.jit(jax.value_and_grad(loss))(normal(3, 8, 8) * 0.4, normal(4, 8, seed=1))
