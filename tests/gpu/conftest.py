"""The device of these tests: the real one, or a rehearsed one under ``--rehearse``; and a file of what they found.

``--gpu-results FILE`` gets a JSON line for each test as it ends, so that tests that are cut off have lost nothing;
``--gpu-seconds N`` skips what has not begun by then; ``--prepared FOLDER`` has programs compiled before.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from heron.errors import HeronError
from heron.runtime.cuda.driver import driver
from tests.gpu.device import Gpu

_BEGIN = time.monotonic()


class Results:
    """Writes results as they come. With pytest-xdist only the process that gathers them has one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        facts = dict(report.user_properties).get("facts", {})
        said = "" if report.passed else str(report.longrepr)[-4000:]
        line = {"test": report.nodeid, "outcome": report.outcome, "seconds": round(report.duration, 2), "said": said}
        with self.path.open("a") as out:
            out.write(json.dumps({**line, "facts": facts}) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--gpu-results", default=None)
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results(Path(path)))


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Gpu:
    option = request.config.getoption
    rehearse = bool(option("--rehearse", default=False))
    if not rehearse:
        try:
            driver()
        except HeronError as error:
            pytest.skip(f"no GPU: {error.why or error.what}")
    limit = option("--gpu-seconds", default=None)
    if limit is not None and time.monotonic() - _BEGIN > limit:
        pytest.skip("no time is left")

    def tell(name: str, value: object) -> None:
        request.node.user_properties.append((name, value))

    return Gpu(rehearse, str(option("--prepared", default=None) or ""), tell)
