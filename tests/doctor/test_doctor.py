"""``heron doctor``: states of parts, the exit code, the self-test; ``heron completion``."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from heron.cli.main import invoke
from heron.doctor import packages, trials
from heron.doctor.finding import Finding, Missing, find
from heron.errors import HeronError


def _raise(error: Exception) -> str:
    raise error


@pytest.mark.parametrize(
    ("check", "state", "found"),
    [
        (lambda: "1.0", "ok", "1.0"),
        (lambda: _raise(Missing("not installed")), "missing", "not installed"),
        (lambda: _raise(OSError("no\n such file")), "broken", "OSError: no such file"),
        (lambda: _raise(HeronError("RUN030", "no GPU")), "broken", "no GPU"),
    ],
)
def test_a_check_makes_a_finding_whatever_it_does(check: object, state: str, found: str) -> None:
    made = find("part", check, "use", "cure")  # type: ignore[arg-type]
    assert (made.state, made.found) == (state, found)
    assert made.cure == ("" if state == "ok" else "cure")


def test_a_working_installation(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["doctor", "--no-trial", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    states = {f["part"]: f["state"] for f in document["findings"]}
    assert document["ok"] and states["numpy"] == "ok" and states["Python"] == "ok"


def test_a_missing_need_is_exit_code_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "_NEEDED", {"no_such_package_of_heron": "nothing"})
    assert invoke(["doctor", "--no-trial"]) == 1
    text = capsys.readouterr().out
    assert "heron does not work here: no_such_package_of_heron is missing" in text
    assert "for nothing: pip install" in text


def test_the_self_test_runs_on_both_targets() -> None:
    found: dict[str, Finding] = {f.part: f for f in trials.trials()}
    assert found["compile and run, cpu"].state == "ok", found
    assert found["compile and run, sim:sm_90"].state == "ok", found


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = trials.evaluate
    monkeypatch.setattr(trials, "evaluate", lambda m, x: (evaluate(m, x)[0] * 1.01,))
    monkeypatch.setattr(trials.peer, "is_available", lambda: False)
    found = next(trials.trials())
    assert found.state == "broken" and "Not equal to tolerance" in found.found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert invoke(["completion", shell]) == 0
    assert "_HERON_COMPLETE" in capsys.readouterr().out


def test_commands_are_completed() -> None:
    words = {"_HERON_COMPLETE": "bash_complete", "COMP_WORDS": "heron comp", "COMP_CWORD": "1"}
    code = "import sys; sys.argv = ['heron']; from heron.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **words}, capture_output=True, text=True)
    assert done.stdout.split() == ["plain,compile", "plain,completion"]
