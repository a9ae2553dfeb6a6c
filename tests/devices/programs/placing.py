"""Where results go: shardings of results, donation, explicit axes, copies between shardings, custom partitioning."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from tests.devices.program import Devices, Family, integers, normal

PROGRAMS = Family()
program = PROGRAMS.program


@program()
def results_in_all_shardings(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    specs = [(), ("x",), (None, "y"), ("y", "x"), (("y", "x"),), (None, ("x", "y")), ("x", "y")]
    a = integers(8, 16)

    def f(x: Any) -> Any:
        return [x.T.reshape(8, 16) + n for n in range(len(specs))]

    where = [d.on(mesh, *s) for s in specs]
    return [d.jit(f, where)(d.put(a, mesh, *s)) for s in specs[::2]]


@program()
def donation_of_a_state(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    state = {"a": d.put(integers(8, 8), mesh, "x", "y"), "b": d.put(integers(8), mesh), "n": jnp.int32(0)}
    turned = {"a": d.on(mesh, "y", "x"), "b": d.on(mesh, "y"), "n": d.on(mesh)}

    def f(s: Any, x: Any) -> Any:
        return {"a": s["a"] + x, "b": s["b"] * 2 + s["a"].sum(0), "n": s["n"] + 1}

    same = jax.jit(f, donate_argnums=0)
    other = d.jit(f, None if d.one else turned, donate_argnums=0)
    for k in range(3):
        state = other(same(state, float(k)), 1.0)
    return state


@program(alone=False)
def explicit_axes(d: Devices) -> Any:
    mesh = d.mesh(2, 4, explicit="xy")
    with jax.set_mesh(mesh):
        a = jax.device_put(integers(8, 8), P("x", "y"))
        b = jax.device_put(integers(8, 4, seed=1), P("y", None))

        @jax.jit
        def f(a: Any, b: Any) -> Any:
            p = jnp.matmul(a, b, out_sharding=P("x", None))
            q = jax.sharding.reshard(jnp.sin(a) * 0 + a.T.T, P(None, ("y", "x")))
            r = jnp.einsum("ij,kj->ik", a, a, out_sharding=P("x", "y"))
            s = jnp.zeros((8, 8), out_sharding=P("y", "x")) + jnp.arange(8.0)
            t = jax.nn.softmax(jax.sharding.reshard(a, P("x", None)), 1)
            return p, q, r, s, t, a.sum(0), a.reshape(8, 2, 4, out_sharding=P("x", None, None)), a[:, :4]

        return f(a, b)


@program(alone=False, tolerance=1e-4)
def explicit_training_step(d: Devices) -> Any:
    mesh = d.mesh(2, 4, explicit="xy")
    with jax.set_mesh(mesh):
        w1 = jax.device_put(normal(6, 8), P(None, "y"))
        w2 = jax.device_put(normal(8, 6, seed=1), P("y", None))
        x = jax.device_put(normal(8, 6, seed=2), P("x", None))

        @jax.jit
        def step(w: Any, x: Any) -> Any:
            def loss(w: Any) -> Any:
                h = jax.nn.gelu(x @ w[0])
                return jnp.mean((jnp.matmul(h, w[1], out_sharding=P("x", None)) - x) ** 2)

            value, g = jax.value_and_grad(loss)(w)
            return jax.tree.map(lambda w, g: w - 0.1 * g, w, g), value

        w = (w1, w2)
        for _ in range(3):
            w, value = step(w, x)
        return w, value


@program(alone=False)
def explicit_and_manual(d: Devices) -> Any:
    mesh = d.mesh(2, 4, explicit="xy")
    with jax.set_mesh(mesh):
        a = jax.device_put(integers(8, 8), P("x", "y"))
        body = jax.shard_map(lambda v: lax.psum(v, "y") + v, in_specs=P("x", "y"), out_specs=P("x", "y"))
        part = jax.shard_map(lambda v: v * 2 + lax.axis_index("x"), out_specs=P("x"), axis_names={"x"}, in_specs=P("x"))
        auto: Any = jax.sharding.auto_axes(lambda v: jnp.cumsum(v, 0) @ v.T, out_sharding=P("y", "x"))
        return jax.jit(body)(a), jax.jit(part)(a), jax.jit(lambda v: auto(v) + 1)(a)


@program()
def copies_between_meshes(d: Devices) -> Any:
    first, second, third = d.mesh(2, 4), d.mesh(4, 2, order=(7, 5, 3, 1, 6, 4, 2, 0)), d.mesh(3, order=(2, 6, 4))
    a = d.put(integers(12, 8), first, "x", "y")
    b = d.put(a + 1, second, "y", "x")
    c = d.put(b * 2, third, "x")
    one = d.put(c, first, None, "x") if d.one else jax.device_put(c, SingleDeviceSharding(jax.devices()[5]))
    return a, b, c, one, jax.jit(lambda v: v - v.mean(0, keepdims=True))(c), jax.jit(jnp.sort)(b)


@program()
def indexing_global_arrays(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    a = d.put(integers(8, 8), mesh, "y", "x")
    i = d.put(np.array([3, 1, 7, 0]), mesh, "x")
    return (
        a[2],
        a[:, 3],
        a[1:7:2],
        a[i],
        a[..., None, -1],
        a[a[:, 0] > 0],
        a.at[i].set(0),
        [r for r in a][5],
        -a @ a,
        a == a.T,
    )


@program(alone=False)
def unreduced_and_open(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    def f(a: Any, b: Any) -> Any:
        c = lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P("x", P.UNCONSTRAINED)))
        e = lax.with_sharding_constraint(c.T * 2, NamedSharding(mesh, P(P.UNCONSTRAINED, None)))
        return c, e, lax.with_sharding_constraint(e.sum(0), NamedSharding(mesh, P("y")))

    open_ = NamedSharding(mesh, P(P.UNCONSTRAINED, "x"))
    return jax.jit(f)(d.put(integers(8, 8), mesh, None, "y"), d.put(integers(8, 8), mesh, "y")), jax.jit(
        lambda a: lax.with_sharding_constraint(a.T, open_)
    )(d.put(integers(5, 6), mesh))


@program(alone=False)
def custom_partitioning(d: Devices) -> Any:
    from jax.experimental.custom_partitioning import custom_partitioning as custom

    mesh = d.mesh(2, 4)

    @partial(custom, static_argnums=(1,))
    def centered(x: Any, k: int) -> Any:
        return (x - x.mean(-1, keepdims=True)) * k

    def partition(k: int, mesh: Any, arguments: Any, result: Any) -> Any:
        spec = arguments[0].sharding.spec
        rows = NamedSharding(mesh, P(*spec[:-1], None) if len(spec) > 1 else spec)
        return mesh, lambda x: (x - x.mean(-1, keepdims=True)) * k, rows, (rows,)

    centered.def_partition(
        partition=partition,
        infer_sharding_from_operands=lambda k, mesh, arguments, result: arguments[0].sharding,
        sharding_rule="i j -> i j",
    )
    f = jax.jit(lambda x: centered(x * 2, 3) + 1)
    x = integers(8, 4) * 4
    return (
        f(d.put(x, mesh, "x", "y")),
        f(d.put(x, mesh, "y")),
        jax.jit(lambda x: centered(x, 2).T @ x)(d.put(x, mesh, "x")),
    )


@program()
def parts_of_the_devices(d: Devices) -> Any:
    """A program on three devices, one on a single far device, and one on all, called in turn."""
    three, all_ = d.mesh(3, order=(5, 1, 6)), d.mesh(8, order=tuple(range(8))[::-1])
    f = jax.jit(lambda a: (jnp.cumsum(a, 0), a.max()))
    a = integers(24, 2)
    far = a if d.one else jax.device_put(a, jax.devices()[6])
    return [f(d.put(a, three, "x")), f(far), f(d.put(a, all_, "x")), f(d.put(a, three, None)), f(a)]


@program(alone=False)
def arrays_from_callbacks_and_pieces(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    a = integers(8, 8)
    where = NamedSharding(mesh, P("y", "x"))
    made = jax.make_array_from_callback(a.shape, where, lambda index: a[index])
    pieces = [
        jax.device_put(a[index], device) for device, index in where.addressable_devices_indices_map(a.shape).items()
    ]
    joined = jax.make_array_from_single_device_arrays(a.shape, where, pieces)
    return jax.jit(jnp.add)(made, joined), jax.jit(lambda x, y: x @ y.T)(made, joined)


@program(alone=False)
def ahead_of_time(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    shape = jax.ShapeDtypeStruct((8, 6), np.float32, sharding=d.on(mesh, "y"))
    compiled = (
        jax.jit(lambda a, b: (a @ b.T, a.sum(0)), out_shardings=(d.on(mesh, "x", "y"), None))
        .lower(shape, shape)
        .compile()
    )
    a = d.put(integers(8, 6), mesh, "y")
    exported = jax.export.export(jax.jit(lambda a: jnp.cumsum(a, 0) * 2, in_shardings=d.on(mesh, "y")))(shape)
    return compiled(a, a + 1), jax.jit(exported.call)(a)
