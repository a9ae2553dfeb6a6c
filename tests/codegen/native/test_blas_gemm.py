"""Products by BLAS: every type and order, however they are cut, with the same bits for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.compiling import compile
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.runtime.cpu import blas
from tests.backends.agree import assert_agrees, random_inputs

pytestmark = pytest.mark.skipif(bool(blas.why_not()), reason="needs SciPy's BLAS")

#: batch, rows, columns, summed: narrow ones and such as are cut into blocks, with a rest and without
SIZES = [
    (1, 1, 9, 7),
    (1, 2100, 1, 257),
    (1, 3, 2100, 255),
    (3, 40, 50, 0),
    (5, 30, 20, 11),
    (2, 200, 3, 900),
    (1, 130, 150, 70),
]


def product(t: str, sizes: tuple[int, int, int, int], left: bool, right: bool) -> Module:
    batch, m, n, k = sizes
    lhs, rhs = (k, m) if left else (m, k), (n, k) if right else (k, n)
    shapes = [f"{t}[{batch},{a},{b}]" for a, b in (lhs, rhs)]
    numbers = "lhs_batch_dims={0}, rhs_batch_dims={0}, "
    numbers += f"lhs_contracting_dims={{{1 if left else 2}}}, rhs_contracting_dims={{{2 if right else 1}}}"
    return heron.parse(
        f"HloModule m\n\nENTRY e {{\n  a = {shapes[0]} parameter(0)\n  b = {shapes[1]} parameter(1)\n"
        f"  ROOT c = {t}[{batch},{m},{n}] dot(a, b), {numbers}\n}}\n"
    )


@pytest.mark.parametrize("t", ["f32", "f64", "c64", "c128"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_order_and_size(sizes: tuple[int, int, int, int], t: str) -> None:
    for left, right in ((False, False), (True, False), (False, True), (True, True)):
        assert_agrees(product(t, sizes, left, right), "cpu")


@pytest.mark.parametrize("sizes", [(1, 1, 1100, 1100), (1, 1100, 2, 600), (1, 130, 150, 70), (40, 3, 70, 90)], ids=str)
@pytest.mark.parametrize("t", ["f32", "c64"])
def test_bits_do_not_depend_on_threads(sizes: tuple[int, int, int, int], t: str) -> None:
    module = product(t, sizes, False, False)
    inputs = random_inputs(module)
    results = [compile(module, options=Options(threads=threads)).run(inputs)[0] for threads in (1, 2, 5)]
    assert len({np.asarray(r).tobytes() for r in results}) == 1


@pytest.mark.parametrize("t", ["c64", "c128"])
@pytest.mark.parametrize("sizes", [*SIZES, (1, 6, 7, 5), (2, 64, 64, 40), (1, 1, 300, 30)], ids=str)
def test_infinite_sums_of_complex_products(sizes: tuple[int, int, int, int], t: str) -> None:
    """They are those of the products' parts, at every size; BLAS alone makes NaN of them."""
    infinities = complex(np.inf, 1), complex(2, -np.inf), complex(np.nan, 1), complex(0, np.inf)
    for left, right in ((False, False), (True, True)):
        module = product(t, sizes, left, right)
        x, y = (np.array(a) for a in random_inputs(module))
        for array, value in zip((x, x, y, y), infinities, strict=True):
            at = np.random.default_rng(array.size).integers(max(1, array.size), size=2)
            if array.size:
                array.reshape(-1)[at] = value
        a, b = (x.swapaxes(1, 2) if left else x), (y.swapaxes(1, 2) if right else y)
        wanted = np.empty((sizes[0], *sizes[1:3]), x.dtype)
        with np.errstate(all="ignore"):
            wanted.real = np.einsum("bik,bkj->bij", a.real, b.real) - np.einsum("bik,bkj->bij", a.imag, b.imag)
            wanted.imag = np.einsum("bik,bkj->bij", a.real, b.imag) + np.einsum("bik,bkj->bij", a.imag, b.real)
        for found in (heron.evaluate(module, x, y)[0], compile(module, "cpu").run([x, y])[0]):
            np.testing.assert_allclose(found.view(x.real.dtype), wanted.view(x.real.dtype), rtol=2e-3, atol=2e-3)
