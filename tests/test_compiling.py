"""`heron.compile`: verification at the door, and stages that are printed from what is kept."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

import heron
from heron import HeronError, Options, targets
from heron.backends.compiler import STAGES, Compilation
from heron.hlo import verifier
from heron.passes.framework.pipeline import Pipeline
from heron.trace import Trace

SUM = """HloModule sum
ENTRY e {
  a = f32[8,4] parameter(0)
  b = f32[8,4] exponential(a)
  ROOT c = f32[8,4] add(a, b)
}
"""
#: operands of two types, which only the verifier finds
MIXED = """HloModule mixed
ENTRY e {
  a = f16[4] parameter(0)
  b = f32[4] parameter(1)
  ROOT m = f32[4] maximum(a, b)
}
"""


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("cache", [False, True])
def test_a_module_that_breaks_a_rule_is_refused(
    target: str, cache: bool, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path))
    module = heron.parse(MIXED)
    with pytest.raises(HeronError) as error:
        heron.compile(module, target, Options(cache=cache))
    assert error.value.code.startswith("HLO")


def test_a_module_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    verified = []
    plain = verifier.verify
    monkeypatch.setattr(verifier, "verify", lambda module: (verified.append(module), plain(module)))
    module = heron.parse(SUM)
    verifier.verify_once(module)
    verifier.verify_once(module)
    assert len(verified) == 1
    root = module.entry.root
    root.set_operand(1, root.operands[0])
    verifier.verify_once(module)
    assert len(verified) == 2
    module.entry.root = module.entry.parameters[0]
    with suppress(HeronError):
        verifier.verify_once(module)
    assert len(verified) == 3


def test_a_stage_before_another_one_runs_no_pass_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    plain = Pipeline.run
    monkeypatch.setattr(Pipeline, "run", lambda self, m, ctx: (ran.append(self.name), plain(self, m, ctx))[1])
    compilation = Compilation(heron.parse(SUM), targets.get("cpu"), Options(), Trace())
    for stage in ("hlo", "fused", "scheduled", "buffers", "thunks", "mlir", "llvm"):
        assert compilation.text(stage)
    assert [name for name in ran if name in ("hlo", "fused", "scheduled")] == ["hlo", "fused", "scheduled"]


@pytest.mark.parametrize("target", ["cpu", "sm_90", "sim:sm_90"])
def test_stages_after_a_compile_are_those_of_a_fresh_one(target: str) -> None:
    module = heron.parse(SUM)
    made = heron.compile(module, target)
    for stage in STAGES:
        try:
            fresh = Compilation(module, targets.get(target), Options(), Trace()).text(stage)
        except HeronError as refused:
            with pytest.raises(HeronError) as error:
                made.stage(stage)
            assert error.value.code == refused.code
        else:
            assert made.stage(stage) == made.stage(stage) == fresh


def test_printing_a_stage_leaves_the_rest_of_a_compilation_whole() -> None:
    compilation = Compilation(heron.parse(SUM), targets.get("cpu"), Options(), Trace())
    assert compilation.text("llvm") == compilation.text("llvm")
    x = np.ones((8, 4), np.float32)
    assert np.allclose(compilation.executable()(x), x + np.exp(x))
    assert "maximum" not in compilation.text("hlo")


def test_devices_of_a_program_for_one() -> None:
    program = heron.compile("HloModule m\nENTRY main { x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }")
    x = np.array([1, 2], np.float32)
    assert program.devices == 1 and (program.run_devices([[x]])[0][0] == -x).all()
    with pytest.raises(HeronError, match="RUN085") as error:
        program.run_devices([[x], [x]])
    assert "1 device, arguments of 2 given" in error.value.what
