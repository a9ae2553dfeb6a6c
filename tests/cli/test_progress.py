"""Progress of compiles on a terminal, and the trace that an interrupted compile leaves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from heron.cli import progress
from heron.cli.main import INTERRUPTED, invoke
from heron.cli.progress import stages_done
from heron.trace import Trace
from tests.support import counting_loop

SOFTMAX = str(Path(__file__).parent.parent.parent / "examples" / "softmax.small.hlo")


def test_stages_done_counts_up_to_the_latest() -> None:
    trace = Trace()
    assert stages_done(trace) == 0
    for name, done in (("sharded", 0), ("hlo", 0), ("fused", 1), ("buffers", 3), ("llvm", 5)):
        with trace.stage(name):
            assert stages_done(trace) == done


def make_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make stderr a terminal that shows steps at once."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")


def test_a_terminal_shows_stage_and_step(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    make_terminal(monkeypatch)
    assert invoke(["compile", SOFTMAX]) == 0
    shown = capsys.readouterr().err
    assert "compiling jit__lambda for cpu" in shown and "steps)" in shown


def test_a_terminal_shows_the_step_of_the_evaluator(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    make_terminal(monkeypatch)
    loop = tmp_path / "loop.hlo"
    loop.write_text(counting_loop(3000, 64))
    for words in (["eval"], ["extract", "%y", "-o", str(tmp_path / "y")]):
        assert invoke([words[0], str(loop), *words[1:], "--random", "0"]) == 0
        assert "%" in capsys.readouterr().err


def test_beside_json_nothing_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    make_terminal(monkeypatch)
    for words in (["compile", SOFTMAX], ["eval", SOFTMAX, "--random", "0"], ["run", SOFTMAX, "--random", "0"]):
        assert invoke([*words, "--json"]) == 0
        assert not capsys.readouterr().err


def test_elsewhere_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["eval", SOFTMAX, "--random", "0"]) == 0
    assert not capsys.readouterr().err


def test_an_interrupted_compile_leaves_its_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    begin = Trace.begin

    def stop_at_fusion(self: Trace, name: str) -> None:
        begin(self, name)
        if name == "instruction-fusion":
            raise KeyboardInterrupt

    monkeypatch.setattr(Trace, "begin", stop_at_fusion)
    out = tmp_path / "half.trace"
    assert invoke(["compile", SOFTMAX, "-o", str(out)]) == INTERRUPTED
    assert f"is in {out}" in capsys.readouterr().err
    trace = Trace.load(out)
    assert trace.notes[-1].startswith("interrupted at ") and "instruction-fusion" in trace.notes[-1]
    assert [s.name for s in trace.stages] == ["hlo", "fused"]
    assert any(p.name == "algebraic-simplifier" for p in trace.passes)
    monkeypatch.undo()
    assert invoke(["why", str(out), "--about", "exp.1"]) in (0, 2)  # an answer or a plain error, never a traceback
