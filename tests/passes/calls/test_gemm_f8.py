"""8-bit floats in gemm-rewriter: which products are taken as they are, scales, results of 8 bits, why others are not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import heron
from heron import Options, targets
from heron.compiling import compile
from heron.hlo.calls import gemm
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext

MAXIMUM = "m {\n  a = bf16[] parameter(0)\n  b = bf16[] parameter(1)\n  ROOT c = bf16[] maximum(a, b)\n}\n"
OPERANDS = """  x = f8e4m3fn[32,64] parameter(0)
  y = f8e4m3fn[64,16] parameter(1)
  s = bf16[] parameter(2)
  t = bf16[] parameter(3)
  u = bf16[] parameter(4)
  wx = bf16[32,64] convert(x)
  wy = bf16[64,16] convert(y)
"""
SCALED = """  ss = bf16[32,64] broadcast(s), dimensions={}
  ts = bf16[64,16] broadcast(t), dimensions={}
  a = bf16[32,64] multiply(wx, ss)
  b = bf16[64,16] divide(wy, ts)
  d = bf16[32,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
"""
PLAIN = "  d = bf16[32,16] dot(wx, wy), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
STORED = """  us = bf16[32,16] broadcast(u), dimensions={}
  q = bf16[32,16] divide(d, us)
  low = bf16[] constant(-448)
  lows = bf16[32,16] broadcast(low), dimensions={}
  high = bf16[] constant(448)
  highs = bf16[32,16] broadcast(high), dimensions={}
  k = bf16[32,16] clamp(lows, q, highs)
"""
LARGEST = """  zero = bf16[] constant(0)
  n = bf16[32,16] abs(d)
  l = bf16[] reduce(n, zero), dimensions={0,1}, to_apply=m
"""


def text(body: str) -> str:
    return "HloModule e\n\n" + MAXIMUM + "\nENTRY main {\n" + OPERANDS + body + "}\n"


def rewritten(body: str, math: str = "reassociate", target: str = "sm_90") -> tuple[Module, PassContext]:
    module = parse(text(body), verify=True)
    ctx = PassContext(Options(math=math), target=targets.get(target))
    before = ValueCheck(module)
    registry.get("gemm-rewriter").run(module, ctx)
    verify(module)
    if math == "ieee":
        before.after("gemm-rewriter", module)
    registry.get("dce").run(module, ctx)
    return module, ctx


def calls(module: Module) -> list[str]:
    return [i.custom_call_target for i in module.instructions() if i.opcode == "custom-call"]


def inputs(module: Module) -> list[np.ndarray]:
    """Whole numbers and powers of two, on which no way to round matters."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(-2, 3, (32, 64)), rng.integers(-2, 3, (64, 16))
    narrow = [v.astype(p.shape.element_type.dtype) for v, p in zip((x, y), module.entry.parameters, strict=False)]
    return [*narrow, *(np.asarray(v, ml_dtypes.bfloat16) for v in (0.5, 2.0, 0.25))]


def agrees(body: str, math: str = "reassociate") -> Module:
    """The program after the pass gives what it gave, by the evaluator and on the simulated GPU."""
    module, _ = rewritten(body, math)
    plain, arrays = parse(text(body)), inputs(module)
    wanted = heron.evaluate(plain, *arrays)
    ran = compile(module, "sim:sm_90", Options(triton="off")).run(arrays)
    for found in (heron.evaluate(module, *arrays), ran):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(a, np.float32), np.asarray(b, np.float32))
    return module


def test_widened_operands_are_taken_as_they_are() -> None:
    module = agrees(PLAIN.replace("  d", "  ROOT d"), "ieee")
    assert calls(module) == [gemm.MATMUL_F8]
    call = module.entry.root
    assert [o.shape.element_type.name for o in call.operands] == ["f8e4m3fn", "f8e4m3fn", "f32", "f32"]
    assert call.operands[1].shape.dims == (16, 64) and gemm.read(call).rhs_contracting == (1,)


def test_scales_are_operands() -> None:
    module = agrees(SCALED.replace("  d =", "  ROOT d ="))
    assert calls(module) == [gemm.MATMUL_F8] and "divide" in [o.opcode for o in module.entry.root.operands]


def test_a_result_of_8_bits() -> None:
    module = agrees(SCALED + STORED + "  ROOT r = f8e4m3fn[32,16] convert(k)\n")
    (call,) = [i for i in module.instructions() if i.opcode == "custom-call"]
    assert call.shape.element_type.name == "f8e4m3fn" and len(call.operands) == 5
    assert gemm.parts(call, gemm.read(call)).out_scale == 4


def test_its_largest_magnitude() -> None:
    rest = "  q8 = f8e4m3fn[32,16] convert(k)\n  ROOT r = (f8e4m3fn[32,16], bf16[]) tuple(q8, l)\n"
    module = agrees(SCALED + LARGEST + STORED + rest)
    (call,) = [i for i in module.instructions() if i.opcode == "custom-call"]
    assert gemm.read(call).gives_amax and "reduce" not in [i.opcode for i in module.entry.instructions]


def test_a_bias_and_a_result_that_saturates() -> None:
    module, _ = rewritten(SCALED + STORED + "  ROOT r = f8e4m3fn[32,16] convert(k)\n")
    arrays = inputs(module)
    arrays[4] = np.asarray(2.0**-9, ml_dtypes.bfloat16)  # far more than 448
    (found,) = heron.evaluate(module, *arrays)
    assert np.abs(np.asarray(found, np.float32)).max() == 448
    (ran,) = compile(module, "sim:sm_90").run(arrays)
    np.testing.assert_array_equal(np.asarray(ran, np.float32), np.asarray(found, np.float32))


@pytest.mark.parametrize(
    ("body", "math", "target", "why"),
    [
        (SCALED, "ieee", "sm_90", "scaled before they are multiplied"),
        (PLAIN, "ieee", "sm_80", "no matrix units"),
        (PLAIN.replace("16]", "24]"), "ieee", "sm_90", "multiples of 16"),
        (PLAIN, "ieee", "sm_90 both f8e5m2", "two f8e5m2"),
    ],
)
def test_what_is_not_taken(body: str, math: str, target: str, why: str) -> None:
    body = body.replace("  d =", "  ROOT d =")
    machine, _, both = target.partition(" both ")
    whole = text(body)
    whole = whole.replace("[64,16]", "[64,24]") if "24]" in body else whole
    module = parse(whole.replace("f8e4m3fn", both or "f8e4m3fn"), verify=True)
    ctx = PassContext(Options(math=math), target=targets.get(machine))
    registry.get("gemm-rewriter").run(module, ctx)
    assert gemm.MATMUL_F8 not in calls(module)
    assert any(why in d.reason for d in ctx.trace.decisions), [d.reason for d in ctx.trace.decisions]


def test_in_the_pipeline() -> None:
    module = parse(text(PLAIN.replace("  d", "  ROOT d")))
    arrays = inputs(module)
    executable = compile(module, "sim:sm_90", Options(triton="off"))
    assert "cublaslt" in executable.trace.thunks and "f8e4m3fn[16,64]" in executable.stage("thunks")
    (wanted,) = heron.evaluate(module, *arrays)
    np.testing.assert_array_equal(np.asarray(executable.run(arrays)[0], np.float32), np.asarray(wanted, np.float32))
