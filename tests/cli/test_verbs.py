"""The verbs, run in this process: what they print, as text and as JSON, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from heron.trace import Trace
from tests.support import golden_values, heron, program, tolerances

SCALE = """HloModule scale

ENTRY main {
  x = f32[8]{0} parameter(0)
  two = f32[] constant(2)
  twos = f32[8]{0} broadcast(two), dimensions={}
  ROOT y = f32[8]{0} multiply(x, twos)
}
"""


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    path = tmp_path / "scale.hlo"
    path.write_text(SCALE)
    return path


# -- eval and run ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("verb", ["eval", "run"])
def test_golden_values_agree(verb: str) -> None:
    result = heron(verb, program("softmax"), "--expect", golden_values("softmax"))
    assert result.code == 0, result.err
    assert "all 1 outputs agree" in result.out
    assert "ULP" in result.out


def test_values_that_are_noise_need_a_tolerance() -> None:
    arguments = ("eval", program("gpt2_train_step"), "--expect", golden_values("gpt2_train_step"))
    assert heron(*arguments, *tolerances("gpt2_train_step")).code == 0


@pytest.mark.parametrize("verb", ["eval", "run"])
def test_other_values_are_exit_code_1(verb: str, scale: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", np.arange(8, dtype=np.float32))
    wrong = 2 * np.arange(8, dtype=np.float32)
    wrong[5] = 11
    np.savez(tmp_path / "out.npz", wrong)
    arguments = ("--inputs", tmp_path / "in.npz", "--expect", tmp_path / "out.npz")
    result = heron(verb, scale, *arguments)
    assert result.code == 1
    assert "1 DIFFER" in result.out and "[5]" in result.out
    assert "1 of 1 outputs differ" in result.out
    document = json.loads(heron(verb, scale, *arguments, "--json").out)
    assert document["expect"]["same"] is False
    assert document["expect"]["outputs"][0]["index"] == [5]
    assert heron(verb, scale, *arguments, "--atol", "2").code == 0


def test_run_on_the_simulator() -> None:
    result = heron("run", program("softmax"), "--target", "sim:sm_90", "--expect", golden_values("softmax"), "--json")
    document = json.loads(result.out)
    assert (result.code, document["target"], document["expect"]["same"]) == (0, "sim:sm_90", True)
    assert document["compile_seconds"] > 0 and document["run_seconds"] > 0


def test_eval_from_standard_input_at_random() -> None:
    first, again = (heron("eval", "-", "--random", 0, "--json", stdin=SCALE) for _ in range(2))
    assert first.code == 0
    outputs = [json.loads(r.out)["outputs"] for r in (first, again)]
    assert outputs[0] == outputs[1]
    assert outputs[0][0]["shape"] == [8] and outputs[0][0]["dtype"] == "float32"


def test_save_and_feed_back(scale: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.npz"
    assert heron("eval", scale, "--random", 7, "--save", saved).code == 0
    assert heron("run", scale, "--expect", saved).code == 0


def test_a_program_without_parameters_needs_no_inputs() -> None:
    text = "HloModule m\n\nENTRY e {\n  ROOT c = f32[2]{0} constant({1, inf})\n}\n"
    result = heron("eval", "-", "--json", stdin=text)
    assert result.code == 0
    assert json.loads(result.out)["outputs"][0]["not_finite"] == 1


def test_values_that_are_no_numbers_are_shown(tmp_path: Path) -> None:
    text = "HloModule m\n\nENTRY e {\n  x = f32[3]{0} parameter(0)\n  ROOT y = f32[3]{0} sqrt(x)\n}\n"
    np.savez(tmp_path / "in.npz", np.array([-1, np.inf, 4], np.float32))
    np.savez(tmp_path / "out.npz", np.array([np.inf, np.inf, 2], np.float32))
    result = heron("eval", "-", "--inputs", tmp_path / "in.npz", stdin=text)
    assert result.code == 0 and "nan inf 2" in result.out
    result = heron("eval", "-", "--inputs", tmp_path / "in.npz", "--expect", tmp_path / "out.npz", stdin=text)
    assert result.code == 1 and "1 DIFFER" in result.out
    arguments = ("--inputs", tmp_path / "in.npz", "--expect", tmp_path / "out.npz", "--json")
    assert json.loads(heron("eval", "-", *arguments, stdin=text).out)["expect"]["outputs"][0]["max_abs"] == "inf"


# -- compile ---------------------------------------------------------------------------------------------------------
def test_compile_summary_and_trace(scale: Path, tmp_path: Path) -> None:
    result = heron("compile", scale, "-o", tmp_path / "x.trace")
    assert result.code == 0, result.err
    assert "scale for cpu: 1 kernel launches" in result.out
    assert "temp" in result.out and "stage" in result.out
    assert Trace.load(tmp_path / "x.trace").summary() == result.out


def test_compile_json_is_the_trace(scale: Path) -> None:
    document = json.loads(heron("compile", scale, "--json").out)
    assert document["format"] == "heron-trace"
    assert document["kernels"][0]["emitter"]


@pytest.mark.parametrize("stage", ["hlo", "fused", "scheduled", "buffers", "mlir", "llvm", "asm"])
def test_compile_to_a_stage_of_the_cpu(scale: Path, stage: str) -> None:
    result = heron("compile", scale, "--to", stage)
    assert result.code == 0, result.err
    assert result.out.strip()


def test_compile_to_ptx(scale: Path, tmp_path: Path) -> None:
    result = heron("compile", scale, "--target", "sm_90", "--to", "ptx", "-o", tmp_path / "x.ptx")
    assert (result.code, result.out) == (0, ""), result.err
    assert ".target sm_90" in (tmp_path / "x.ptx").read_text()


def test_stages_are_those_of_the_compiler() -> None:
    from heron.backends.compiler import STAGES as ours
    from heron.cli.verbs.compile import STAGES

    assert STAGES == ours


# -- fmt, opt --------------------------------------------------------------------------------------------------------
def test_fmt_is_stable(scale: Path) -> None:
    once = heron("fmt", scale)
    assert once.code == 0, once.err
    assert heron("fmt", "-", stdin=once.out).out == once.out


def test_fmt_in_place_and_json(scale: Path) -> None:
    text = heron("fmt", scale).out
    assert heron("fmt", scale, "-o", scale).out == ""
    assert scale.read_text() == text
    document = json.loads(heron("fmt", scale, "--json").out)
    assert (document["module"], document["instructions"], document["text"].strip()) == ("scale", 4, text.strip())


def test_opt_runs_passes(scale: Path) -> None:
    text = SCALE.replace("  ROOT", "  dead = f32[8]{0} add(x, x)\n  ROOT")
    result = heron("opt", "-", "-p", "dce,cse", stdin=text)
    assert result.code == 0, result.err
    assert "dead" not in result.out and "multiply" in result.out
    document = json.loads(heron("opt", "-", "-p", "dce", "--json", stdin=text).out)
    assert document["passes"][0]["name"] == "dce" and document["passes"][0]["changed"]


def test_opt_pipeline_with_values_checked() -> None:
    result = heron("opt", program("softmax"), "--pipeline", _a_pipeline(), "-O", "check=values")
    assert result.code == 0, result.err
    assert "ENTRY" in result.out


def _a_pipeline() -> str:
    names = json.loads(heron("passes", "--json").out)["pipelines"]
    assert names
    return next((n for n in names if "cpu" in n), names[0])


# -- lists -----------------------------------------------------------------------------------------------------------
def test_targets() -> None:
    assert "sm_90" in heron("targets").out
    assert len(json.loads(heron("targets", "--json").out)) > 10
    assert "132" in heron("targets", "sm_90").out
    assert json.loads(heron("targets", "sim:sm_90", "--json").out)["sim"] is True


def test_ops() -> None:
    assert "dynamic-update-slice" in heron("ops").out
    assert {"clamp", "dot"} <= {op["name"] for op in json.loads(heron("ops", "--json").out)}
    assert "lhs" in heron("ops", "dot").out or "operand" in heron("ops", "dot").out


def test_passes() -> None:
    assert "dce" in heron("passes").out
    listed = json.loads(heron("passes", "--json").out)
    assert all(p["doc"] for p in listed["passes"])
    assert "dce" in heron("passes", "dce").out
    for name in listed["pipelines"]:
        assert heron("passes", name).code == 0


# -- help ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("verb", ["run", "eval", "compile", "opt", "fmt", "passes", "ops", "targets"])
def test_every_verb_has_help_with_examples(verb: str) -> None:
    result = heron(verb, "--help")
    assert result.code == 0
    assert "Examples:" in result.out and f"heron {verb}" in result.out and "--json" in result.out


def test_no_arguments_give_help() -> None:
    result = heron()
    assert result.code == 2
    assert "Commands:" in result.out
