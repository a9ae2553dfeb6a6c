"""The ladder of the first contact with a GPU, and the programs of its last rungs, rehearsed."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import heron
from heron.runtime.cuda.executable import CudaExecutable
from tests.gpu import basics, first
from tests.gpu.first import Rung, climb, ladder, rungs
from tests.gpu.reach import PROGRAMS, check, misses
from tests.rehearsal.compiling import rehearsed

#: what is quick to compile; `python -m tests.gpu.first --rehearse` runs all
QUICK = ("branches_not_taken", "donation", "host_step", "library_between_graphs", "pool", "scan")


@pytest.mark.parametrize("name", QUICK)
def test_programs_that_reach_a_part(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in PROGRAMS[name].environment:
        monkeypatch.setenv(variable, value)
    with rehearsed(memory=1 << 30) as recorder:
        wrong, facts = check(name, False, recorder)
    assert not wrong and not facts["refused"]


@pytest.mark.parametrize("full", [False, True], ids=["small", "full"])
@pytest.mark.parametrize("name", [n for n, case in PROGRAMS.items() if case.emitters or case.steps])
def test_programs_have_the_part_that_they_are_for(name: str, full: bool) -> None:
    """At both sizes: what is chosen depends on the size, and a GPU runs the larger one."""
    case = PROGRAMS[name]
    made = heron.compile(case.module(full), "sm_90", replace(case.options, triton="on"))
    assert isinstance(made, CudaExecutable) and misses(case, made) == []


def test_the_basics() -> None:
    with rehearsed():
        for facts in (basics.driver(), basics.loaded_libraries(), basics.copies(), basics.load("")):
            assert facts["wrong"] == []


def test_a_driver_that_lacks_a_function_is_told() -> None:
    with rehearsed(lacks=("cuStreamWaitEvent",)), pytest.raises(Exception, match="cuStreamWaitEvent"):
        basics.driver()


def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> Rung:
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(p for p in sys.path if p)}")
    return Rung(name, name, (), "look there")


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("print('{\"a\": 1}')", None),
        ('print(\'{"wrong": ["output 0"]}\'); raise SystemExit(1)', "output 0"),
        ("import os; os.abort()", "ended with -6"),
        ("raise SystemExit(3)", "ended with 3"),
        ("import time; time.sleep(60)", "not done after 2 s"),
    ],
)
def test_whatever_a_rung_does_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, failed: str | None
) -> None:
    rung = _module(tmp_path, monkeypatch, "a_rung", text)
    facts = climb(rung, 2.0 if "sleep" in text else 60.0)
    assert facts.get("failed") == failed and facts["rung"] == "a_rung"
    json.dumps(facts)


def test_no_rung_above_a_driver_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(first, "climb", lambda rung, limit: {"rung": rung.name, "failed": "no"})
    steps = rungs(True, "")
    assert [r.name for r in ladder(steps, 1.0, 100.0, told.append)] == ["driver"] == [t["rung"] for t in told]


def test_the_time_ends_the_climb(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(first, "climb", lambda rung, limit: {"rung": rung.name})
    steps = [[Rung(name, "m", (), "")] for name in "ab"]
    ladder(steps, 1.0, -1.0, told.append)
    assert [t["failed"] for t in told] == ["not begun: no time is left"] * 2
