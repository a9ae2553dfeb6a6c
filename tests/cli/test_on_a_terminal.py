"""Commands on a real terminal: they show where they are, and Ctrl-C ends them and keeps what is done."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from heron.cli.main import INTERRUPTED
from heron.pjrt.conformance.record import Record
from heron.trace import Trace
from tests.support import counting_loop, interruptible

#: the command takes the terminal, so that its Ctrl-C reaches all processes, and shows its place at once
_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from heron.cli import progress
progress._PATIENCE = 0.0
"""
_HERON = "from heron.cli import main; main()"
_PIECES = """
import itertools, time
from heron.cli.series import series
with series("pieces", 1000) as work:
    for n in work.over(range(1000), "piece {}".format):
        time.sleep(600 if n == 3 else 0)
print("rows of", n, "pieces")
sys.exit(work.code(False))
"""
#: seconds until a command that hangs is given up
_LIMIT = 120
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A command that runs on a terminal of its own."""

    def __init__(self, keyboard: int, process: subprocess.Popen[bytes]) -> None:
        self.keyboard, self.process, self.shown = keyboard, process, ""
        self._end = time.monotonic() + _LIMIT

    def read_until(self, words: str | None) -> None:
        """Read the screen up to `words`, or to the command's end."""
        while words is None or words not in self.shown:
            assert time.monotonic() < self._end, self.shown[-1000:]
            if not select.select([self.keyboard], [], [], 1.0)[0]:
                continue
            try:
                part = os.read(self.keyboard, 1 << 16)
            except OSError:  # the command has ended
                part = b""
            self.shown += _CONTROL.sub("", part.decode(errors="replace"))
            if not part:
                assert words is None, f"{words} was never shown:\n{self.shown[-1000:]}"
                return

    def interrupt(self) -> int:
        """Type Ctrl-C; the exit code, as a shell gives it."""
        os.write(self.keyboard, b"\x03")
        self.read_until(None)
        code = self.process.wait()
        return 128 - code if code < 0 else code


@contextmanager
def terminal(code: str, *words: str, folder: Path) -> Iterator[Terminal]:
    """Run Python code with arguments on a terminal."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": "200", "TERM": "xterm", "HERON_CACHE": "0"}
    command = [sys.executable, "-c", _TERMINAL + code, *words]
    with interruptible():
        process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=env, start_new_session=True
        )
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(ours)


def _loop(folder: Path) -> None:
    (folder / "x.hlo").write_text(counting_loop(1 << 30, 64))


def _long(folder: Path) -> None:
    """A program that takes a while to compile, or to spread: products with many weights."""
    lines = ["HloModule long", "ENTRY main {", "  x0 = f32[8,8] parameter(0)"]
    for n in range(1, 1200):
        lines.append(f"  w{n} = f32[8,8] parameter({n})")
        lines.append(f"  d{n} = f32[8,8] dot(x{n - 1}, w{n}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
        lines.append(f"  {'ROOT ' * (n == 1199)}x{n} = f32[8,8] tanh(d{n})")
    (folder / "x.hlo").write_text("\n".join([*lines, "}"]) + "\n")


def _tests(folder: Path) -> None:
    text = "import time\n\ndef test_a():\n    pass\n\ndef test_b():\n    time.sleep(600)\n"
    (folder / "x_test.py").write_text(text)


def _trace_is_there(folder: Path) -> None:
    assert Trace.load(folder / "x.trace").notes[-1].startswith("interrupted at ")


def _reduced_is_there(folder: Path) -> None:
    assert (folder / "x.hlo.reduced" / "program.hlo").exists()


def _record_is_true(folder: Path) -> None:
    """What had passed is recorded, and the test under way is not, although its process was ended."""
    (log,) = folder.glob("results/*.jsonl")
    record = Record.read(log)
    assert {n: o.outcome for n, o in record.outcomes.items()} == {"test_a": "passed"}
    assert record.under_way == "test_b"


def _nothing(folder: Path) -> None:
    del folder


_CASES: dict[str, tuple[str, Callable[[Path], None], str, Callable[[Path], None]]] = {
    "eval": ("eval x.hlo --random 0", _loop, "evaluating counting", _nothing),
    "eval on devices": ("eval x.hlo --random 0 --devices 2x1", _loop, "device 0: %", _nothing),
    "run": ("run x.hlo --random 0", _loop, "running counting on cpu", _nothing),
    "run simulated": ("run x.hlo --random 0 --target sim:sm_90", _loop, "fusion", _nothing),
    "compile": ("compile x.hlo -o x.trace", _long, "steps)", _trace_is_there),
    "fuzz": ("fuzz --jobs 1 --time 1h", _nothing, "searching", _nothing),
    "reduce": ("reduce x.hlo --check 'grep -vqz tanh {}'", _long, "instructions are", _reduced_is_there),
    "shard": ("shard x.hlo --mesh x=2,y=2 --auto", _long, "--auto: program 2", _nothing),
    "jax-tests": ("jax-tests x_test.py --results results", _tests, "1 of 2 tests", _record_is_true),
}


@pytest.mark.parametrize("name", _CASES)
def test_a_command_shows_its_place_and_ends_at_once(name: str, tmp_path: Path) -> None:
    words, prepare, shown, check = _CASES[name]
    prepare(tmp_path)
    with terminal(_HERON, *shlex.split(words), folder=tmp_path) as t:
        t.read_until(shown)
        assert t.interrupt() == INTERRUPTED, t.shown[-1000:]
        assert "Traceback" not in t.shown
    check(tmp_path)


def test_a_series_reports_the_pieces_that_are_done(tmp_path: Path) -> None:
    with terminal(_PIECES, folder=tmp_path) as t:
        t.read_until("3 of 1000  piece 3")
        assert t.interrupt() == INTERRUPTED
        assert "the pieces done so far, of 1000" in t.shown and "rows of 3 pieces" in t.shown
