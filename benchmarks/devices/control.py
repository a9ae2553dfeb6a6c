"""Sorts, scans, control flow, linear algebra and random numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from benchmarks.devices.case import Case, R, constrained, f32, mesh, program


@program
def sort_topk() -> Case:
    """Sort, argsort of two keys, top-k, argmax and median along sharded dimensions."""
    m = mesh(x=4, y=2)
    r = R(21)

    def f(a, i):
        return (
            jnp.sort(a, 0),
            jnp.argsort(i, 1),
            lax.top_k(a, 3),
            jnp.argmax(a, 0),
            jnp.argmin(a, 1),
            lax.sort((i, a), dimension=0, num_keys=2),
            jnp.median(a, 0),
            jnp.sort(a.reshape(-1)),
        )

    return Case(f, (f32(r, 2048, 256), r.integers(0, 4, (2048, 256)).astype(np.int32)), m, (P("x", "y"), P("x", "y")))


@program
def cumulative() -> Case:
    """Cumsum, cummax, cumprod and log-cumsum-exp along sharded and other dimensions; an associative scan of pairs."""
    m = mesh(x=8)
    r = R(22)

    def f(a):
        pairs = lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (jnp.tanh(a), a), axis=0)
        return jnp.cumsum(a, 0), lax.cummax(a, 0, reverse=True), jnp.cumsum(a, 1), lax.cumlogsumexp(a, 0), pairs

    return Case(f, (f32(r, 1024, 256),), m, (P("x"),))


@program
def while_sharded() -> Case:
    """Power iteration until it stands: a while loop whose carry and condition are sharded, and a fori loop."""
    m = mesh(x=4, y=2)
    r = R(23)

    def f(a, x):
        def cond(c):
            return (c[2] > 1e-4) & (c[3] < 40)

        def body(c):
            x, last, _, n = c
            y = a @ x
            top = jnp.sqrt(jnp.sum(y * y))
            return y / top, top, jnp.abs(top - last), n + 1

        x, top, _, _ = lax.while_loop(cond, body, (x, jnp.float32(0), jnp.float32(1), 0))
        return jnp.abs(x), top, lax.fori_loop(0, 5, lambda n, s: jnp.roll(s, 1) + s * 0.5, x * 0 + 1)

    a = f32(r, 512, 512)
    return Case(f, (a @ a.T / 512, f32(r, 512)), m, (P("x", "y"), P("y")))


@program
def cond_sharded() -> Case:
    """Cond and switch on data, branches that want different shardings, inside a scan."""
    m = mesh(x=4, y=2)
    r = R(24)

    def f(a, choices):
        def step(c, n):
            c = lax.switch(
                n,
                [lambda v: v @ a, lambda v: constrained(v, m, None, "x") * 2, lambda v: jnp.flip(v, 0), lambda v: v.T],
                c,
            )
            return c / jnp.max(jnp.abs(c)), jnp.sum(c, 0)

        c, sums = lax.scan(step, a, choices)
        return c, sums, lax.cond(jnp.sum(a) > 0, lambda: a.sum(0), lambda: a.sum(1))

    return Case(f, (f32(r, 512, 512), np.array([0, 1, 2, 3, 0, 1], np.int32)), m, (P("x", "y"), P()))


@program
def fft_linalg() -> Case:
    """FFT along whole and sharded dimensions; Cholesky, triangular solve, QR, eigenvalues of sharded batches."""
    m = mesh(x=8)
    r = R(25)

    def f(z, a, b):
        s = a @ a.swapaxes(-1, -2) + 32 * jnp.eye(32)
        c = jnp.linalg.cholesky(s)
        solved = jax.scipy.linalg.solve_triangular(c, b, lower=True)
        q, rr = jnp.linalg.qr(a)
        return (
            jnp.fft.fft(z, axis=1),
            jnp.fft.rfft(z.real, axis=0),
            jnp.abs(jnp.fft.ifft2(z)),
            c,
            solved,
            jnp.abs(rr),
            jnp.linalg.eigvalsh(s),
        )

    z = (f32(r, 512, 256) + 1j * f32(r, 512, 256)).astype(np.complex64)
    return Case(f, (z, f32(r, 64, 32, 32), f32(r, 64, 32, 16)), m, (P("x"), P("x"), P("x")))


@program
def random_sharded() -> Case:
    """Random numbers: normal, uniform, bits, permutation, categorical; sharded without communication."""
    m = mesh(x=4, y=2)

    def f(seed, logits):
        keys = jax.random.split(jax.random.key(seed), 5)
        return (
            constrained(jax.random.normal(keys[0], (2048, 512)), m, "x", "y"),
            constrained(jax.random.bits(keys[1], (1 << 20,)), m, ("x", "y")),
            constrained(jax.random.uniform(keys[2], (1024, 768), minval=-1), m, "y", None),
            jax.random.permutation(keys[3], 1 << 14),
            jax.random.categorical(keys[4], logits, axis=-1),
            constrained(jax.random.bernoulli(keys[0], 0.3, (1 << 16,)), m, "x"),
        )

    return Case(f, (np.uint32(7), f32(R(26), 1024, 256)), m, (P(), P("x", "y")))
