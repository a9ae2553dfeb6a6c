"""Control flow, transformations, callbacks, and programs that call programs."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.devices.program import Devices, Family, integers, normal

PROGRAMS = Family()
program = PROGRAMS.program


@program()
def loops_that_turn_shardings(d: Devices) -> Any:
    """What a loop carries is constrained one way at its head and another at its end."""
    mesh = d.mesh(2, 4)

    def f(x: Any) -> Any:
        def body(k: Any, state: Any) -> Any:
            a, b = state
            a = d.keep(a + b.T[: a.shape[0]], mesh, "x", "y")
            return d.keep(b[: a.shape[0]] * 2 % 7, mesh, "y"), d.keep(jnp.roll(a, 1, 0), mesh, None, "x")

        return lax.fori_loop(0, 5, body, (x, x + 1))

    return jax.jit(f)(d.put(integers(8, 8), mesh, "y", "x"))


@program()
def conds_inside_scans(d: Devices) -> Any:
    mesh = d.mesh(4, 2)

    def f(x: Any, flags: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            flag, v = row
            carry = lax.cond(flag, lambda c: d.keep(c + v, mesh, "x"), lambda c: d.keep(c[::-1] - v, mesh, "y"), carry)
            kept = lax.switch(
                jnp.sum(carry > 0) % 3, [lambda c: c.sum(), lambda c: c.max(), lambda c: c[0] - c[-1]], carry
            )
            return carry, kept

        return lax.scan(step, x, (flags, jnp.arange(6.0) - 2), reverse=True)

    return jax.jit(f)(d.put(integers(16), mesh, ("x", "y")), d.put(np.arange(6) % 2 == 0, mesh))


@program()
def while_over_sharded_predicate(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    def f(x: Any) -> Any:
        def body(s: Any) -> Any:
            n, v = s
            return n + 1, d.keep(jnp.where(v % 2 == 0, v // 2, 3 * v + 1), mesh, "y", "x")

        return lax.while_loop(lambda s: jnp.any(s[1] > 1) & (s[0] < 60), body, (0, x))

    return jax.jit(f)(d.put(integers(5, 7, low=1, high=30, dtype=np.int32), mesh)), jax.jit(jax.vmap(f))(
        integers(3, 4, 4, low=1, high=9, dtype=np.int32)
    )


@program(tolerance=1e-4)
def scans_over_sharded_time(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    def f(h: Any, xs: Any) -> Any:
        xs = d.keep(xs, mesh, "y", "x")
        last, ys = lax.scan(lambda h, x: (jnp.tanh(h + x), h * x), h, xs, unroll=3)
        return last, d.keep(ys, mesh, ("x", "y"))

    h, xs = normal(6, 3), normal(11, 6, 3, seed=1)
    grads = jax.grad(lambda h, xs: jnp.sum(f(h, xs)[0] ** 2) + jnp.sum(f(h, xs)[1]), argnums=(0, 1))
    return jax.jit(f)(h, xs), jax.jit(grads)(h, xs)


@program(tolerance=1e-4)
def jvp_of_vmap_of_jit(d: Devices) -> Any:
    mesh = d.mesh(2, 2, 2)

    @jax.jit
    def inner(x: Any, w: Any) -> Any:
        return d.keep(jnp.sin(x) @ w, mesh, "z", "y")

    def f(x: Any, w: Any) -> Any:
        return jax.vmap(inner, in_axes=(0, None))(d.keep(x, mesh, "x"), w)

    x, w = normal(4, 6, 5), normal(5, 4, seed=1)
    tangent = jax.jit(lambda x, w: jax.jvp(f, (x, w), (w.sum() + x, w)))(x, w)
    linear, push = jax.linearize(partial(f, w=w), x)
    return tangent, linear, push(x * 2), jax.jit(jax.jacrev(lambda w: f(x, w)[0, 0]))(w)


@program()
def calls_with_two_shardings(d: Devices) -> Any:
    """One function called with arguments spread in two ways."""
    mesh = d.mesh(2, 4)

    @jax.jit
    def g(x: Any) -> Any:
        return jnp.cumsum(x, 0) - x.sum(1, keepdims=True)

    def f(x: Any) -> Any:
        return g(d.keep(x, mesh, "x")) + d.keep(g(d.keep(x, mesh, None, "y")), mesh, "y", "x"), g(g(x))

    return jax.jit(f)(integers(6, 8))


@program()
def callbacks_with_sharded_arrays(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    seen = []

    def f(x: Any) -> Any:
        x = d.keep(x, mesh, "x", "y")
        y = jax.pure_callback(lambda v: np.asarray(v) * 2 + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        jax.debug.callback(lambda v: seen.append(float(v)), x.sum())
        return d.keep(y, mesh, "y"), y.sum()

    out = jax.jit(f)(integers(6, 8))
    jax.effects_barrier()
    return out, np.array(sorted(set(seen)))


@program(tolerance=1e-4)
def recomputation_and_names(d: Devices) -> Any:
    from jax.ad_checkpoint import checkpoint_name

    mesh = d.mesh(2, 4)
    policy = jax.checkpoint_policies.save_only_these_names("kept")

    @partial(jax.checkpoint, policy=policy)
    def block(x: Any, w: Any) -> Any:
        h = checkpoint_name(d.keep(x @ w, mesh, "x", "y"), "kept")
        return d.keep(jax.nn.relu(h) @ w.T, mesh, "x")

    f = jax.value_and_grad(lambda w, x: jnp.sum(block(block(x, w), w) ** 2))
    return jax.jit(f)(d.put(normal(6, 8) * 0.4, mesh, None, "y"), d.put(normal(4, 6, seed=1), mesh, "x"))


@program()
def constants_and_closures(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    table = d.put(integers(8, 6), mesh, "y", "x")
    host = np.arange(48, dtype=np.float32).reshape(8, 6) % 5

    @jax.jit
    def f(i: Any) -> Any:
        grid = lax.broadcasted_iota(jnp.float32, (8, 6), 0) * 10 + jnp.arange(6)
        a = d.keep(grid + host, mesh, "x", "y")
        return a * table + i, d.keep(jnp.eye(8, 6) + host, mesh, ("x", "y")), jnp.linspace(0, 1, 9), table[i]

    return f(3)


@program()
def mutable_references(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    x = d.put(integers(8, 4), mesh, "y")

    @jax.jit
    def f(x: Any) -> Any:
        ref = jax.new_ref(x)

        def body(k: Any, _: Any) -> None:
            ref[k] = ref[k] * 2 + ref[k - 1]

        lax.fori_loop(1, 8, body, None)
        return ref[...]

    return f(x)
