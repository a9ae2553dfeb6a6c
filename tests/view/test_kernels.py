"""The texts of kernels: every step is there, and lines lead to the instructions they compute."""

from __future__ import annotations

from typing import Any

import pytest

from heron import targets
from heron.backends.compiler import Compilation
from heron.codegen.llvm.debug_lines import numbered, stripped
from heron.codegen.llvm.jit import Jit
from heron.frontends import load
from heron.options import Options
from heron.trace import Trace
from heron.view.record.kernels import texts

SOFTMAX = """HloModule m
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[64,256]{1,0} parameter(0)
  low = f32[] constant(-inf)
  top = f32[64]{0} reduce(x, low), dimensions={1}, to_apply=max
  tops = f32[64,256]{1,0} broadcast(top), dimensions={0}
  less = f32[64,256]{1,0} subtract(x, tops)
  exp = f32[64,256]{1,0} exponential(less)
  zero = f32[] constant(0)
  sum = f32[64]{0} reduce(exp, zero), dimensions={1}, to_apply=add
  sums = f32[64,256]{1,0} broadcast(sum), dimensions={0}
  ROOT div = f32[64,256]{1,0} divide(exp, sums)
}"""


def _kernel(target: str) -> dict[str, Any]:
    compilation = Compilation(load(SOFTMAX, verify=True), targets.get(target), Options(), Trace())
    (kernel,) = texts(compilation)
    return kernel


def _lines_of(kernel: dict[str, Any], step: str, opcode: str) -> list[str]:
    """Lines of a step that belong to the kernel's instruction of that opcode."""
    steps = dict(kernel["steps"])
    (number,) = (n for n, line in enumerate(steps["hlo"]["lines"]) if f" {opcode}(" in line)
    return [line for line, of in zip(steps[step]["lines"], steps[step]["of"], strict=True) if of == number]


@pytest.mark.parametrize(("target", "last"), [("cpu", "asm"), ("sm_90", "ptx")])
def test_lines_lead_to_their_instruction(target: str, last: str) -> None:
    kernel = _kernel(target)
    names = [name for name, _ in kernel["steps"]]
    assert names[:2] == ["hlo", "emission"] and names[-2:] == ["llvm", last]
    assert any("math.exp" in line for line in _lines_of(kernel, "emission", "exponential"))
    assert any("arith.divf" in line for line in _lines_of(kernel, "emission", "divide"))
    assert any("fdiv" in line for line in _lines_of(kernel, "llvm", "divide"))
    assert any("div" in line for line in _lines_of(kernel, last, "divide"))
    for name, text in kernel["steps"]:
        assert len(text["lines"]) == len(text["of"]), name
        assert max(text["of"]) < len(kernel["names"])


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_a_line_knows_its_line_one_step_before(target: str) -> None:
    kernel = _kernel(target)
    before: list[str] = []
    for name, text in kernel["steps"]:
        if "from" in text:
            assert len(text["from"]) == len(text["lines"])
            assert all(-1 <= n < len(before) for n in text["from"])
            assert sum(n >= 0 for n in text["from"]) > len(text["from"]) / 4, name
        before = text["lines"]
    llvm = dict(kernel["steps"])["llvm"]
    (at,) = (n for n, line in enumerate(llvm["lines"]) if " fdiv " in line)
    last_mlir = kernel["steps"][-3][1]
    assert "divf" in last_mlir["lines"][llvm["from"][at]]


def test_a_simulated_gpu_has_no_machine_code_to_show() -> None:
    assert _kernel("sim:sm_90")["steps"][-1][0] == "llvm"


def test_debug_lines_do_not_change_the_code() -> None:
    text = """define float @f(float %a, float %b) {
entry:
  %c = fadd float %a, %b
  switch i32 0, label %end [
    i32 1, label %end
  ]
end:
  %d = fmul float %c, %b
  ret float %d
}
"""
    plain, _ = stripped(Jit().asm(text))
    kept, lines = stripped(Jit().asm(numbered(text)))
    assert kept == plain
    of = {kept[n].split()[0]: line for n, line in enumerate(lines) if line}
    assert of["vaddss" if "vaddss" in of else "addss"] == 3 and of["vmulss" if "vmulss" in of else "mulss"] == 8
