"""Tensors to pointers: whole CPU kernels against NumPy, and the IR of what cannot be run here."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from heron.errors import HeronError
from tests.codegen.transforms.kernels import lower, run_cpu

RNG = np.random.default_rng(7)

ELEMENTWISE = """
func.func @k(%a: tensor<16x24xf32>, %b: tensor<24xi1>, %o: tensor<16x24xf32>, %lo: index, %hi: index)
    -> tensor<16x24xf32> attributes {xla_gpu.entry} {
  %c1 = arith.constant 1 : index
  %table = arith.constant dense<[1, -2, 3, 4, -5, 6, 7, -8, -7, 6, -5, 4, 3, 2, -1, 0]> : tensor<16xi4>
  %two = arith.constant dense<2.0> : tensor<16x3xf32>
  %r = scf.for %i = %lo to %hi step %c1 iter_args(%start = %o) -> (tensor<16x24xf32>) {
    %x = xla_gpu.loop (%i)[%s] -> (%r, %q) in
        "(d0)[s0] -> (d0, s0 mod 24), domain: d0 in [0, 15], s0 in [0, 31], s0 + d0 in [0, 30]"
        iter_args(%acc = %start) -> (tensor<16x24xf32>) {
      %p:2 = xla_gpu.apply_indexing "(d0)[s0] -> ((d0 * 24 + s0) floordiv 24, (d0 * 24 + s0) mod 24),
          domain: d0 in [0, 15], s0 in [0, 23]"(%r)[%q]
      %v = tensor.extract %a[%p#0, %p#1] : tensor<16x24xf32>
      %n = tensor.extract %table[%i] : tensor<16xi4>
      %f = arith.sitofp %n : i4 to f32
      %t = tensor.extract %two[%i, %c1] : tensor<16x3xf32>
      %w = xla_gpu.pure_call @f(%v, %a, %r, %q) : (f32, tensor<16x24xf32>, index, index) -> f32
      %w1 = arith.addf %w, %f : f32
      %w2 = arith.addf %w1, %t : f32
      %c = tensor.extract %b[%q] : tensor<24xi1>
      %y = arith.select %c, %w2, %w : f32
      %z = tensor.insert %y into %acc[%r, %q] : tensor<16x24xf32>
      xla_gpu.yield %z : tensor<16x24xf32>
    }
    scf.yield %x : tensor<16x24xf32>
  }
  func.return %r : tensor<16x24xf32>
}
func.func private @f(%x: f32, %a: tensor<16x24xf32>, %i: index, %j: index) -> f32 {
  %v = tensor.extract %a[%i, %j] : tensor<16x24xf32>
  %m = arith.mulf %v, %x : f32
  func.return %m : f32
}
""".replace("\n          domain", " domain")


@pytest.mark.parametrize("inline_ops", [64, 0])
def test_elementwise(inline_ops: int) -> None:
    a = RNG.normal(size=(16, 24)).astype(np.float32)
    b = RNG.integers(0, 2, 24).astype(bool)
    out = np.full((16, 24), -9, np.float32)
    run_cpu(ELEMENTWISE, [a, b, out], 0, 15, inline_ops=inline_ops)
    table = np.array([1, -2, 3, 4, -5, 6, 7, -8, -7, 6, -5, 4, 3, 2, -1, 0])[:, None]
    want = np.where(b, a * a + table + 2, a * a)
    rows, columns = np.indices((16, 24))
    skipped = (rows + columns > 30) | (rows == 15)
    want = np.where(skipped, -9, want)
    np.testing.assert_allclose(out, want, atol=1e-5)


def test_every_access_has_one_simplified_index() -> None:
    text = str(lower(ELEMENTWISE))
    assert text.count("arith.muli") == 1  # %i * 24, for both tensors and both reads
    assert "divui" not in text
    assert "apply_indexing" not in text and "tensor" not in text.replace("tensor<16xi8>", "")


TRANSPOSE = """
func.func @k(%a: tensor<5x7xTYPE>, %o: tensor<7x5xTYPE>, %lo: index, %hi: index) -> tensor<7x5xTYPE>
    attributes {xla_gpu.entry} {
  %r = xla_gpu.loop ()[%s, %t] -> (%x, %y) in "()[s0, s1] -> (s0, s1), domain: s0 in [0, 6], s1 in [0, 4]"
      iter_args(%acc = %o) -> (tensor<7x5xTYPE>) {
    %v = tensor.extract %a[%y, %x] : tensor<5x7xTYPE>
    %z = tensor.insert %v into %acc[%x, %y] : tensor<7x5xTYPE>
    xla_gpu.yield %z : tensor<7x5xTYPE>
  }
  func.return %r : tensor<7x5xTYPE>
}
"""


@pytest.mark.parametrize(
    ("type_", "dtype"),
    [
        ("i1", np.bool_),
        ("i4", ml_dtypes.int4),
        ("i4", ml_dtypes.uint4),
        ("i16", np.int16),
        ("i64", np.int64),
        ("bf16", ml_dtypes.bfloat16),
        ("f64", np.float64),
        ("complex<f32>", np.complex64),
        ("complex<f64>", np.complex128),
    ],
)
def test_element_types(type_: str, dtype: type) -> None:
    a = RNG.integers(-8, 8, (5, 7)).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        a = a + 1j * RNG.normal(size=a.shape).astype(a.real.dtype)
    out = np.zeros((7, 5), dtype)
    run_cpu(TRANSPOSE.replace("TYPE", type_), [a, out])
    assert out.tobytes() == a.T.tobytes()


def test_layout_encoding() -> None:
    a = RNG.normal(size=(5, 7)).astype(np.float32)
    out = np.zeros((7, 5), np.float32)
    text = TRANSPOSE.replace("tensor<5x7xTYPE>", "tensor<5x7xf32, [0, 1]>").replace("TYPE", "f32")
    run_cpu(text, [np.asfortranarray(a), out])
    np.testing.assert_array_equal(out, a.T)


def test_row_sum_in_registers() -> None:
    text = """
func.func @k(%a: tensor<6x9xf32>, %o: tensor<6xf32>, %lo: index, %hi: index) -> tensor<6xf32>
    attributes {xla_gpu.entry} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %lo to %hi step %c1 iter_args(%acc = %o) -> (tensor<6xf32>) {
    %sum = xla_gpu.loop (%i)[%s] -> (%x, %y) in "(d0)[s0] -> (d0, s0), domain: d0 in [0, 5], s0 in [0, 8]"
        iter_args(%t = %zero) -> (f32) {
      %v = tensor.extract %a[%x, %y] : tensor<6x9xf32>
      %n = arith.addf %t, %v : f32
      xla_gpu.yield %n : f32
    }
    %z = tensor.insert %sum into %acc[%i] : tensor<6xf32>
    scf.yield %z : tensor<6xf32>
  }
  func.return %r : tensor<6xf32>
}
"""
    a = RNG.normal(size=(6, 9)).astype(np.float32)
    out = np.zeros(6, np.float32)
    run_cpu(text, [a, out], 0, 6)
    np.testing.assert_allclose(out, a.sum(1), rtol=1e-5)


CONTROL = """
func.func @k(%a: tensor<8xi32>, %o: tensor<8xi32>, %lo: index, %hi: index) -> tensor<8xi32>
    attributes {xla_gpu.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %scratch = tensor.empty() : tensor<8xi32>
  %r:3 = scf.while (%i = %lo, %acc = %o, %tmp = %scratch) : (index, tensor<8xi32>, tensor<8xi32>)
      -> (tensor<8xi32>, index, tensor<8xi32>) {
    %more = arith.cmpi slt, %i, %hi : index
    scf.condition(%more) %acc, %i, %tmp : tensor<8xi32>, index, tensor<8xi32>
  } do {
  ^bb0(%acc: tensor<8xi32>, %i: index, %tmp: tensor<8xi32>):
    %v = tensor.extract %a[%i] : tensor<8xi32>
    %t1 = tensor.insert %v into %tmp[%i] : tensor<8xi32>
    %negative = arith.cmpi slt, %v, %zero : i32
    %out, %count = scf.if %negative -> (tensor<8xi32>, index) {
      scf.yield %acc, %c1 : tensor<8xi32>, index
    } else {
      %w = tensor.extract %t1[%i] : tensor<8xi32>
      %n = tensor.insert %w into %acc[%i] : tensor<8xi32>
      scf.yield %n, %c1 : tensor<8xi32>, index
    }
    %next = arith.addi %i, %count : index
    scf.yield %next, %out, %t1 : index, tensor<8xi32>, tensor<8xi32>
  }
  func.return %r#0 : tensor<8xi32>
}
"""


def test_control_flow_and_stack_tensor() -> None:
    a = np.array([3, -1, 4, -1, 5, -9, 2, 6], np.int32)
    out = np.zeros(8, np.int32)
    run_cpu(CONTROL, [a, out], 0, 7)
    np.testing.assert_array_equal(out, [3, 0, 4, 0, 5, 0, 2, 0])


def test_argument_attributes() -> None:
    text = str(lower(TRANSPOSE.replace("TYPE", "f32")))
    inputs = "{llvm.noalias, llvm.align = 16 : i64, llvm.dereferenceable = 140 : i64, llvm.readonly}"
    assert f"%a: !llvm.ptr {inputs}" in text
    assert "%o: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64, llvm.dereferenceable = 140 : i64}" in text


def test_alias_goes_through_the_output() -> None:
    text = """
func.func @k(%a: tensor<8xf32>, %o: tensor<8xf32> {xla_gpu.alias = 0 : i64}, %lo: index, %hi: index)
    -> tensor<8xf32> attributes {xla_gpu.entry} {
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %lo to %hi step %c1 iter_args(%acc = %o) -> (tensor<8xf32>) {
    %v = tensor.extract %a[%i] : tensor<8xf32>
    %n = arith.addf %v, %v : f32
    %z = tensor.insert %n into %acc[%i] : tensor<8xf32>
    scf.yield %z : tensor<8xf32>
  }
  func.return %r : tensor<8xf32>
}
"""
    a = np.arange(8, dtype=np.float32)
    run_cpu(text, [a, a], 2, 8)
    np.testing.assert_array_equal(a, [0, 1, 4, 6, 8, 10, 12, 14])
    lowered = str(lower(text))
    assert "getelementptr inbounds %a" not in lowered
    assert "%a: !llvm.ptr {llvm.align" in lowered and "%o: !llvm.ptr {xla_gpu.alias" in lowered


def test_constants_are_shared_and_splats_scalar() -> None:
    text = """
func.func @k(%o: tensor<4xf32>, %lo: index, %hi: index) -> tensor<4xf32> attributes {xla_gpu.entry} {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %d = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %s = arith.constant dense<5.0> : tensor<4xf32>
  %x = tensor.extract %c[%lo] : tensor<4xf32>
  %y = tensor.extract %d[%hi] : tensor<4xf32>
  %z = tensor.extract %s[%hi] : tensor<4xf32>
  %xy = arith.addf %x, %y : f32
  %xyz = arith.addf %xy, %z : f32
  %r = tensor.insert %xyz into %o[%lo] : tensor<4xf32>
  func.return %r : tensor<4xf32>
}
"""
    out = np.zeros(4, np.float32)
    run_cpu(text, [out], 1, 3)
    np.testing.assert_array_equal(out, [0, 11, 0, 0])
    assert str(lower(text)).count("llvm.mlir.global") == 1


def test_refusals() -> None:
    two = """
func.func @k(%a: tensor<8xf32>, %o: tensor<8xf32>, %c: i1) -> tensor<8xf32> attributes {xla_gpu.entry} {
  %r = scf.if %c -> (tensor<8xf32>) { scf.yield %a : tensor<8xf32> } else { scf.yield %o : tensor<8xf32> }
  func.return %r : tensor<8xf32>
}"""
    with pytest.raises(HeronError, match="GEN123"):
        lower(two)
    select = """
func.func @k(%a: tensor<8xf32>, %o: tensor<8xf32>, %c: i1) -> tensor<8xf32> attributes {xla_gpu.entry} {
  %r = arith.select %c, %a, %o : tensor<8xf32>
  func.return %r : tensor<8xf32>
}"""
    with pytest.raises(HeronError, match="GEN122"):
        lower(select)
