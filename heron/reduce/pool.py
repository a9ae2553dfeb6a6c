"""Checks in child processes, which may end or hang: that is an outcome like any other, and the next check goes on.

Children stay: a check costs no start of Python. One that ended is replaced by a fork of a process that has imported the
compiler already.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from types import TracebackType
from typing import Any

import numpy as np

from heron.backends import watchdog
from heron.errors import HeronError
from heron.hlo.text import parse
from heron.records import dataclass
from heron.reduce.case import Case
from heron.reduce.checks import LOST, Check, Finding

#: what is said of a program that is stopped after its time
NO_END = "no end in time"


@dataclass
class _Child:
    process: ForkServerProcess
    pipe: Any  # a Connection; its type has another name on each platform
    job: int | None = None
    begun: float = 0.0


class Pool:
    """Up to `jobs` processes that run `check`, each after loading the files ``loads`` of passes and rules.

    Args:
        seconds: how long a check may take; None: as long as it takes.
    """

    def __init__(self, check: Check, jobs: int = 1, seconds: float | None = None, loads: Sequence[str] = ()) -> None:
        self.check, self.seconds = check, seconds
        self._jobs, self._loads = jobs, tuple(loads)
        self._children: list[_Child] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for child in self._children:
            _end(child)
        self._children.clear()

    def findings(
        self, cases: Sequence[Case], blame: bool = False, checks: Sequence[Check] | None = None
    ) -> list[Finding]:
        """The outcome of the check on each case, or of a check for each; with `blame`, the culprit instead."""
        checks = [self.check] * len(cases) if checks is None else checks
        found: list[Finding | None] = [None] * len(cases)
        waiting = list(range(len(cases)))[::-1]
        while any(f is None for f in found):
            while waiting and (child := self._idle()) is not None:
                child.job, child.begun = waiting.pop(), time.monotonic()
                case, check = cases[child.job], checks[child.job]
                inputs = case.inputs if check.reads_inputs else ()
                with suppress(BrokenPipeError):  # it has ended, which `wait` tells
                    child.pipe.send((check, case.text, inputs, blame))
            for child in self._ended():
                assert child.job is not None
                found[child.job] = self._outcome(child)
                child.job = None
        return [f for f in found if f is not None]

    def _idle(self) -> _Child | None:
        for child in self._children:
            if child.job is None:
                return child
        if len(self._children) == self._jobs:
            return None
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["heron.reduce.warm"])
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(self._loads, theirs), daemon=True)
        resource_tracker.ensure_running()  # as it starts, it lets interrupts in
        with _importable(), _interrupt_held():
            process.start()
        theirs.close()
        self._children.append(_Child(process, ours))
        return self._children[-1]

    def _ended(self) -> list[_Child]:
        """The children whose job has ended, or that have had time enough; waits for the first."""
        busy = [c for c in self._children if c.job is not None]
        left = None
        if self.seconds is not None:
            left = max(min(c.begun for c in busy) + self.seconds - time.monotonic(), 0)
        ready = wait([c.pipe for c in busy], timeout=left)
        return [c for c in busy if c.pipe in ready or self._is_late(c)]

    def _is_late(self, child: _Child) -> bool:
        return self.seconds is not None and time.monotonic() - child.begun >= self.seconds

    def _outcome(self, child: _Child) -> Finding:
        if child.pipe.poll():
            with suppress(EOFError, ConnectionResetError):
                finding, is_last = child.pipe.recv()
                if is_last:
                    self._remove(child)
                return finding
            child.process.join()
            sign = _ending(child.process.exitcode or 0)
        else:
            sign = NO_END
        self._remove(child)
        return Finding(LOST, sign, text=f"{sign} ({self.seconds:g} s)" if sign == NO_END else sign)

    def _remove(self, child: _Child) -> None:
        self._children.remove(child)
        _end(child)


def _ending(code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return f"the process ended with {signal.Signals(-code).name}"
    return f"the process ended with code {code}"


def _end(child: _Child) -> None:
    child.process.kill()
    child.process.join()
    child.pipe.close()


@contextmanager
def _interrupt_held() -> Iterator[None]:
    """Let Ctrl-C wait while a child starts: the server that forks children would end by it, not this process."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _importable:
    """Hides the main module while a child starts: the child needs none, and importing it again may have effects."""

    def __enter__(self) -> None:
        main = sys.modules["__main__"]
        self._kept = {n: getattr(main, n) for n in ("__file__", "__spec__") if hasattr(main, n)}
        main.__spec__ = None
        main.__dict__.pop("__file__", None)

    def __exit__(self, *_: object) -> None:
        vars(sys.modules["__main__"]).update(self._kept)


def _serve(loads: Sequence[str], pipe: Any) -> None:
    """A child: does checks until its parent is gone. Their output goes nowhere."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    from heron.passes.framework.loading import load

    broken: Finding | None = None
    try:
        for path in loads:
            load(path)
    except HeronError as error:
        broken = Finding("load", error.code, text=f"{error.code}: {error.what}")
    while True:
        try:
            check, text, inputs, blame = pipe.recv()
        except EOFError:
            return
        finding = broken or _look(check, text, inputs, blame)
        pipe.send((finding, watchdog.is_busy()))  # one that left work undone does no more: it would take its time


def _look(check: Check, text: str, inputs: Sequence[np.ndarray], blame: bool) -> Finding:
    from heron.reduce.checks.crashes import failure

    try:
        module = parse(text, verify=True)
        if blame:
            return Finding("blamed", culprit=check.blame(module, inputs))
        return check.look(module, inputs)
    except Exception as error:
        return failure(error)
