"""Options and fixtures all tests share."""

from __future__ import annotations

import difflib
import gc
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

import hypothesis
import pytest

from tests import quick_verifier

# no property test may fail because the machine is busy, or today but not tomorrow: the examples of a test stay the same
# until it is changed. `python -m tests.fuzz`, `tests.passes.search` and `tests.conformance` look further
hypothesis.settings.register_profile(
    "heron",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=False,
)
hypothesis.settings.load_profile("heron")

# a developer's own settings must not change what tests see
for _name in [n for n in os.environ if n.startswith("HERON_")]:
    del os.environ[_name]


#: objects from one walk of the cycle collector through new ones to the next; tests from one through all to the next
_NEW, _TESTS = 10_000, 500
_done = count(1)


def pytest_configure() -> None:
    """Old objects are collected by `pytest_runtest_teardown` alone: tests, modules and what they keep are millions, and
    walking through them whenever some were added took a quarter of the suite's time. Equal ops are verified once."""
    gc.set_threshold(_NEW, 10, 1 << 30)
    quick_verifier.use()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    if next(_done) % _TESTS == 1:
        gc.collect()
        gc.freeze()  # what is alive now stays for long


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write golden files instead of comparing with them")
    parser.addoption("--rehearse", action="store_true", help="tests/gpu on a driver that records, with no GPU")
    parser.addoption("--prepared", metavar="FOLDER", help="tests/gpu with what benchmarks.gpu.prepare put there")
    parser.addoption("--gpu-results", metavar="FILE", help="tests/gpu: a JSON line for each test, as it ends")
    parser.addoption("--gpu-seconds", metavar="N", type=float, help="tests/gpu: begin nothing later than that")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """``golden(path, text)``: `text` is what the file at `path` holds; ``--bless`` makes it so."""
    bless = request.config.getoption("--bless")

    def check(path: Path, text: str) -> None:
        if bless:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        wanted = path.read_text() if path.exists() else ""
        if text != wanted:
            diff = difflib.unified_diff(wanted.splitlines(), text.splitlines(), str(path), "now", lineterm="")
            command = f"python -m pytest {request.node.nodeid} --bless"
            pytest.fail("\n".join([*diff, "", f"if this is right: {command}"]), pytrace=False)

    return check
