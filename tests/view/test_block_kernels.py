"""The texts of block kernels: Triton's stages are there, and their lines lead to the lines and instructions before."""

from __future__ import annotations

from typing import Any

import pytest

from heron import targets
from heron.backends.compiler import Compilation
from heron.frontends import load
from heron.options import Options
from heron.targets.triton import missing
from heron.trace import Trace
from heron.view.record.kernels import texts
from heron.view.record.triton_lines import located

DOT = """HloModule m
ENTRY e {
  x = bf16[256,256]{1,0} parameter(0)
  y = bf16[256,256]{1,0} parameter(1)
  z = bf16[256,256]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT e = bf16[256,256]{1,0} exponential(z)
}"""


def _block(target: str) -> dict[str, Any]:
    compilation = Compilation(load(DOT, verify=True), targets.get(target), Options(triton="on"), Trace())
    return next(k for k in texts(compilation) if k["emitter"] == "block")


@pytest.mark.skipif(bool(missing()), reason="needs Triton")
def test_every_stage_of_triton_leads_to_the_program() -> None:
    kernel = _block("sm_90")
    steps = dict(kernel["steps"])
    assert list(steps) == ["hlo", "triton", "ttir", "ttgir", "llir", "ptx"]
    number = next(n for n, line in enumerate(steps["hlo"]["lines"]) if " exponential(" in line)
    words = dict.fromkeys(("triton", "ttir", "ttgir"), "__nv_expf") | dict.fromkeys(("llir", "ptx"), "ex2")
    for name, word in words.items():
        text = steps[name]
        assert len(text["lines"]) == len(text["of"])
        lines = [line for line, of in zip(text["lines"], text["of"], strict=True) if of == number]
        assert any(word in line for line in lines), name
        if name != "triton":
            assert text["base"] == 1 and len(text["from"]) == len(text["lines"])
            back = {text["from"][n] for n, line in enumerate(text["lines"]) if word in line and text["of"][n] >= 0}
            assert all("__nv_expf" in steps["triton"]["lines"][n] for n in back), name
            assert not any("loc(" in line or "!dbg" in line for line in text["lines"])
    assert any("dot" in line for line in steps["ttgir"]["lines"])


def test_a_simulated_gpu_shows_the_kernel_as_emitted() -> None:
    assert [name for name, _ in _block("sim:sm_90")["steps"]] == ["hlo", "triton"]


def test_a_place_may_be_made_of_others() -> None:
    text = """#loc1 = loc("k.ttir":3:4)
module {
  %0 = a.b %x : f32 loc(#loc2)
  %1 = a.c %0 : f32 loc("k.ttir":7:1)
  %2 = a.d %0 : f32 loc(#loc)
} loc(#loc4)
#loc = loc(unknown)
#loc2 = loc("name"(#loc3))
#loc3 = loc(callsite(#loc1 at #loc))
#loc4 = loc(#loc4)"""
    lines, places = located("ttir", text)
    assert lines == ["module {", "  %0 = a.b %x : f32", "  %1 = a.c %0 : f32", "  %2 = a.d %0 : f32", "}"]
    assert places == [0, 3, 7, 0, 0]
