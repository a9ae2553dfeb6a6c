"""Runs test files of JAX in processes of their own, on two platforms, and compares."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import asdict, field
from pathlib import Path

from heron.errors import HeronError
from heron.pjrt.conformance import together
from heron.pjrt.conformance.record import CRASHED, TASK, Outcome, Record, Task, write
from heron.pjrt.device import PLATFORM
from heron.records import dataclass

#: how often a file is begun again behind a test that ended its process
_RESTARTS = 20
#: lines of the stacks of a process that took too long
_FRAMES = 60
#: seconds between looks at a process
_LOOK = 0.5
_ABSENT = Outcome("absent", "absent: the file has no such test on heron")


@dataclass(frozen=True, slots=True)
class Settings:
    """The selection of tests, and the way to run them.

    ``select``: pytest's ``-k``. ``every``: a sample, one test of so many. ``seconds``: for one test. ``devices``: how
    many there are, 0 for as many as each file asks for on the CPU. ``as_cpu``: heron goes by the name "cpu". ``x64``:
    JAX has 64-bit types. ``retry``: tests heron missed in an earlier run are run again. ``processes``: so many run each
    file together, started by mpiexec. ``brief``: JAX's CPU runs those tests alone that heron does not pass.
    """

    select: str = ""
    every: int = 1
    seconds: float = 600.0
    devices: int = 0
    as_cpu: bool = False
    x64: bool = False
    retry: bool = False
    processes: int = 1
    brief: bool = False

    def environment(self, heron: bool) -> dict[str, str]:
        """Of a process for heron, or for JAX's CPU."""
        found = {"JAX_PLATFORMS": f"{PLATFORM},cpu" if heron and not self.as_cpu else "cpu"}
        found["HERON_AS"] = "cpu" if heron and self.as_cpu else ""
        if self.devices:
            found |= {"JAX_NUM_CPU_DEVICES": str(self.devices), "HERON_DEVICES": str(self.devices)}
        if self.x64:
            found["JAX_ENABLE_X64"] = "1"
        return found

    def name(self, file: Path, heron: bool) -> str:
        """Of the record of a file: what is recorded holds for these settings alone."""
        platform = ("heron_as_cpu" if self.as_cpu else "heron") if heron else "cpu"
        more = ["x64"] * self.x64 + [f"{self.devices}_devices"] * bool(self.devices)
        more += [f"{self.processes}_processes"] * (self.processes > 1)
        return ".".join([file.stem, platform, *more, "jsonl"])


@dataclass(slots=True)
class FileReport:
    """The tests of a file on both platforms; in a `brief` run the CPU is taken to pass what heron passes."""

    file: Path
    heron: Record = field(default_factory=Record)
    cpu: Record = field(default_factory=Record)
    brief: bool = False

    def count(self, outcome: str) -> int:
        """The number of tests with that outcome on heron."""
        return sum(self.heron.outcomes[t].outcome == outcome for t in self.heron.selected if t in self.heron.outcomes)

    @property
    def wanted(self) -> list[str]:
        """Tests JAX's CPU passes."""
        if self.brief:
            either = self.cpu.passed | self.heron.passed
            return [t for t in dict.fromkeys([*self.heron.selected, *self.cpu.selected]) if t in either]
        return [t for t in self.cpu.selected if t in self.cpu.passed]

    @property
    def missed(self) -> dict[str, Outcome]:
        """The tests of these that heron does not pass."""
        outcomes = {t: self.heron.outcomes.get(t, self._not_run) for t in self.wanted}
        return {t: o for t, o in outcomes.items() if o.outcome != "passed"}

    @property
    def _not_run(self) -> Outcome:
        """The outcome of a test that heron's record does not have."""
        whole = next((o for t, o in self.heron.outcomes.items() if t.endswith(self.file.name)), None)
        return _ABSENT if whole is None else Outcome("not run", f"not run, the file did not load: {whole.error}")


def files_of(path: Path) -> list[Path]:
    """The test files in a folder, or the one file. Raises PJRT023 when there are none."""
    found = [path] if path.suffix == ".py" else sorted(path.rglob("*_test.py"))
    if not found:
        raise _no_tests(f"in '{path}'", "files named *_test.py")
    return found


def _no_tests(where: str, why: str, hint: str = "a checkout's folder `tests`") -> HeronError:
    return HeronError("PJRT023", f"there are no tests {where}", why=why, hint=hint)


@dataclass(slots=True)
class Watch:
    """The view from outside on files that run in other threads.

    ``at``: told of a file, whether it runs on heron, and its record so far, every moment; None: nobody looks.
    ``stopped``: set to end all processes; what they were at is not recorded.
    """

    at: Callable[[Path, bool, Record], None] | None = None
    stopped: threading.Event = field(default_factory=threading.Event)


class Stopped(Exception):
    """A file ended early, because `Watch.stopped` is set."""


def run_file(file: Path, settings: Settings, heron: bool, folder: Path, watch: Watch | None = None) -> Record:
    """A file's tests on heron or on JAX's CPU; those recorded in the folder are not run again. Raises `Stopped`."""
    log, watch = folder / settings.name(file, heron), watch or Watch()
    for _ in range(_RESTARTS + 1):
        _run_once(file, settings, heron, log, watch)
        record = Record.read(log)
        if record.under_way is None:
            break
        seconds = settings.seconds
        write(log, test=record.under_way, outcome=CRASHED, error=_why(log), seconds=seconds)
        if record.under_way not in record.selected:  # the file itself
            break
    return Record.read(log)


def _why(log: Path) -> str:
    """The reason why a process ended early: its place when its time was over."""
    stacks = [s for s in sorted(log.parent.glob(f"{log.name}*.stack")) if s.stat().st_size]
    lines = stacks[0].read_text().splitlines() if stacks else []
    shown = [line for line in lines if not re.search(r"/(_pytest|pluggy)/|frozen runpy", line)]
    return "\n".join(["took too long", *shown[:_FRAMES]]) if lines else "the process ended"


def _run_once(file: Path, settings: Settings, heron: bool, log: Path, watch: Watch) -> None:
    processes = settings.processes
    address = together.free_address() if processes > 1 else ""
    passed = str(log.with_name(settings.name(file, True))) if settings.brief and not heron else ""
    task = Task(str(log), settings.every, settings.seconds, settings.devices, processes, address, passed)
    path = os.pathsep.join(p for p in sys.path if p)
    env = {**os.environ, **settings.environment(heron), TASK: json.dumps(asdict(task)), "PYTHONPATH": path}
    command = [sys.executable, "-m", "pytest", str(file), "-q", "--tb=short", "-p", "heron.pjrt.conformance.log"]
    command += ["-p", "no:cacheprovider", "--continue-on-collection-errors"]
    command += ["-k", settings.select] if settings.select else []
    command = together.started(command, processes)
    # a session of its own: Ctrl-C reaches this process alone, which ends the others without a false record
    nowhere = subprocess.DEVNULL
    child = subprocess.Popen(command, cwd=file.parent, env=env, stdout=nowhere, stderr=nowhere, start_new_session=True)
    while child.poll() is None:
        if watch.stopped.is_set():
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise Stopped
        if watch.at is not None:
            watch.at(file, heron, Record.read(log))
        with suppress(subprocess.TimeoutExpired):
            child.wait(_LOOK)
    if processes > 1:
        together.merge([Path(task.own_log(n)) for n in range(processes)], log)


def compare(
    files: Sequence[Path],
    settings: Settings,
    jobs: int,
    told: Callable[[FileReport], None],
    results: Path | None = None,
    at: Callable[[Path, bool, Record], None] | None = None,
) -> list[FileReport]:
    """Run all files on both platforms, `jobs` at a time; `told` hears of each as it is over.

    ``results``: the folder of records, which an earlier run may have filled. ``at``: as of `Watch`. After Ctrl-C the
    processes are ended, and no outcome is recorded for what they were at. Raises PJRT023 when no test was found, or
    `settings.select` fits none.
    """

    watch = Watch(at)

    def one(file: Path, folder: Path) -> FileReport:
        if watch.stopped.is_set():
            raise Stopped
        if settings.retry:
            _forget_missed(file, settings, folder)
        order = (True, False) if settings.brief else (False, True)
        found = {heron: run_file(file, settings, heron, folder, watch) for heron in order}
        report = FileReport(file, found[True], found[False], settings.brief)
        told(report)
        return report

    if results is not None:
        results.mkdir(parents=True, exist_ok=True)
    with nullcontext(results) if results else tempfile.TemporaryDirectory() as where, ThreadPoolExecutor(jobs) as pool:
        try:
            reports = list(pool.map(lambda file: one(file, Path(str(where)).resolve()), files))
        except BaseException:
            watch.stopped.set()
            raise
    if not any(r.cpu.outcomes or r.heron.outcomes for r in reports):
        names = ", ".join(f.name for f in files)
        why = f"none whose name fits '{settings.select}'" if settings.select else "pytest finds none"
        if settings.every > 1:
            raise _no_tests(f"in {names}", f"{why} in a sample of one in {settings.every}", "a smaller --every")
        raise _no_tests(f"in {names}", why)
    return reports


def _forget_missed(file: Path, settings: Settings, folder: Path) -> None:
    """Take what heron missed out of its record."""
    log = folder / settings.name(file, True)
    record = Record.read(log)
    log.unlink(missing_ok=True)
    for test, o in record.outcomes.items():
        if o.outcome == "passed":
            write(log, test=test, outcome=o.outcome, error=o.error, seconds=o.seconds)


def clusters(reports: Sequence[FileReport]) -> list[tuple[str, list[str]]]:
    """Tests heron misses by the first line of their error without numbers and names, the largest group first."""
    groups: dict[str, list[str]] = {}
    for report in reports:
        for test, outcome in report.missed.items():
            groups.setdefault(_kind(outcome.error), []).append(f"{report.file.name}::{test}")
    order = Counter({kind: len(tests) for kind, tests in groups.items()}).most_common()
    return [(kind, groups[kind]) for kind, _ in order]


def _kind(error: str) -> str:
    """An error's first line, alike for errors of the same kind."""
    first = next((line.strip() for line in error.splitlines() if line.strip()), "no message")
    first = re.sub(r"0x[0-9a-fA-F]+|(?<![A-Za-z])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", "#", first)
    return re.sub(r"'%?[\w.\-<>]+'", "'…'", first)[:160]
