"""inliner, simplify-arith and cse."""

from __future__ import annotations

import pytest

from heron.errors import HeronError
from tests.codegen.transforms.kernels import apply

NESTED = """
func.func @k(%x: f32) -> (f32, f32) {
  %a = xla_gpu.pure_call @f(%x) : (f32) -> f32
  %b = xla_gpu.pure_call @f(%a) : (f32) -> f32
  func.return %a, %b : f32, f32
}
func.func private @f(%x: f32) -> f32 {
  %y = xla_gpu.pure_call @g(%x) : (f32) -> f32
  %z = arith.addf %y, %x : f32
  func.return %z : f32
}
func.func private @g(%x: f32) -> f32 {
  %y = math.exp %x : f32
  func.return %y : f32
}
func.func private @unused() { func.return }
func.func private @external(f32) -> f32
"""


def test_inline_all() -> None:
    text = apply(NESTED, "inliner,erase-dead-functions")
    assert text.count("func.func") == 1
    assert text.count("math.exp") == 2 and "pure_call" not in text


def test_single_use_is_moved_even_when_large() -> None:
    text = apply(NESTED, "inliner", inline_ops=0)
    assert text.count("math.exp") == 1 and text.count("pure_call @f") == 2
    assert "@g" not in text and "func.func private @f" in text


def test_recursion_is_refused() -> None:
    with pytest.raises(HeronError, match="GEN127"):
        apply(NESTED.replace("math.exp %x : f32", "xla_gpu.pure_call @f(%x) : (f32) -> f32"), "inliner")


def test_regions_are_inlined() -> None:
    text = """
func.func @k(%c: i1) -> (i32, i32) {
  %x = xla_gpu.pure_call @f(%c) : (i1) -> i32
  %y = xla_gpu.pure_call @f(%c) : (i1) -> i32
  func.return %x, %y : i32, i32
}
func.func private @f(%c: i1) -> i32 {
  %r = scf.if %c -> (i32) { %a = arith.constant 1 : i32 scf.yield %a : i32 }
      else { %b = arith.constant 2 : i32 scf.yield %b : i32 }
  func.return %r : i32
}"""
    assert apply(text, "inliner").count("scf.if") == 2


@pytest.mark.parametrize(
    ("ops", "result"),
    [
        ("%r = arith.addi %x, %zero : i32", "%x"),
        ("%r = arith.muli %one, %x : i32", "%x"),
        ("%r = arith.andi %x, %ones : i32", "%x"),
        ("%r = arith.ori %x, %x : i32", "%x"),
        ("%r = arith.select %true, %x, %zero : i32", "%x"),
        ("%c = arith.cmpi slt, %ones, %zero : i32\n%r = arith.select %c, %x, %zero : i32", "%x"),
        ("%c = arith.cmpi slt, %x, %zero : i32\n%r = arith.select %c, %x, %x : i32", "%x"),
        ("%r = scf.if %true -> (i32) { scf.yield %x : i32 } else { scf.yield %zero : i32 }", "%x"),
        ("%r = arith.muli %x, %zero : i32", "%zero"),
        ("%a = arith.subi %zero, %one : i32\n%r = arith.addi %a, %one : i32", "%zero"),
    ],
)
def test_identities(ops: str, result: str) -> None:
    text = f"""func.func @k(%x: i32) -> i32 {{
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ones = arith.constant -1 : i32
  %true = arith.constant true
  {ops}
  func.return %r : i32
}}"""
    assert f"func.return {result} :" in apply(text, "simplify-arith")


def test_wrapping_constants() -> None:
    text = """func.func @k() -> i8 {
  %a = arith.constant 100 : i8
  %r = arith.addi %a, %a : i8
  func.return %r : i8
}"""
    assert "arith.constant -56 : i8" in apply(text, "simplify-arith")


def test_if_without_else_on_false_goes() -> None:
    text = """func.func @k(%p: !llvm.ptr, %x: i32) {
  %false = arith.constant false
  scf.if %false { llvm.store %x, %p : i32, !llvm.ptr }
  func.return
}"""
    assert "scf.if" not in apply(text, "simplify-arith")


def test_cse_respects_scopes_and_memory() -> None:
    text = """func.func @k(%t: tensor<4xf32>, %x: f32, %i: index, %c: i1) -> (f32, f32, f32, f32) {
  %a = arith.addf %x, %x : f32
  %u = scf.if %c -> (f32) { %p = arith.mulf %x, %x : f32 %q = arith.addf %x, %x : f32
      %s = arith.addf %p, %q : f32 scf.yield %s : f32 } else { scf.yield %x : f32 }
  %b = arith.mulf %x, %x : f32
  %e = tensor.extract %t[%i] : tensor<4xf32>
  %f = tensor.extract %t[%i] : tensor<4xf32>
  %unused = math.exp %b : f32
  func.return %u, %b, %e, %f : f32, f32, f32, f32
}"""
    out = apply(text, "cse")
    assert out.count("arith.addf") == 2  # %a is used in the branch instead of %q
    assert out.count("arith.mulf") == 2  # the one in the branch does not dominate %b
    assert out.count("tensor.extract") == 2
    assert "math.exp" not in out
