"""Short rows that are joined to a loop over several of them, as on machines without masks."""

from __future__ import annotations

import numpy as np
import pytest

from heron.codegen.transforms import join_rows
from tests.codegen.transforms.kernels import apply, lower, run_cpu

KERNEL = """
func.func @k(%in: tensor<{rows}x{n}x{t}>, %scale: tensor<{n}x{t}>, %height: tensor<{rows}x{t}>, %out: tensor<{rows}x{n}x{t}>{alias}, %lo: index, %hi: index) -> tensor<{rows}x{n}x{t}> attributes {{xla_gpu.entry}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {n} : index
  %r = scf.for %i = %lo to %hi step %c1 iter_args(%a = %out) -> (tensor<{rows}x{n}x{t}>) {{
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%c = %a) -> (tensor<{rows}x{n}x{t}>) {{
      %x = tensor.extract %in[%i, %j] : tensor<{rows}x{n}x{t}>
      {body}
      %d = tensor.insert %w into %c[%i, %j] : tensor<{rows}x{n}x{t}>
      scf.yield %d : tensor<{rows}x{n}x{t}>
    }}
    scf.yield %s : tensor<{rows}x{n}x{t}>
  }}
  func.return %r : tensor<{rows}x{n}x{t}>
}}
"""
SCALE = "%u = tensor.extract %scale[%j] : tensor<{n}x{t}>"
HEIGHT = "%h = tensor.extract %height[%i] : tensor<{rows}x{t}>"
BACK = """%last = arith.constant {last} : index
      %back = arith.subi %last, %j : index
      %b = tensor.extract %in[%i, %back] : tensor<{rows}x{n}x{t}>"""
BODIES = {
    "column": (f"{SCALE}\n %w = arith.mulf %x, %u : {{t}}", lambda x, u, h: x * u),
    "function of the column": (f"{SCALE}\n %e = math.exp %u : {{t}}\n %w = arith.addf %x, %e : {{t}}", lambda x, u, h: x + np.exp(u)),
    "row": (f"{HEIGHT}\n %e = math.exp %x : {{t}}\n %w = arith.mulf %e, %h : {{t}}", lambda x, u, h: np.exp(x) * h[:, None]),
    "row, column and place": (
        f"{SCALE}\n{HEIGHT}\n{BACK}\n %e = math.exp %b : {{t}}\n %f = arith.mulf %e, %h : {{t}}\n %w = arith.addf %f, %u : {{t}}",
        lambda x, u, h: np.exp(x[:, ::-1]) * h[:, None] + u,
    ),
}  # fmt: skip


def kernel(body: str, rows: int, n: int, t: str = "f32", alias: str = "") -> str:
    facts = {"rows": rows, "n": n, "t": t, "last": n - 1}
    return KERNEL.format(body=BODIES[body][0].format(**facts), alias=alias, **facts)


def is_joined(text: str, bits: int = 256) -> bool:
    return "heron.interleave" in apply(text, "flatten-tensors,join-rows", vector_bits=bits)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("body", BODIES)
def test_values(body: str, t: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all rows, and of some in the middle, as a thread gets them; the others are not written."""
    monkeypatch.setattr(join_rows, "_pays", lambda *_: True)
    dtype, rng = {"f32": np.float32, "f64": np.float64}[t], np.random.default_rng(1)
    for n in (2, 3, 5, 7, 9, 13, 15):
        for rows, lo, hi in ((200, 0, 200), (200, 3, 176), (200, 7, 8), (137, 0, 137)):
            x, u, h = (rng.normal(size=size).astype(dtype) for size in ((rows, n), n, rows))
            out = np.full_like(x, 77)
            text = kernel(body, rows, n, t)
            assert is_joined(text)
            run_cpu(text, [x, u, h, out], lo, hi, vector_bits=256)
            wanted = np.full_like(x, 77)
            wanted[lo:hi] = BODIES[body][1](x, u, h)[lo:hi]
            np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)


def test_in_place() -> None:
    x, u, h = (np.random.default_rng(2).normal(size=s).astype(np.float32) for s in ((150, 5), 5, 150))
    wanted = x * u
    text = kernel("column", 150, 5, alias=" {xla_gpu.alias = 0 : i64}")
    assert is_joined(text)
    run_cpu(text, [x, u, h, x], 0, 150, vector_bits=256)
    np.testing.assert_allclose(x, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("body", "rows", "n", "bits", "why"),
    [
        ("column", 1000, 8, 256, "whole vectors"),
        ("column", 1000, 40, 256, "long rows"),
        ("column", 20, 5, 256, "fewer rows than are joined a few times"),
        ("column", 1000, 5, 0, "masks"),
    ],
)
def test_rows_that_stay(body: str, rows: int, n: int, bits: int, why: str) -> None:
    assert not is_joined(kernel(body, rows, n), bits), why


def test_places_in_arrays_that_are_overwritten_stay() -> None:
    """Another row's number may have been overwritten by the time its vector reads it."""
    assert not is_joined(kernel("row, column and place", 1000, 5, alias=" {xla_gpu.alias = 0 : i64}"))


@pytest.mark.parametrize(
    ("body", "n", "op", "joined", "why"),
    [
        ("column", 5, "", True, "a row is a vector of four and a number"),
        ("column", 2, "", False, "LLVM shuffles pairs"),
        ("row", 5, "math.sqrt", True, "looking up a number is less than half a vector"),
        ("row", 13, "math.sqrt", False, "and more than what is left over here"),
        ("row", 3, "math.exp", False, "LLVM writes the row out"),
        ("row", 7, "math.exp", True, "a row is three vectors or one"),
        ("row, column and place", 5, "math.absf", False, "two numbers to look up, and next to no work"),
    ],
)
def test_rows_are_joined_where_that_is_less_work(body: str, n: int, op: str, joined: bool, why: str) -> None:
    assert is_joined(kernel(body, 1000, n).replace("math.exp", op or "math.exp")) == joined, why


def test_the_column_s_function_is_called_for_the_tile() -> None:
    text = str(lower(kernel("function of the column", 1000, 5), vector_bits=256))
    assert text.count("call @heron.exp.f32") == 1
    tile, rows = text.split("step")[1:3]
    assert "call @heron.exp.f32" in text[: text.index(rows)] and "call" not in rows, tile
