"""Index expressions as arithmetic: right for every point, cheap where ranges allow."""

from __future__ import annotations

import numpy as np
import pytest

from heron.analysis.indexing import parse_map
from tests.codegen.transforms.kernels import apply, lower, run_cpu

KERNEL = """
func.func @k(%o: tensor<SIZExi64>, %lo: index, %hi: index) -> tensor<SIZExi64> attributes {xla_gpu.entry} {
  %r = xla_gpu.loop ()[%s, %t] -> (%x) in "()[s0, s1] -> (SHIFT), domain: S, T"
      iter_args(%acc = %o) -> (tensor<SIZExi64>) {
    %v = xla_gpu.apply_indexing "(d0, d1) -> (EXPR), domain: D, E"(%s, %t)
    %i = arith.index_cast %v : index to i64
    %z = tensor.insert %i into %acc[%x] : tensor<SIZExi64>
    xla_gpu.yield %z : tensor<SIZExi64>
  }
  func.return %r : tensor<SIZExi64>
}"""


@pytest.mark.parametrize(
    "expr",
    [
        "d0 * 3 - d1",
        "d0 floordiv 4 + d1 mod 8",
        "(d0 * 5 + d1) floordiv 7",
        "(d0 * 5 + d1) mod 7",
        "(d0 * 5 - d1 * 3) floordiv 7",
        "(d0 * 5 - d1 * 3) mod 7",
        "(d0 - d1) floordiv 8",
        "(d0 - d1) mod 8",
        "-d0 - d1 * 2 - 9",
        "((d0 + d1) floordiv 3) mod 5 - (d0 mod 3) * 100",
    ],
)
@pytest.mark.parametrize("low", [0, -20])
def test_values(expr: str, low: int) -> None:
    ranges = ((low, low + 22), (0, 12))
    size = 23 * 13
    text = KERNEL.replace("SIZE", str(size)).replace("EXPR", expr).replace("SHIFT", f"(s0 - {low}) * 13 + s1")
    if low < 0:
        text = text.replace(f"s0 - {low}", f"s0 + {-low}")
    for names, (a, b) in (("SD", ranges[0]), ("TE", ranges[1])):
        for name, variable in zip(names, ("s0", "d0") if names == "SD" else ("s1", "d1"), strict=True):
            text = text.replace(f"{name},", f"{variable} in [{a}, {b}],").replace(
                f'{name}"', f'{variable} in [{a}, {b}]"'
            )
    out = np.zeros(size, np.int64)
    run_cpu(text, [out])
    x, y = np.meshgrid(np.arange(low, low + 23), np.arange(13), indexing="ij")
    m = parse_map(f"(d0, d1) -> ({expr}), domain: d0 in [-99, 99], d1 in [0, 12]")
    np.testing.assert_array_equal(out.reshape(23, 13), m.evaluate([x, y])[0])


def applied(expr: str, ranges: str) -> str:
    return apply(
        f"""func.func @k(%a: index, %b: index) -> index {{
  %v = xla_gpu.apply_indexing "(d0, d1) -> ({expr}), domain: {ranges}"(%a, %b)
  func.return %v : index
}}""",
        "simplify-affine",
    )


def test_powers_of_two() -> None:
    text = applied("d0 floordiv 8 + d1 mod 16", "d0 in [0, 63], d1 in [-5, 63]")
    assert "arith.shrui" in text and "arith.andi" in text
    assert "arith.shrsi" in applied("d0 floordiv 8 + d1", "d0 in [-63, 63], d1 in [0, 3]")


def test_small_divisions_are_narrow() -> None:
    assert "arith.divui" in applied("d0 floordiv 7 + d1", "d0 in [0, 63], d1 in [0, 3]")
    assert ": i32" in applied("d0 floordiv 7 + d1", "d0 in [0, 63], d1 in [0, 3]")
    assert "i32" not in applied("d0 floordiv 7 + d1", "d0 in [0, 6300000000], d1 in [0, 3]")


def test_shared_subexpressions_and_unused_ops() -> None:
    text = """func.func @k(%a: index) -> (index, index) {
  %u = xla_gpu.apply_indexing "(d0) -> (d0 * 7), domain: d0 in [0, 9]"(%a)
  %unused = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 3), domain: d0 in [0, 63]"(%u)
  %v:2 = xla_gpu.apply_indexing "(d0) -> (d0 * 5 + 1, d0 * 5 + 2), domain: d0 in [0, 9]"(%a)
  func.return %v#0, %v#1 : index, index
}"""
    assert apply(text, "simplify-affine").count("arith.muli") == 1


def test_relinearised_index_needs_no_arithmetic() -> None:
    text = """func.func @k(%a: tensor<8x12xf32>, %o: tensor<96xf32>, %lo: index, %hi: index) -> tensor<96xf32>
    attributes {xla_gpu.entry} {
  %p:2 = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 12, d0 mod 12), domain: d0 in [0, 95]"(%lo)
  %v = tensor.extract %a[%p#0, %p#1] : tensor<8x12xf32>
  %z = tensor.insert %v into %o[%lo] : tensor<96xf32>
  func.return %z : tensor<96xf32>
}"""
    lowered = str(lower(text))
    assert "divui" not in lowered and "muli" not in lowered
    a, out = np.arange(96, dtype=np.float32), np.zeros(96, np.float32)
    run_cpu(text, [a, out], 50)
    assert out[50] == 50 and out.sum() == 50
