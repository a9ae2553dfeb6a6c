"""Barriers, shuffles, shared memory and atomics: the IR they become, and that LLVM takes it."""

from __future__ import annotations

import numpy as np
import pytest

from heron.codegen.llvm.translate import KernelAbi, to_llvm
from heron.errors import HeronError
from tests.codegen.transforms.kernels import apply, lower, run_cpu

SHUFFLE = """
func.func @k(%x: TYPE, %y: i32) -> (TYPE, i32) {
  %r:2 = xla_gpu.shuffle_reduce @f(%x, %y) to 16 : TYPE, i32
  func.return %r#0, %r#1 : TYPE, i32
}
func.func private @f(%a: TYPE, %i: i32, %b: TYPE, %j: i32) -> (TYPE, i32) {
  %s = arith.addi %i, %j : i32
  func.return %b, %s : TYPE, i32
}"""


@pytest.mark.parametrize(
    ("type_", "kind", "calls"),
    [
        ("f32", "f32", 1),
        ("i32", "i32", 1),
        ("bf16", "i32", 1),
        ("i1", "i32", 1),
        ("f64", "i32", 2),
        ("i64", "i32", 2),
        ("complex<f32>", "f32", 2),
        ("f8E4M3FN", "i32", 1),
    ],
)
def test_shuffle(type_: str, kind: str, calls: int) -> None:
    text = apply(SHUFFLE.replace("TYPE", type_), "lower-gpu", "gpu")
    assert text.count("pure_call @f") == 5
    wanted = 5 * calls if kind == "f32" else 5 * (calls + 1)  # %y is shuffled as i32 too
    assert text.count(f"call @llvm.nvvm.shfl.sync.down.{kind}") == wanted
    lowered = lower(SHUFFLE.replace("TYPE", type_), "gpu")
    assert "shfl.sync.down" in to_llvm(lowered, target="gpu")


def test_shuffle_up() -> None:
    """From lanes below; the first ones keep their own value, which the clamp 0 says."""
    up = """
func.func @k(%x: f32, %y: i64) -> (f32, i64) {
  %a, %b = xla_gpu.shuffle_up (%x, %y) by 2 : f32, i64
  func.return %a, %b : f32, i64
}"""
    text = apply(up, "lower-gpu", "gpu")
    assert text.count("call @llvm.nvvm.shfl.sync.up.f32") == 1 and text.count("call @llvm.nvvm.shfl.sync.up.i32") == 2
    llvm = to_llvm(lower(up, "gpu"), target="gpu")
    assert "@llvm.nvvm.shfl.sync.up.f32(i32 -1, float %v1, i32 2, i32 0)" in llvm


def test_shuffle_first() -> None:
    """Lane 0 of each group of eight: the mask 24 says which bits of a lane's number name its group."""
    first = """
func.func @k(%x: f32) -> f32 {
  %a = xla_gpu.shuffle_first (%x) of 8 : f32
  func.return %a : f32
}"""
    llvm = to_llvm(lower(first, "gpu"), target="gpu")
    assert f"@llvm.nvvm.shfl.sync.idx.f32(i32 -1, float %v1, i32 0, i32 {24 << 8 | 31})" in llvm


SHARED = """
func.func @k(%a: tensor<32xf32>, %o: tensor<32xf32>) -> tensor<32xf32> attributes {xla_gpu.entry} {
  %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
  %m = xla_gpu.allocate_shared : tensor<32xf32>
  %v = tensor.extract %a[%t] : tensor<32xf32>
  %m1 = tensor.insert %v into %m[%t] : tensor<32xf32>
  %m2 = xla_gpu.sync_threads (%m1) : tensor<32xf32>
  %u = xla_gpu.apply_indexing "(d0) -> (-d0 + 31), domain: d0 in [0, 31]"(%t)
  %w = tensor.extract %m2[%u] : tensor<32xf32>
  %r = tensor.insert %w into %o[%t] : tensor<32xf32>
  func.return %r : tensor<32xf32>
}"""


def test_shared_memory_and_barrier() -> None:
    module = lower(SHARED, "gpu")
    text = str(module)
    assert "llvm.mlir.global internal @k_shared_0() {addr_space = 3 : i32" in text
    assert "!llvm.ptr<3>" in text
    stored, barrier = text.index("llvm.store"), text.index("barrier.cta.sync")
    assert stored < barrier < text.rindex("llvm.load")
    ir = to_llvm(module, kernels={"k": KernelAbi("gpu", block=(32, 1, 1))})
    assert "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)" in ir


def test_cpu_has_no_barrier() -> None:
    with pytest.raises(HeronError, match="GEN125"):
        apply(SHARED, "lower-gpu", "cpu")


ATOMIC = """
func.func @k(%a: tensor<8xTYPE>, %o: tensor<4xTYPE>, %lo: index, %hi: index) -> tensor<4xTYPE>
    attributes {xla_gpu.entry} {
  %v = tensor.extract %a[%lo] : tensor<8xTYPE>
  %i = xla_gpu.apply_indexing "(d0) -> (d0 mod 4), domain: d0 in [0, 7]"(%lo)
  %r = xla_gpu.atomic_rmw %o[%i] : tensor<4xTYPE> {
  ^bb0(%c: TYPE):
    BODY
    xla_gpu.yield %n : TYPE
  }
  func.return %r : tensor<4xTYPE>
}"""


@pytest.mark.parametrize(
    ("type_", "body", "native"),
    [
        ("f32", "%n = arith.addf %c, %v : f32", "fadd"),
        ("f64", "%n = arith.addf %v, %c : f64", "fadd"),
        ("bf16", "%n = arith.addf %v, %c : bf16", "fadd"),
        ("i32", "%n = arith.addi %c, %v : i32", "add"),
        ("i64", "%n = arith.maxsi %c, %v : i64", "max"),
        ("i32", "%n = arith.minui %c, %v : i32", "umin"),
        ("i32", "%n = arith.addi %v, %v : i32", "xchg"),
        ("f32", "%n = arith.mulf %c, %v : f32", None),
        ("f32", "%n = arith.addf %c, %c : f32", None),
        ("f32", "%n = arith.maximumf %c, %v : f32", None),
        ("f64", "%n = arith.mulf %c, %v : f64", None),
        ("i8", "%n = arith.addi %c, %v : i8", None),
        ("i16", "%n = arith.muli %c, %v : i16", None),
        ("i1", "%n = arith.ori %c, %v : i1", None),
        ("f16", "%n = arith.mulf %c, %v : f16", None),
    ],
)
@pytest.mark.parametrize("target", ["gpu", "sim"])
def test_atomics(type_: str, body: str, native: str | None, target: str) -> None:
    module = lower(ATOMIC.replace("TYPE", type_).replace("BODY", body), target)  # type: ignore[arg-type]
    text = str(module)
    scope = '"device"' if target == "gpu" else '""'
    if native:
        assert f'xla_gpu.llvm_atomicrmw "{native}" "monotonic" {scope}' in text and "scf.while" not in text
    else:
        assert f'xla_gpu.llvm_cmpxchg "monotonic" {scope}' in text and "scf.while" in text


@pytest.mark.parametrize(("type_", "dtype"), [("i32", np.int32), ("i8", np.int8), ("f64", np.float64)])
def test_cpu_update(type_: str, dtype: type) -> None:
    op = "arith.mulf" if type_ == "f64" else "arith.muli"
    text = ATOMIC.replace("TYPE", type_).replace("BODY", f"%n = {op} %c, %v : {type_}")
    a, out = np.arange(8).astype(dtype), np.array([1, 2, 3, 4], dtype)
    run_cpu(text, [a, out], 6)
    np.testing.assert_array_equal(out, [1, 2, 18, 4])


def test_atomics_of_more_than_64_bits_are_refused() -> None:
    text = ATOMIC.replace("TYPE", "complex<f64>").replace("BODY", "%n = complex.mul %c, %v : complex<f64>")
    with pytest.raises(HeronError, match="GEN124"):
        lower(text, "gpu")
