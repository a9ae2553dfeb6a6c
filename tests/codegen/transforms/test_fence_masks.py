"""fence-masks: maxima over masked elements stay loops that LLVM vectorises."""

from __future__ import annotations

import platform

import numpy as np
import pytest

import heron
from heron.codegen.ir.dialects.context import parse_kernel
from heron.codegen.transforms import fence_masks
from heron.hlo.text.parser import parse
from tests.codegen.transforms.test_math_lowering import ops

_LOOP = """
builtin.module {{ func.func @f(%c: i1, %x: {type}, %n: index, %i: index) -> {type} {{
  %start = arith.constant {value} : {type}
  %mask = arith.constant {value} : {type}
  %r = scf.for %k = %i to %n step %n iter_args(%carried = %start) -> ({type}) {{
    %s = arith.select %c, {arms} : {type}
    %m = arith.{op} {operands} : {type}
    scf.yield %m : {type}
  }}
  func.return %r : {type}
}} }}
"""
_MINUS, _PLUS = {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}, {"f32": "0x7F800000", "f64": "0x7FF0000000000000"}


def fences(type_: str, value: str, op: str, arms: str = "%x, %mask", operands: str = "%carried, %s") -> list[str]:
    module = parse_kernel(_LOOP.format(type=type_, value=value, op=op, arms=arms, operands=operands))
    fence_masks.run(module)
    module.verify()
    return [name for name in ops(module) if name.startswith("call")]


@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_what_leaves_elements_out_is_behind_a_fence(type_: str) -> None:
    fence = [f"call llvm.arithmetic.fence.{type_}"]
    assert fences(type_, _MINUS[type_], "maximumf") == fence
    assert fences(type_, _MINUS[type_], "maximumf", arms="%mask, %x", operands="%s, %carried") == fence
    assert fences(type_, _PLUS[type_], "minimumf") == fence


def test_other_constants_and_operations_stay() -> None:
    assert fences("f32", _PLUS["f32"], "maximumf") == []
    assert fences("f32", "-1.0e9", "maximumf") == []
    assert fences("f32", _MINUS["f32"], "addf") == []
    assert fences("f32", _MINUS["f32"], "maximumf", operands="%s, %x") == []


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names of x86's instructions")
@pytest.mark.parametrize(("op", "mask", "instruction"), [("maximum", "-inf", "pmaxsd"), ("minimum", "inf", "pminsd")])
def test_a_masked_row_is_reduced_in_vectors(op: str, mask: str, instruction: str) -> None:
    text = f"""
HloModule masked
r {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] {op}(a, b)
}}
ENTRY main {{
  x = f32[64,512] parameter(0)
  i = s32[64,512] iota(), iota_dimension=0
  j = s32[64,512] iota(), iota_dimension=1
  c = pred[64,512] compare(i, j), direction=GE
  none = f32[] constant({mask})
  all = f32[64,512] broadcast(none), dimensions={{}}
  s = f32[64,512] select(c, x, all)
  ROOT r = f32[64] reduce(s, none), dimensions={{1}}, to_apply=r
}}
"""
    exe = heron.compile(parse(text))
    x = np.random.default_rng(0).standard_normal((64, 512), np.float32)
    x[3, 1], x[5, 9] = np.nan, np.nan  # the second one is left out
    masked = np.where(np.arange(64)[:, None] >= np.arange(512), x, np.float32(mask))
    np.testing.assert_array_equal(exe(x), getattr(np, op)(masked[:, 0], getattr(np, op).reduce(masked, axis=1)))
    assert instruction in exe.stage("asm")
