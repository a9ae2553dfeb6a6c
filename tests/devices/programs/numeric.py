"""Products, convolutions, transforms, linear algebra and random numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.devices.program import Devices, Family, integers, normal

PROGRAMS = Family()
program = PROGRAMS.program


@program()
def einsums(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    a, b, c = integers(6, 4, 8), integers(8, 5, 4, seed=1), integers(6, 6, seed=2)

    def f(a: Any, b: Any, c: Any) -> Any:
        return (
            jnp.einsum("ijk,klj->il", a, b), jnp.einsum("ijk,klj->jil", a, b), jnp.einsum("ijk,im->mjk", a, c),
            jnp.einsum("ii->i", c), jnp.einsum("ij,ij->", c, c), jnp.einsum("ijk->kji", a), jnp.einsum("ijk,klj,im->ml", a, b, c),
            d.keep(jnp.einsum("ijk,ljk->il", a, a), mesh, "y", "x"), jnp.tensordot(a, b, ([1, 2], [2, 0])),
        )  # fmt: skip

    first = d.put(a, mesh, "x", "y"), d.put(b, mesh, "y", None, "x"), d.put(c, mesh, "x")
    second = d.put(a, mesh, None, "x", "y"), d.put(b, mesh, "y"), d.put(c, mesh, None, "x")
    return [jax.jit(f)(*arrays) for arrays in (first, second)]


@program()
def matmuls_uneven_and_permuted(d: Devices) -> Any:
    """Seven by five by nine over meshes with devices in other orders, and over part of the devices."""
    outputs = []
    for mesh in (d.mesh(2, 4, order=(3, 1, 0, 2, 7, 5, 4, 6)), d.mesh(3, 2, order=(7, 0, 5, 2, 4, 1)), d.mesh(5)):
        last = "y" if d.one or len(mesh.axis_names) > 1 else None

        def f(a: Any, b: Any, mesh: Any = mesh, last: Any = last) -> Any:
            a, b = d.keep(a, mesh, last, "x"), d.keep(b, mesh, "x", last)
            p = d.keep(a @ b, mesh, "x", last)
            return p, d.keep(p.T @ a, mesh, None, "x"), jnp.sum(p, 0), p.mean()

        outputs.append(jax.jit(f)(integers(7, 5), integers(5, 9, seed=1)))
    return outputs


@program(tolerance=1e-5)
def convolutions(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    x, k = integers(4, 14, 9, 4), integers(3, 3, 4, 8, seed=1)
    names = ("NHWC", "HWIO", "NHWC")

    def conv(x: Any, k: Any, **how: Any) -> Any:
        how = {"window_strides": (1, 1), "padding": "SAME", **how}
        return lax.conv_general_dilated(x, k, dimension_numbers=names, **how)

    def f(x: Any, k: Any) -> Any:
        x = d.keep(x, mesh, None, "y", "x")
        strided = conv(x, k, window_strides=(2, 1), padding=((2, 1), (0, 2)))
        grouped = conv(x, k[:, :, :1].repeat(1, 3), feature_group_count=4, rhs_dilation=(2, 1))
        lifted = conv(x, k, lhs_dilation=(2, 1), padding=((1, 2), (0, -1)))
        grads = jax.grad(lambda x, k: jnp.sum(conv(x, k, window_strides=(1, 2)) * 3), argnums=(0, 1))(x, k)
        return conv(x, k), strided, grouped, d.keep(lifted, mesh, "x", "y"), grads

    batch = jax.jit(lambda x, k: conv(d.keep(x, mesh, "y", "x"), d.keep(k, mesh, None, None, None, "x")))
    return jax.jit(f)(x, k), batch(x, k), jax.jit(lambda x, k: conv(x, k))(d.put(x, mesh, None, None, None, "y"), k)


@program(tolerance=1e-5)
def transforms(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    x = (normal(8, 12, 16) + 1j * normal(8, 12, 16, seed=1)).astype(np.complex64)

    def f(x: Any) -> Any:
        return (
            jnp.fft.fft(x), jnp.fft.fft2(x), jnp.fft.ifftn(x), jnp.fft.rfft(x.real, axis=0), jnp.fft.fftshift(x, axes=1),
            jnp.fft.irfft(x[:, :, :9]), jnp.fft.fft(x, n=10, axis=1), jnp.real(jnp.vdot(x, x)), jnp.abs(x).sum(0), x.conj().T,
        )  # fmt: skip

    return [jax.jit(f)(d.put(x, mesh, *spec)) for spec in (("x", "y"), (None, None, ("y", "x")), ("y", None, "x"))]


@program(tolerance=1e-4)
def linear_algebra_in_batches(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    a = normal(8, 5, 5)
    spd = a @ a.swapaxes(1, 2) + 5 * np.eye(5, dtype=np.float32)

    def f(a: Any, spd: Any) -> Any:
        spd = d.keep(spd, mesh, "x", "y")
        low = jnp.linalg.cholesky(spd)
        q, r = jnp.linalg.qr(a)
        return (
            low, jnp.abs(r), q @ r, jnp.linalg.solve(spd, a), jnp.linalg.inv(spd), jnp.linalg.det(spd), jnp.linalg.eigvalsh(spd),
            jax.scipy.linalg.solve_triangular(low, a, lower=True), jnp.linalg.svd(a, compute_uv=False), jnp.linalg.norm(a, axis=(1, 2)),
            jnp.trace(a, axis1=1, axis2=2), jnp.linalg.matrix_power(spd / 20, 3), jnp.tril(a), jnp.kron(a[0], a[1])[:7],
        )  # fmt: skip

    return jax.jit(f)(d.put(a, mesh, "y"), d.put(spd, mesh, ("x", "y")))


@program(tolerance=1e-9, wide=True)
def double_and_complex(d: Devices) -> Any:
    mesh = d.mesh(2, 2, 2)
    a = normal(6, 8, dtype=np.float64) + 1j * normal(6, 8, seed=1)

    def f(a: Any) -> Any:
        a = d.keep(a, mesh, "y", ("z", "x"))
        gram = a @ a.conj().T
        return (
            gram, jnp.linalg.eigvalsh(gram), jnp.exp(1j * a.real), jnp.cumsum(a, 1), jnp.sort(a.imag, 1), a.sum(), jnp.prod(a, 0),
            jnp.linalg.solve(gram + jnp.eye(6), a), jnp.arange(10) ** 20, jnp.fft.ifft(a, axis=0),
        )  # fmt: skip

    return jax.jit(f)(a)


@program()
def random_numbers(d: Devices) -> Any:
    """The same numbers however they are spread."""
    mesh = d.mesh(2, 4)

    def f(key: Any) -> Any:
        a, b, c, e = jax.random.split(key, 4)
        return (
            d.keep(jax.random.normal(a, (9, 8)), mesh, "x", "y"), d.keep(jax.random.uniform(b, (16,)), mesh, ("y", "x")),
            d.keep(jax.random.bits(c, (5, 7), "uint8"), mesh, "y"), jax.random.permutation(e, 24), jax.random.randint(a, (8,), 0, 99),
            d.keep(jax.random.categorical(b, jnp.zeros((8, 5))), mesh, "x"), jax.random.choice(c, jnp.arange(30), (6,), replace=False),
            jax.random.truncated_normal(e, -1, 1, (8, 3)), d.keep(jax.random.bernoulli(c, 0.3, (12,)), mesh, "y"),
        )  # fmt: skip

    out = [jax.jit(f)(jax.random.key(3)), jax.jit(f)(jax.random.key(3, impl="rbg"))]
    keys = jax.random.split(jax.random.key(1), 8)
    spread = keys if d.one else jax.device_put(keys, d.on(mesh, ("x", "y")))
    return (
        out,
        jax.jit(jax.vmap(lambda k: jax.random.normal(k, (3,))))(spread),
        jax.jit(jax.random.gamma)(spread[2], 2.5),
    )


@program(tolerance=1e-4)
def norms_and_softmaxes(d: Devices) -> Any:
    mesh = d.mesh(4, 2)

    def f(x: Any) -> Any:
        x = d.keep(x, mesh, "y", "x")
        h = (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5)
        return (
            h, jax.nn.softmax(x, 1), jax.nn.logsumexp(x, 0), jnp.std(x), jnp.corrcoef(x), jax.nn.gelu(x), jnp.linalg.norm(x, axis=1),
            jax.hessian(lambda v: jnp.sum(jnp.sin(v) * v[::-1]))(x[0]), jax.jacfwd(lambda v: v @ v.T)(x[:3]),
        )  # fmt: skip

    return jax.jit(f)(normal(7, 9))


@program(tolerance=2e-2)
def half_types(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    def f(x: Any, y: Any) -> Any:
        x, y = d.keep(x, mesh, "x", "y"), d.keep(y, mesh, "y", "x")
        return (
            x @ y, jnp.sum(x, 0), jnp.cumsum(x, 1), jax.nn.softmax(y, 0), lax.dot(x, y, preferred_element_type=jnp.float32),
            x.max(1), jnp.mean(y), jnp.sort(y, 0), x.astype(jnp.float8_e4m3fn).astype(jnp.float32),
        )  # fmt: skip

    return [jax.jit(f)(integers(6, 8, dtype=t), integers(8, 6, dtype=t)) for t in (jnp.bfloat16, np.float16)]


@program()
def four_bit_and_small(d: Devices) -> Any:
    mesh = d.mesh(2, 4)
    x = integers(8, 12).astype(jnp.int4)

    def f(x: Any) -> Any:
        x = d.keep(x, mesh, "x", "y")
        y = d.keep(x.astype(jnp.int8) * 5, mesh, "y")
        return x, y.astype(jnp.uint4), x[::-1, 1:], jnp.sum(y, 1), d.keep(x, mesh, None, ("y", "x"))

    return [o.astype(jnp.int8) for o in jax.jit(f)(x)]


@program()
def empty_and_single_dimensions(d: Devices) -> Any:
    mesh = d.mesh(2, 4)

    def f(x: Any, y: Any, s: Any) -> Any:
        x, y = d.keep(x, mesh, "x", "y"), d.keep(y, mesh, "y", "x")
        return (
            x.sum(0), jnp.concatenate([y, y[:, :0]], 1), y @ x.T.reshape(3, 0), jnp.broadcast_to(y, (5, 3)) * s, y.max(),
            d.keep(jnp.broadcast_to(s, (3,)), mesh, "y"), x.reshape(3, 0), jnp.argmax(y), jnp.cumsum(y, 1),
        )  # fmt: skip

    return jax.jit(f)(np.zeros((0, 3), np.float32), integers(1, 3), np.float32(2))
