"""Runs test files of JAX in processes of their own, on two platforms, and compares."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from heron.errors import HeronError
from heron.pjrt.conformance.log import LOG
from heron.pjrt.device import PLATFORM

#: how often a file is begun again behind a test that ended its process
_RESTARTS = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a test went: passed, failed, skipped or crashed."""

    outcome: str
    error: str = ""


@dataclass(slots=True)
class FileReport:
    """The tests of a file on both platforms, by their names."""

    file: Path
    heron: dict[str, Outcome] = field(default_factory=dict)
    cpu: dict[str, Outcome] = field(default_factory=dict)

    def count(self, outcome: str) -> int:
        """How many tests went so on heron."""
        return sum(o.outcome == outcome for o in self.heron.values())

    @property
    def wanted(self) -> list[str]:
        """Tests JAX's CPU passes."""
        return [t for t, o in self.cpu.items() if o.outcome == "passed"]

    @property
    def missed(self) -> list[str]:
        """Those of them that heron neither passes nor skips."""
        bad = ("failed", "crashed")
        return [t for t in self.wanted if self.heron.get(t, Outcome("crashed")).outcome in bad]


def files_of(path: Path) -> list[Path]:
    """The test files in a folder, or the one file. Raises PJRT023 when there are none."""
    found = [path] if path.suffix == ".py" else sorted(path.rglob("*_test.py"))
    if not found:
        raise _no_tests(f"in '{path}'", "files named *_test.py")
    return found


def _no_tests(where: str, why: str) -> HeronError:
    return HeronError("PJRT023", f"there are no tests {where}", why=why, hint="a checkout's folder `tests`")


def run_file(file: Path, platforms: str, select: str, seconds: float) -> dict[str, Outcome]:
    """The outcomes of a file's tests on the platforms `JAX_PLATFORMS` is set to."""
    found: dict[str, Outcome] = {}
    for _ in range(_RESTARTS + 1):
        crashed = _run_once(file, platforms, select, seconds, found)
        if crashed is None:
            break
        found[crashed] = Outcome("crashed", "the process ended, or took too long")
    return found


def _run_once(file: Path, platforms: str, select: str, seconds: float, found: dict[str, Outcome]) -> str | None:
    """Add the outcomes of tests not in `found`; the test under way when the process ended early, else None."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        path = os.pathsep.join(p for p in sys.path if p)
        env = {**os.environ, "JAX_PLATFORMS": platforms, LOG: str(log), "PYTHONPATH": path}
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "heron.pjrt.conformance.log"]
        command += ["-p", "no:cacheprovider", "--continue-on-collection-errors", str(file)]
        command += ["-k", select] if select else []
        command += [f"--deselect={test}" for test in found]
        try:
            done = subprocess.run(command, cwd=file.parent, env=env, capture_output=True, timeout=seconds, check=False)
            is_over = done.returncode in (0, 1, 2, 5)
        except subprocess.TimeoutExpired:
            is_over = False
        under_way = None
        for line in log.read_text().splitlines() if log.exists() else ():
            entry = json.loads(line)
            under_way = entry["test"] if entry["outcome"] == "started" else None
            if under_way is None:
                found[entry["test"]] = Outcome(entry["outcome"], entry.get("error", ""))
        return None if is_over else under_way


def compare(
    files: Sequence[Path], select: str, jobs: int, seconds: float, told: Callable[[FileReport], None]
) -> list[FileReport]:
    """Run all files on both platforms, `jobs` at a time; `told` hears of each as it is over.

    Raises PJRT023 when no test was found, or `select` fits none.
    """

    def one(file: Path) -> FileReport:
        heron = run_file(file, f"{PLATFORM},cpu", select, seconds)
        report = FileReport(file, heron, run_file(file, "cpu", select, seconds))
        told(report)
        return report

    with ThreadPoolExecutor(jobs) as pool:
        reports = list(pool.map(one, files))
    if not any(r.cpu or r.heron for r in reports):
        names = ", ".join(f.name for f in files)
        raise _no_tests(f"in {names}", f"none whose name fits '{select}'" if select else "pytest finds none")
    return reports


def clusters(reports: Sequence[FileReport]) -> list[tuple[str, list[str]]]:
    """Tests heron misses by the first line of their error without numbers and names, the largest group first."""
    groups: dict[str, list[str]] = {}
    for report in reports:
        for test in report.missed:
            groups.setdefault(_kind(report.heron.get(test, Outcome("crashed")).error), []).append(test)
    order = Counter({kind: len(tests) for kind, tests in groups.items()}).most_common()
    return [(kind, groups[kind]) for kind, _ in order]


def _kind(error: str) -> str:
    """An error's first line, alike for errors of the same kind."""
    first = next((line.strip() for line in error.splitlines() if line.strip()), "no message")
    first = re.sub(r"0x[0-9a-fA-F]+|(?<![A-Za-z])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", "#", first)
    return re.sub(r"'%?[\w.\-<>]+'", "'…'", first)[:160]
