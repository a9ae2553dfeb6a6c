"""A plugin of pytest that writes each test's outcome as a line of JSON when it is known, so that none is lost when the
process ends early; it also makes the platform heron known where the package's entry point is not installed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from heron.pjrt.device import PLATFORM

#: the file lines are written to
LOG = "HERON_JAX_TESTS_LOG"
_SHOWN = 2000


def pytest_configure(config: Any) -> None:
    """Before any test file is imported."""
    del config
    if PLATFORM in os.environ.get("JAX_PLATFORMS", "").split(","):
        from heron.pjrt import jax_plugin

        jax_plugin.initialize()
        _test_like("cpu")


def _test_like(platform: str) -> None:
    """Let JAX's tests take heron for a platform that behaves like another one: they know no "heron", and would leave
    out what is meant for the CPU. The device under test stays heron."""
    try:
        from jax._src import test_util
    except ImportError:
        return  # the tests cannot be imported either, and say what is missing
    own = test_util._get_device_tags

    def tags() -> set[str]:
        found = own()
        return {*found, platform} if PLATFORM in found else found

    test_util._get_device_tags = tags


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
    if LOG not in os.environ:
        return  # used by hand, for a plain run of pytest
    with Path(os.environ[LOG]).open("a") as log:
        log.write(json.dumps(entry) + "\n")
