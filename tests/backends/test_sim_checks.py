"""Whole programs whose kernels are spoilt on the way: findings name the kernel, both accesses and the HLO behind them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heron
from heron import Options
from heron.backends.gpu.machine import GpuMachine
from heron.compiling import compile
from heron.errors import HeronError
from tests.support import heron as command

TRANSPOSE = """HloModule transposed

ENTRY main {
  x = f32[64,96]{1,0} parameter(0)
  e = f32[64,96]{1,0} exponential(x), metadata={op_name="jit(f)/exp"}
  ROOT t = f32[96,64]{1,0} transpose(e), dimensions={1,0}, metadata={op_name="jit(f)/transpose"}
}
"""

SUM = """HloModule summed

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  x = f32[4,4096]{1,0} parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[4]{0} reduce(x, z), dimensions={1}, to_apply=add, metadata={op_name="jit(f)/sum"}
}
"""

Spoil = Callable[[str], str]
_BARRIER = re.compile(r"^ *call void @llvm\.nvvm\.barrier\.cta\.sync\.aligned\.all.*$", re.MULTILINE)


def no_barriers(text: str) -> str:
    return _BARRIER.sub("", text)


def run(source: str, monkeypatch: pytest.MonkeyPatch, spoil: Spoil, checks: str) -> Any:
    """Compile with every kernel's LLVM text spoilt, and run."""
    plain = GpuMachine.llvm

    def spoilt(self: GpuMachine, uses: Any) -> str:
        text = plain(self, uses)
        changed = spoil(text)
        assert changed != text, "nothing to spoil"
        return changed

    monkeypatch.setattr(GpuMachine, "llvm", spoilt)
    module = heron.parse(source)
    x = np.random.default_rng(0).random(module.entry.parameters[0].shape.dims, np.float32)
    return compile(module, "sim:sm_90", options=Options(sim_check=checks))(x)


def finding(source: str, monkeypatch: pytest.MonkeyPatch, spoil: Spoil, checks: str = "all") -> HeronError:
    with pytest.raises(HeronError) as caught:
        run(source, monkeypatch, spoil, checks)
    return caught.value


@pytest.mark.parametrize("source", [TRANSPOSE, SUM])
def test_a_missing_barrier(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    error = finding(source, monkeypatch, no_barriers, "races")
    assert error.code == "RUN076" and "race on shared '" in error.what and "element [" in error.what
    first, second, hlo = (line.strip() for line in str(error.where).splitlines())
    assert {first.split()[0], second.split()[0]} == {"read", "write"}
    assert hlo.startswith("HLO ") and "from jit(f)/" in hlo


def test_a_missing_barrier_leaves_shared_memory_unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    assert finding(TRANSPOSE, monkeypatch, no_barriers, "uninit").code == "RUN078"


def test_without_checks_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    run(TRANSPOSE, monkeypatch, no_barriers, "")


@pytest.mark.parametrize(("instead", "element"), [("", "[0]"), (r"store float \1, ptr %last", "[1]")])
def test_an_output_that_is_not_written_whole(instead: str, element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread stores its sum; or all store theirs in element 0."""

    def spoil(text: str) -> str:
        (out,) = re.findall(r"ptr noalias[^,]* (%v2)\)", text)
        text = text.replace("entry:\n", f"entry:\n  %last = getelementptr float, ptr {out}, i64 0\n")
        return re.sub(r"store float (%\w+), ptr %\w+, align 4(?!.*store float)", instead, text, flags=re.DOTALL)

    error = finding(SUM, monkeypatch, spoil, "uninit")
    assert (
        error.code == "RUN078"
        and f"output of input_reduce_fusion is not written whole: byte {4 * int(element[1])}" in error.what
    )
    assert element in error.what


def test_an_access_outside_an_argument_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(text: str) -> str:
        return re.sub(r"(getelementptr inbounds float, ptr %v1, i64 )%\w+", r"\g<1>999999", text)

    error = finding(SUM, monkeypatch, spoil, "bounds")
    assert error.code == "RUN075" and "argument 0 (x) at byte 3999996 of 65536" in error.what


def test_a_barrier_that_some_threads_pass_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thread leaves before the barrier."""

    def spoil(text: str) -> str:
        barrier = _BARRIER.search(text)
        assert barrier is not None
        leave = f"""  %lost = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %gone = icmp eq i32 %lost, 0
  br i1 %gone, label %leave, label %stay
leave:
  ret void
stay:
{barrier[0]}"""
        return text.replace(barrier[0], leave, 1)

    error = finding(SUM, monkeypatch, spoil, "divergence")
    assert error.code == "RUN077" and "thread (0, 0, 0) never reached" in error.what


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding is an error with exit code 2; what cannot be checked is one too."""
    path = tmp_path / "sum.hlo"
    path.write_text(SUM)
    job = ("run", path, "--random", "0", "--target", "sim:sm_90", "--check")
    assert command(*job, "all").code == 0
    assert "CLI021" in command(*job, "racse").err
    assert "CLI040" in command("run", path, "--random", "0", "--check", "all").err
    plain = GpuMachine.llvm
    monkeypatch.setattr(GpuMachine, "llvm", lambda self, uses: no_barriers(plain(self, uses)))
    found = command(*job, "races,bounds", "--json")
    assert found.code == 2 and json.loads(found.out)["error"]["code"] == "RUN076"
    assert command(*job, "bounds").code == 0


def test_right_programs_are_quiet() -> None:
    for source in (TRANSPOSE, SUM):
        module = heron.parse(source)
        x = np.random.default_rng(0).random(module.entry.parameters[0].shape.dims, np.float32)
        got = compile(module, "sim:sm_90", options=Options(sim_check="all"))(x)
        np.testing.assert_allclose(got, heron.evaluate(module, x)[0], rtol=1e-5)
