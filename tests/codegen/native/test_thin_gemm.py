"""Products with few rows or columns: every order, sizes around registers, blocks and stretches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import heron
from heron.codegen.native import thin_gemm, thin_gemm_code
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.options import Options
from tests.backends.agree import random_inputs

#: batch, rows, columns, summed
SIZES = [
    (2, 1, 3, 300),
    (3, 1, 131, 33),
    (1, 257, 1, 600),
    (2, 2, 37, 64),
    (1, 3, 300, 513),
    (2, 129, 3, 47),
    (1, 20, 2, 1031),
    (5, 3, 3, 256),
    (2, 4, 131, 65),
    (1, 300, 5, 101),
    (1, 8, 200, 513),
    (3, 8, 8, 197),
    (1, 131, 7, 1100),
]
CLOSE = {"f32": 2e-6, "f64": 4e-15}


def product(t: str, sizes: tuple[int, int, int, int], left: bool, right: bool) -> Module:
    """``left``, ``right``: whether the operand is stored transposed."""
    batch, m, n, k = sizes
    lhs, rhs = (k, m) if left else (m, k), (n, k) if right else (k, n)
    shapes = [f"{t}[{batch},{a},{b}]" for a, b in (lhs, rhs)]
    numbers = "lhs_batch_dims={0}, rhs_batch_dims={0}, "
    numbers += f"lhs_contracting_dims={{{1 if left else 2}}}, rhs_contracting_dims={{{2 if right else 1}}}"
    return heron.parse(
        f"HloModule m\n\nENTRY e {{\n  a = {shapes[0]} parameter(0)\n  b = {shapes[1]} parameter(1)\n"
        f"  ROOT c = {t}[{batch},{m},{n}] dot(a, b), {numbers}\n}}\n"
    )


def assert_close(module: Module, t: str, k: int, expects: str = "heron_thin_") -> None:
    inputs = random_inputs(module)
    exe = compile(module)
    assert expects in exe.stage("llvm")
    (found,), (wanted,) = exe.run(inputs), evaluate(module, *inputs)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=CLOSE[t] * np.sqrt(k) * np.abs(wanted).max())


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_order_and_size(sizes: tuple[int, int, int, int], t: str) -> None:
    is_surely_thin = thin_gemm.host().width >= 512 or min(sizes[1:3]) <= 3
    for left, right in itertools.product((False, True), repeat=2):
        assert_close(product(t, sizes, left, right), t, sizes[3], "heron_thin_" if is_surely_thin else "heron_")


@pytest.mark.parametrize("width", [128, 256])
def test_narrower_registers(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their code differs in the lines that are done at once."""
    narrow = type("Host", (), {"width": width})()
    monkeypatch.setattr(thin_gemm, "host", lambda: narrow)
    for left, right in itertools.product((False, True), repeat=2):
        assert_close(product("f32", (2, 3, 67, 45), left, right), "f32", 45)
        assert_close(product("f64", (1, 35, 2, 21), left, right), "f64", 21)
    for m in (1, 4, 5):  # whole blocks of columns, and some or one left over
        for n in (96, 100, 107, 9):
            assert_close(product("f32", (1, m, n, 70), False, False), "f32", 70)
    for m in (6, 7, 8):
        assert_close(product("f32", (2, m, 61, 530), True, False), "f32", 530)
    for m in (4, 5, 6):
        assert_close(product("f64", (1, m, 37, 200), False, True), "f64", 200)


@pytest.mark.skipif(thin_gemm.host().width < 512, reason="needs 32 registers")
@pytest.mark.parametrize(
    ("sizes", "left", "right", "is_thin"),
    [
        ((1, 10, 100, 40), False, False, True), ((1, 11, 100, 40), False, False, False),
        ((1, 16, 100, 40), True, False, True), ((1, 100, 16, 40), True, False, True),
        ((2, 17, 50, 3000), True, False, True), ((1, 70, 24, 2048), True, False, True),
        ((1, 17, 100, 40), True, False, False), ((1, 100, 9, 40), False, False, False),
        ((1, 9, 100, 40), True, True, False),
        # a register along a line of few elements is mostly added up
        ((1, 4, 100, 64), False, True, True), ((1, 4, 100, 63), False, True, False),
        ((1, 500, 8, 192), False, False, True), ((1, 500, 8, 191), False, False, False),
    ],
    ids=str,
)  # fmt: skip
def test_more_vectors_where_nothing_is_rearranged(
    sizes: tuple[int, int, int, int], left: bool, right: bool, is_thin: bool
) -> None:
    assert_close(product("f32", sizes, left, right), "f32", sizes[3], "heron_thin_" if is_thin else "heron_gemm_")


def test_vectors_that_are_too_long_to_rearrange_go_to_blas() -> None:
    k = thin_gemm_code.PACKED + 1
    assert_close(product("f32", (1, 33, 2, k), False, False), "f32", k, expects="sgemm")
    assert_close(product("f32", (1, 33, 2, k), False, True), "f32", k)


@pytest.mark.parametrize("sizes", [(1, 1, 1100, 1100), (1, 1100, 2, 600), (40, 3, 170, 90)], ids=str)
def test_bits_do_not_depend_on_threads(sizes: tuple[int, int, int, int]) -> None:
    module = product("f32", sizes, False, False)
    inputs = random_inputs(module)
    results = [compile(module, options=Options(threads=threads)).run(inputs)[0] for threads in (1, 2, 5)]
    assert len({np.asarray(r).tobytes() for r in results}) == 1


def test_long_sums_round_little() -> None:
    module = product("f32", (1, 1, 18, 1 << 20), False, True)
    ones = [np.full(p.shape.dims, 0.7, np.float32) for p in module.entry.parameters]
    (found,) = compile(module).run(ones)
    np.testing.assert_allclose(found, (1 << 20) * float(np.float32(0.7)) ** 2, rtol=5e-6)
