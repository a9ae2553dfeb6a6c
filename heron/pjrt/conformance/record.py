"""The record of a test file on one platform: lines of JSON, written as things happen, so that none is lost when the
process ends early, and a run goes on where it stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any
from zlib import crc32

from heron.records import dataclass

#: the environment variable with the `Task` of a process that runs tests
TASK = "HERON_JAX_TESTS"
STARTED, CRASHED = "started", "crashed"


@dataclass(frozen=True, slots=True)
class Task:
    """The instructions for a process that runs tests.

    ``log``: the record it writes. ``every``: one test of so many, by a hash of its name. ``seconds``: for one test.
    ``devices``: how many the CPU is to have, whatever a file asks for; 0: what it asks for. ``processes``: how many run
    the tests together; 1: this one alone. ``address``: where they meet. ``unless_passed``: a record; tests that it says
    have passed are left out.
    """

    log: str
    every: int = 1
    seconds: float = 600.0
    devices: int = 0
    processes: int = 1
    address: str = ""
    unless_passed: str = ""

    def own_log(self, process: int) -> str:
        """The record that a process writes, if there are several: those of all make up the file's."""
        return f"{self.log}.{process}" if self.processes > 1 else self.log

    def takes(self, name: str) -> bool:
        """Whether the test of that name is in the sample: the same in every process, and on every platform.

        >>> sum(Task("", every=4).takes(f"test_{n}") for n in range(1000))
        251
        """
        return crc32(name.encode()) % self.every == 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a test (passed, failed, skipped or crashed), and its seconds of CPU time."""

    outcome: str
    error: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class Record:
    """The known outcomes of a file's tests on a platform, by test name.

    ``selected``: tests of the last run. ``under_way``: the test, or the file, that was begun and not ended.
    ``seconds``: what all its processes computed.
    """

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    selected: list[str] = field(default_factory=list)
    under_way: str | None = None
    seconds: float = 0.0

    @property
    def passed(self) -> set[str]:
        """The tests that have passed."""
        return {test for test, o in self.outcomes.items() if o.outcome == "passed"}

    @staticmethod
    def read(log: Path) -> Record:
        """From the lines of a file, or of none."""
        found = Record()
        last = 0.0
        for entry in _entries(log):
            if "selected" in entry:
                found.selected, found.under_way = entry["selected"], None
            elif entry["outcome"] == STARTED:
                found.under_way = entry["test"]
            else:
                found.under_way = None
                found.outcomes[entry["test"]] = Outcome(entry["outcome"], entry["error"], entry["seconds"])
            so_far = entry.get("process", 0.0)
            found.seconds += so_far - last if so_far >= last else so_far
            last = so_far
        return found


def _entries(log: Path) -> Iterator[dict[str, Any]]:
    for line in log.read_text().splitlines() if log.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            continue  # the process ended while it wrote


def write(log: str | Path, **entry: Any) -> None:
    """Add a line."""
    with Path(log).open("a") as file:
        file.write(json.dumps(entry) + "\n")


def computed() -> float:
    """CPU seconds of this process so far, over all threads."""
    return round(time.process_time(), 3)
