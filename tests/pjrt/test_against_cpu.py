"""Functions of JAX on heron and on JAX's CPU: families over shapes and types, those at the edge first.

`python -m tests.pjrt.test_against_cpu` runs all there are; CI every tenth.
"""

from __future__ import annotations

import sys

from tests.pjrt.test_under_jax import HEAD
from tests.pjrt.under_jax import run

#: by default, one case of so many is run
_STEP = 10

CASES = """
import zlib
import jax.scipy as jsp

def normal(name, dims, kind, scale=2.0):
    r = np.random.RandomState(zlib.crc32(name.encode()))
    v = r.standard_normal(dims) * scale
    return jnp.asarray(v + 1j * r.standard_normal(dims) if kind.startswith("complex") else v).astype(kind)

def positive(name, dims, kind):
    a = np.asarray(normal(name, dims, kind))
    return jnp.asarray(a @ a.conj().swapaxes(-1, -2) + dims[-1] * np.eye(dims[-1])).astype(kind)

def adjoint(a):
    return jnp.conj(jnp.swapaxes(a, -1, -2))

def from_svd(a):
    u, s, v = jnp.linalg.svd(a, full_matrices=False)
    return s, (u * s[..., None, :].astype(u.dtype)) @ v

def from_eigh(a):
    w, v = jnp.linalg.eigh(a)
    return w, (v * w[..., None, :].astype(v.dtype)) @ adjoint(v)

SQUARE = {
    "cholesky": jnp.linalg.cholesky, "inverse": jnp.linalg.inv, "determinant": jnp.linalg.slogdet, "eigh": from_eigh,
    "solve": lambda a: jnp.linalg.solve(a, a[..., :1]), "power": lambda a: jnp.linalg.matrix_power(a / 10, 3),
    "triangle": lambda a: jsp.linalg.solve_triangular(a, a, trans=2, lower=True, unit_diagonal=True),
    "tangent": lambda a: jax.jvp(jnp.linalg.inv, (a,), (a,)),
}
ANY = {
    "svd": from_svd, "qr": jnp.linalg.qr, "full qr": lambda a: jnp.linalg.qr(a, mode="complete"), "lu": jsp.linalg.lu,
    "pivoted qr": lambda a: jsp.linalg.qr(a, pivoting=True)[2], "pseudo-inverse": jnp.linalg.pinv,
}
LOOPS = {
    "scan": lambda v: lax.scan(lambda c, r: (r, (c, r)), v[0], v, reverse=True),
    "unrolled": lambda v: lax.scan(lambda c, r: (c + r, c), v[0], v, unroll=2),
    "while": lambda v: lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1][::-1]), (0, v)),
    "cond": lambda v: lax.cond(v.shape[0] > jnp.sum(v == v), lambda v: v, lambda v: v[::-1], v),
    "switch": lambda v: jax.vmap(lambda i: lax.switch(i, [lambda: v, lambda: v[::-1], lambda: v + v]))(jnp.arange(-1, 4)),
    "map": lambda v: lax.map(lambda r: r[::-1], v, batch_size=2),
}
TRANSFORMS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")

cases = {}
for kind in ("float32", "complex64"):
    for dims in ((0, 0), (1, 1), (4, 4), (2, 3, 3), (0, 3, 3)):
        for name, f in SQUARE.items():
            cases[f"{name} {kind}{dims}"] = f, lambda n, d=dims, k=kind: positive(n, d, k)
    for dims in ((0, 3), (3, 0), (1, 4), (5, 3), (3, 5), (2, 4, 3)):
        for name, f in ANY.items():
            cases[f"{name} {kind}{dims}"] = f, lambda n, d=dims, k=kind: normal(n, d, k)
for length in (2, 5, 8, 31, 97):
    for name in TRANSFORMS:
        kind = "float32" if name in ("rfft", "ihfft") else "complex64"
        cases[f"{name} {length}"] = getattr(jnp.fft, name), lambda n, d=(3, length), k=kind: normal(n, d, k)
for kind in ("bool", "int8", "uint16", "int4", "bfloat16", "float16", "float8_e4m3fn", "complex64"):
    for name, f in LOOPS.items():
        if not (name in ("unrolled", "switch") and kind in ("bool", "int4", "float8_e4m3fn")):
            cases[f"{name} {kind}"] = f, lambda n, k=kind: normal(n, (4, 3), k)

failed = []
for name in list(cases)[::STEP]:
    f, given = cases[name]
    argument = given(name)
    try:
        agree(f, np.asarray(argument), rtol=1e-3, atol=1e-3)
    except Exception as e:
        failed.append(name)
        print(name, type(e).__name__, e)
print(len(list(cases)[::STEP]), "cases")
assert not failed, failed
"""


def _run(step: int) -> str:
    return run(HEAD + f"STEP = {step}\n" + CASES).stdout


def test_families_of_functions() -> None:
    assert "cases" in _run(_STEP)


if __name__ == "__main__":
    sys.stdout.write(_run(1))
