"""A plugin of pytest that writes each test's outcome as a line of JSON when it is known, so that none is lost when the
process ends early; it also makes the platform heron known where the package's entry point is not installed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

#: the file lines are written to
LOG = "HERON_JAX_TESTS_LOG"
_SHOWN = 2000


def pytest_configure(config: Any) -> None:
    """Before any test file is imported."""
    del config
    if "heron" in os.environ.get("JAX_PLATFORMS", ""):
        from heron.pjrt import jax_plugin

        jax_plugin.initialize()
        _test_as("cpu")


def _test_as(platform: str) -> None:
    """Let JAX's tests take the devices under test for another platform's, whose behaviour heron promises: they know no
    platform "heron", and would leave out what is meant for the CPU. Arrays and programs are heron's all the same."""
    import jax

    try:
        import jax._src.test_util  # declares the option
    except ImportError:
        return  # the tests cannot be imported either, and say what is missing
    jax.config.update("jax_test_dut", platform)


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    """A test begins."""
    del location
    _write({"test": nodeid, "outcome": "started"})


def pytest_runtest_logreport(report: Any) -> None:
    """A phase of a test is over: what counts is the call, or a setup that did not pass."""
    if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
        _write({"test": report.nodeid, "outcome": report.outcome, "error": _error(report)})


def pytest_collectreport(report: Any) -> None:
    """A file that cannot be imported counts as one test that fails."""
    if report.outcome == "failed":
        _write({"test": report.nodeid, "outcome": "failed", "error": _error(report)})


def _error(report: Any) -> str:
    if report.outcome != "failed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash is not None else str(report.longrepr))[:_SHOWN]


def _write(entry: dict[str, str]) -> None:
    with Path(os.environ[LOG]).open("a") as log:
        log.write(json.dumps(entry) + "\n")
