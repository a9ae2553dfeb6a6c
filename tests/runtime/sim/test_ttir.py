"""The text of block kernels is read as it was written."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from heron.runtime.sim.ttir import constant, dtype_of, read, type_of


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("128 : i32", np.int32(128)),
        ("-3 : i8", np.int8(-3)),
        ("true", np.True_),
        ("dense<false> : tensor<4xi1>", np.False_),
        ("dense<1.500000e+00> : tensor<4x2xf16>", np.float16(1.5)),
        ("0xff800000 : f32", np.float32(-np.inf)),
        ("dense<0xFF80> : tensor<4xbf16>", ml_dtypes.bfloat16(-np.inf)),
        ("-0.000000e+00 : f64", np.float64(-0.0)),
        ("dense<[0x7fc00000, 0x7fc00000]> : tensor<2xf32>", np.array([0x7FC00000], "u4").view("f4")[0]),
    ],
)
def test_constants(written: str, value: np.generic) -> None:
    kernel = read(f"tt.func public @k(%x: !tt.ptr<f32>) {{\n  %0 = arith.constant {written}\n}}\n")
    found = constant(kernel.body.ops[0])
    assert found.dtype == value.dtype and found.tobytes() == value.tobytes()


def test_many_nans_are_written_as_bytes() -> None:
    kernel = read(
        'tt.func public @k(%x: !tt.ptr<f32>) {\n  %0 = arith.constant dense<"0x0000C07F0000C0FF"> : tensor<2xf32>\n}\n'
    )
    assert constant(kernel.body.ops[0]).view("u4").tolist() == [0x7FC00000, 0xFFC00000]


def test_constants_of_several_elements() -> None:
    kernel = read(
        "tt.func public @k(%x: !tt.ptr<f32>) {\n  %0 = arith.constant dense<[[1, 2], [3, -4]]> : tensor<2x2xi32>\n}\n"
    )
    np.testing.assert_array_equal(constant(kernel.body.ops[0]), np.array([[1, 2], [3, -4]], np.int32), strict=True)


def test_types() -> None:
    assert type_of(" i32 -> tensor<64x32x!tt.ptr<bf16>>") == ("bf16", (64, 32))
    assert type_of("tensor<16x16xi1>, tensor<16x16xf32>") == ("f32", (16, 16))
    assert type_of("(tensor<16x8xf32>) -> f32") == ("f32", ())
    with pytest.raises(ValueError, match="no type"):
        dtype_of("i7")


def test_loops_and_combinations() -> None:
    kernel = read("""
      tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<bf16>) {
        %0 = arith.constant 0 : i32
        %1, %2 = scf.for %k = %0 to %3 step %4 iter_args(%a = %5, %b = %6) -> (tensor<16xf32>, f32) : i32 {
          %7 = "tt.reduce"(%a) <{axis = 0 : i32}> ({
          ^bb0(%l: f32, %r: f32):
            %8 = arith.addf %l, %r : f32
            tt.reduce.return %8 : f32
          }) : (tensor<16xf32>) -> f32
          scf.yield %a, %7 : tensor<16xf32>, f32
        }
        tt.return
      }
    """)
    loop = kernel.body.ops[1]
    assert kernel.types == ("f32", "bf16") and loop.results == ["%1", "%2"]
    assert loop.operands == ["%0", "%3", "%4", "%5", "%6"] and loop.body is not None
    assert loop.body.arguments == ["%k", "%a", "%b"]
    reduce = loop.body.ops[0]
    assert reduce.number("axis") == 0 and reduce.shape == () and reduce.body is not None
    assert reduce.body.arguments == ["%l", "%r"]
