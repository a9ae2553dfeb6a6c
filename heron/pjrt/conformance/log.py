"""A plugin of pytest for JAX's tests: it brings the platform heron up where the package's entry point is not installed,
runs the tests a `Task` names, records each outcome when it is known, and ends the process when one takes too long."""

from __future__ import annotations

import faulthandler
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heron.pjrt.conformance import together
from heron.pjrt.conformance.record import STARTED, TASK, Record, Task, computed, write
from heron.pjrt.device import PLATFORM

_SHOWN = 2000
_task: Task | None = None
#: the record of this process
_own = ""
#: what the process had computed when the test under way began
_began = 0.0


def pytest_configure(config: Any) -> None:
    """Before any test file is imported."""
    global _task, _own
    if TASK in os.environ:
        _task = Task(**json.loads(os.environ[TASK]))
        _own = _task.own_log(together.rank())
        _watch()
        write(_own, test=str(config.args[0]), outcome=STARTED, process=computed())


def _watch() -> None:
    """End the process when what begins now takes too long, whoever holds Python's lock."""
    assert _task is not None
    with open(f"{_own}.stack", "w") as stack:
        faulthandler.dump_traceback_later(_task.seconds, exit=True, file=os.dup(stack.fileno()))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_make_collect_report(collector: Any) -> Iterator[Any]:
    """Prepare JAX when a file is about to be imported: JAX's test utilities keep the output stream they find."""
    if isinstance(collector, pytest.File):
        _prepare()
    return (yield)


def _prepare() -> None:
    try:
        from jax._src import test_util
    except ImportError:
        return  # the tests cannot be imported either, and say what is missing
    is_platform = PLATFORM in os.environ.get("JAX_PLATFORMS", "").split(",")
    if is_platform or os.environ.get("HERON_AS"):
        from heron.pjrt import jax_plugin

        jax_plugin.initialize()
    if is_platform:
        _test_like("cpu", test_util)
    if _task is not None and _task.devices:
        test_util.request_cpu_devices = lambda _: None
    if _task is not None and _task.processes > 1:
        together.join(_task)


def _test_like(platform: str, test_util: Any) -> None:
    """Let JAX's tests take heron for a platform that behaves like another one: they know no "heron", and would leave
    out what is meant for the CPU. The device under test stays heron."""
    own = test_util._get_device_tags
    if hasattr(own, "of_heron"):
        return

    def tags() -> set[str]:
        found = own()
        return {*found, platform} if PLATFORM in found else found

    tags.of_heron = True  # type: ignore[attr-defined]
    test_util._get_device_tags = tags


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out what is not in the sample, or was run before."""
    if _task is None:
        return
    passed = Record.read(Path(_task.unless_passed)).passed if _task.unless_passed else set()
    chosen = [i for i in items if _task.takes(_name(i.nodeid)) and _name(i.nodeid) not in passed]
    done = Record.read(_log()).outcomes
    write(_own, selected=[_name(i.nodeid) for i in chosen], process=computed())
    config.hook.pytest_deselected(items=[i for i in items if i not in chosen])
    items[:] = [i for i in chosen if _name(i.nodeid) not in done]


def _log() -> Path:
    assert _task is not None
    return Path(_task.log)


def _name(nodeid: str) -> str:
    """The test without its file."""
    return nodeid.partition("::")[2] or nodeid


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    """A test begins."""
    del location
    global _began
    if _task is not None:
        _watch()
        _began = computed()
        write(_own, test=_name(nodeid), outcome=STARTED, process=_began)


def pytest_runtest_logreport(report: Any) -> None:
    """A phase of a test is over: what counts is the call, or a setup that did not pass."""
    if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
        _tell(_name(report.nodeid), report)


def pytest_collectreport(report: Any) -> None:
    """A file that cannot be imported counts as one test that fails."""
    if report.outcome == "failed":
        _tell(_name(report.nodeid), report)


def _tell(test: str, report: Any) -> None:
    if _task is None:
        return  # used by hand, for a plain run of pytest
    now = computed()
    seconds = round(now - _began, 3)
    write(_own, test=test, outcome=report.outcome, error=_error(report), seconds=seconds, process=now)


def pytest_sessionfinish(session: Any) -> None:
    """Give the threads and exit handlers that run from here on a time limit of their own."""
    if _task is not None:
        _watch()
        if _task.processes > 1:
            session.exitstatus = 0  # mpiexec would end the others, which may not be as far


def _error(report: Any) -> str:
    if report.outcome == "skipped":
        return f"skipped: {report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr}"[:_SHOWN]
    if report.outcome != "failed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash is not None else str(report.longrepr))[:_SHOWN]
