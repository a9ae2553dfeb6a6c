"""``heron report``: its sections, its figures, a run on this machine and a comparison with XLA."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from heron import peer
from heron.analysis.cost.estimate import Estimate
from heron.cli.main import invoke
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.peer import XlaProgram
from heron.report.sections.kernels import next_limit
from heron.report.subject import largest_difference

ROOT = Path(__file__).parent.parent.parent
SOFTMAX = str(ROOT / "examples" / "softmax.small.hlo")
SECTIONS = ["Summary", "Kernels", "Memory", "Compile time", "Decisions", "Environment", "Again"]


def _headings(text: str) -> list[str]:
    return [line[3:] for line in text.splitlines() if line.startswith("## ")]


def test_a_gpu_is_estimated_and_never_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["report", SOFTMAX, "--target", "sm_90"]) == 0
    text = capsys.readouterr().out
    assert _headings(text) == SECTIONS
    assert "not run; estimated" in text and "Times are estimates" in text
    assert "loop_divide_fusion" in text


def test_the_cpu_runs_and_is_compared(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    out = tmp_path / "page.html"
    assert invoke(["report", SOFTMAX, "--json", "-o", str(out)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["summary"]["run_seconds"] > 0
    assert facts["kernels"][0]["measured_seconds"] > 0
    assert facts["against_xla"]["largest_difference"] < 1e-6
    assert facts["against_xla"]["run_seconds"] > 0
    assert facts["environment"]["versions"]["heron"]
    assert "Against XLA" in out.read_text()


def test_without_jaxlib_the_page_has_no_comparison(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "is_available", lambda: False)
    assert invoke(["report", SOFTMAX]) == 0
    assert _headings(capsys.readouterr().out) == SECTIONS


def test_a_program_that_xla_refuses_is_still_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(module: Module) -> XlaProgram:
        raise HeronError("CLI081", "XLA does not compile 'm'", why="no such custom call")

    monkeypatch.setattr(peer, "is_available", lambda: True)
    monkeypatch.setattr(XlaProgram, "compile", staticmethod(refuse))
    assert invoke(["report", SOFTMAX]) == 0
    text = capsys.readouterr().out
    assert _headings(text) == SECTIONS
    assert "not compared with XLA: XLA does not compile 'm' (no such custom call)" in text


def test_other_endings_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["report", SOFTMAX, "-o", "page.pdf"]) == 2
    assert "CLI034" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("launch", "compute", "memory", "name", "gain"),
    [(1, 2, 8, "compute", 3.0), (1, 8, 0, "launch", 9.0), (4, 1, 2, "memory", 3.0)],
)
def test_the_next_limit(launch: float, compute: float, memory: float, name: str, gain: float) -> None:
    assert next_limit(Estimate(launch, compute, memory, 0.0)) == (name, gain)


def test_a_step_with_one_limit_has_no_next_one() -> None:
    assert next_limit(Estimate(0.0, 0.0, 5.0, 0.0)) == ("none", float("inf"))


@pytest.mark.parametrize(
    ("ours", "theirs", "difference"),
    [
        ([1.0, np.nan], [1.0, np.nan], 0.0),
        ([np.inf], [np.inf], 0.0),
        ([np.inf], [-np.inf], np.inf),
        ([1.0], [np.nan], np.inf),
        ([200.0], [100.0], 1.0),
        ([0.25], [0.5], 0.25),
    ],
)
def test_the_largest_difference(ours: list[float], theirs: list[float], difference: float) -> None:
    assert largest_difference([np.float32(ours)], [np.float32(theirs)]) == difference


def test_other_shapes_differ() -> None:
    assert largest_difference([np.zeros(2)], [np.zeros(3)]) == np.inf
    assert largest_difference([np.zeros(2)], []) == np.inf
