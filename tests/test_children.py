"""Jobs in child processes: results, ends of processes and limits of time are all outcomes."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import children
from tests.children import Lost

ROOT = Path(__file__).parent.parent
#: in a process of its own: the first module to import holds for all later children
_WARM = """
from tests import children, test_children
print(dict(children.results(test_children.job, ["modules", "Ctrl-C"], fresh=True, warm="wave")))
"""


def job(what: str) -> str:
    if what == "end":
        os._exit(3)
    if what == "wait":
        time.sleep(600)
    if what == "Ctrl-C":
        os.kill(os.getpid(), signal.SIGINT)
    if what == "modules":
        return str("wave" in sys.modules)
    return what


def test_outcomes() -> None:
    jobs = ["a", "end", "b"]
    found = dict(children.results(job, jobs))
    assert found == {0: "a", 1: Lost(exit_code=3), 2: "b"}


def test_children_do_not_hear_ctrl_c() -> None:
    assert dict(children.results(job, ["Ctrl-C"] * 2, fresh=True)) == {0: "Ctrl-C", 1: "Ctrl-C"}


def test_children_are_forked_from_a_process_that_has_imported_a_module() -> None:
    run = subprocess.run([sys.executable, "-c", _WARM], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "{0: 'True', 1: 'Ctrl-C'}\n"


def test_a_job_is_stopped_at_its_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0.0, 40.0)
    monkeypatch.setattr(children, "_cpu_seconds", lambda process: next(clock))
    assert dict(children.results(job, ["wait"], seconds=60)) == {0: Lost(seconds=60)}


def test_a_job_that_waits_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_PATIENCE", 0)
    assert dict(children.results(job, ["wait"], seconds=60)) == {0: Lost(seconds=60)}


def test_the_cpu_time_of_a_process_is_known() -> None:
    process = multiprocessing.current_process()
    before = children._cpu_seconds(process)
    begun = time.process_time()
    while time.process_time() < begun + 0.1:
        pass
    assert 0.0 < before < children._cpu_seconds(process)
