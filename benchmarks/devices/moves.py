"""Programs that move elements between devices."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from benchmarks.devices.case import Case, R, constrained, f32, mesh, program


@program
def reshard_all() -> Case:
    """A value from each sharding to each other: permutes, all-to-alls, gathers, slices, axes swapped and split."""
    m = mesh(x=2, y=4)
    r = R(13)
    ways = [
        P("x", "y"),
        P("y", "x"),
        P(("x", "y"), None),
        P(("y", "x"), None),
        P(None, ("x", "y")),
        P("x", None),
        P(None, "x"),
        P("y", None),
        P(),
    ]

    def f(a):
        out = []
        for n, w in enumerate(ways):
            a = constrained(a + 1, m, *w)
            out.append(jnp.sum(a * (n + 1), axis=n % 2))
        return out, a

    return Case(f, (f32(r, 2048, 1024),), m, (P("x", "y"),))


@program
def reshape_split_merge() -> Case:
    """Reshapes that split and merge sharded dimensions, with transposes between; some need no communication."""
    m = mesh(x=2, y=4)
    r = R(14)

    def f(a, b):
        u = a.reshape(4, 256, 512)  # x stays on the outer part
        v = u.transpose(1, 0, 2).reshape(1024, 512)  # x is now inner
        w = b.reshape(2, 128, 384).transpose(2, 0, 1).reshape(384, 256)  # (x, y) split, then merged again
        z = b.reshape(98304)
        return (
            constrained(u, m, "x", None, "y"),
            v,
            w,
            z,
            b.reshape(128, 768),
            jnp.broadcast_to(a[:, None, :], (1024, 3, 512)).reshape(3072, 512),
        )

    return Case(f, (f32(r, 1024, 512), f32(r, 256, 384)), m, (P("x", "y"), P(("x", "y"), None)))


@program
def uneven() -> Case:
    """Sizes no mesh axis divides: constraints on values, reductions, products, concatenation over the padding."""
    m = mesh(x=4, y=2)
    r = R(15)

    def f(a, b):
        a, b = constrained(a, m, "x", "y"), constrained(b, m, "y", "x")
        c = constrained(a @ b, m, "x", "y")
        return (
            jnp.max(a, 0),
            jnp.min(constrained(a, m, "x", None), 0),
            jnp.prod(1 + a / 999, 0),
            c,
            jnp.argmax(a, 0),
            constrained(jnp.concatenate([a, a[:500]], 0), m, "x", None),
            constrained(a[::-1], m, "x", None),
            constrained(a[1:1000:2], m, "x", None),
            jnp.cumsum(a, 0),
        )

    return Case(f, (f32(r, 1003, 701), f32(r, 701, 509)), m, (P(), P()))


@program
def pad_slice_concat() -> Case:
    """Pads (inside and outside), strided slices, reversals, rolls and concatenations along sharded dimensions."""
    m = mesh(x=8)
    r = R(16)

    def f(a, b):
        p = lax.pad(a, jnp.float32(0.5), ((200, 600, 0), (0, 0, 0)))
        q = lax.pad(a, jnp.float32(-1), ((0, 0, 1), (1, -1, 0)))
        return (
            constrained(p, m, "x", None),
            constrained(q, m, "x", None),
            constrained(a[300:19004], m, "x", None),
            constrained(a[::2], m, "x", None),
            a[::-1],
            jnp.roll(a, 300, 0),
            constrained(jnp.concatenate([a, b], 0), m, "x", None),
            a[1:] - a[:-1],
        )

    return Case(f, (f32(r, 24000, 64), f32(r, 8000, 64)), m, (P("x"), P("x")))


@program
def conv_spatial() -> Case:
    """Convolutions with height sharded over 4 and batch over 2: windows reach over the edges."""
    m = mesh(batch=2, h=4)
    r = R(17)

    def f(x, w1, w2, w3):
        conv = functools.partial(lax.conv_general_dilated, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        a = conv(x, w1, (1, 1), "SAME")
        b = conv(jax.nn.relu(a), w2, (2, 2), "SAME")
        c = conv(x, w3, (1, 1), "VALID", rhs_dilation=(2, 1))
        d = lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        e = lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")
        return b, c, d, e

    spec = P("batch", "h")
    return Case(
        f,
        (
            f32(r, 2, 128, 64, 16),
            f32(r, 3, 3, 16, 32, scale=0.1),
            f32(r, 5, 3, 32, 32, scale=0.1),
            f32(r, 3, 3, 16, 16, scale=0.1),
        ),
        m,
        (spec, P(), P(), P()),
    )


@program
def gather_scatter() -> Case:
    """Gathers and scatters with operand, indices or windows sharded; set, add, min, multiply; out of bounds."""
    m = mesh(x=4, y=2)
    r = R(19)

    def f(a, i, u):
        rows = a[i]  # operand's rows sharded
        columns = a[:, i % 512]
        both = a[i, i % 512]
        windows = jax.vmap(lambda k: lax.dynamic_slice(a, (k, 0), (3, 512)))(i)
        return (
            rows,
            columns,
            both,
            windows,
            a.at[i].add(u),
            a.at[i].min(u),
            jnp.zeros((4096, 512)).at[i + 2304].add(u, mode="drop"),
            a.at[jnp.arange(1024), i % 512].multiply(2.0),
            constrained(a, m, None, "y").at[i].set(0.0),
        )

    return Case(
        f,
        (f32(r, 4096, 512), r.integers(0, 4096, 1024).astype(np.int32), f32(r, 1024, 512)),
        m,
        (P("x", "y"), P("x"), P("x", "y")),
    )
