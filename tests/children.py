"""Jobs in child processes: a job that ends its process, or takes too long, is an outcome like any other."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

#: how often, in seconds, the time of jobs is looked at, and by how much a job may outlast the CPU time it is allowed
_LOOK, _PATIENCE = 1.0, 10


@dataclass(frozen=True)
class Lost:
    """A job without a result: its process ended (`seconds` is None), or was stopped after that many seconds."""

    exit_code: int | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        if self.seconds is not None:
            return f"stopped after {self.seconds:g} s"
        return f"the process ended with {self.exit_code}"


@dataclass
class _Child:
    process: BaseProcess
    pipe: Connection
    job: int | None = None
    begun: float = 0.0
    spent: float = 0.0
    """CPU seconds before the job."""


def results(
    function: Callable[[Any], Any],
    jobs: Sequence[Any],
    processes: int = 1,
    seconds: float = 60.0,
    fresh: bool = False,
    warm: str = "",
) -> Iterator[tuple[int, Any]]:
    """``(number of the job, function(job))`` as jobs end, or a `Lost` in place of the result.

    Args:
        function: what to do with a job, a function of a module other than `__main__`; its result is sent back by pickling.
        jobs: what it is called with.
        processes: how many run at a time. Each does one job after the other.
        seconds: the CPU time a job may take, so that it does not matter what else the machine does; ten times as long
            in all, for a job that waits for ever.
        fresh: every job gets a process of its own.
        warm: a module that one process imports; the jobs' processes are forked from it, and share its hash seed. Without
            one, each process is a new interpreter. The first name given in a process counts for all of its calls.
    """
    context = multiprocessing.get_context("forkserver" if warm else "spawn")
    if warm:
        multiprocessing.set_forkserver_preload([warm])
    waiting = list(range(len(jobs)))[::-1]
    children: list[_Child] = []
    try:
        while waiting or any(c.job is not None for c in children):
            while waiting and len(children) < processes:
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(function, theirs), daemon=True)
                with _deaf():
                    process.start()
                theirs.close()
                children.append(_Child(process, ours))
            for child in children:
                if child.job is None and waiting:
                    child.job, child.begun, child.spent = waiting.pop(), time.monotonic(), _cpu_seconds(child.process)
                    child.pipe.send(jobs[child.job])
            busy = [c for c in children if c.job is not None]
            ready = set(wait([c.pipe for c in busy], timeout=min(seconds, _LOOK)))
            for child in busy:
                done, result = _outcome(child, child.pipe in ready, seconds)
                if not done:
                    continue
                if fresh or isinstance(result, Lost):
                    children.remove(child)
                    child.process.kill()
                    child.process.join()
                yield child.job or 0, result
                child.job = None
    finally:
        for child in children:
            child.process.kill()
            child.process.join()


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Children that begin in the block do not hear Ctrl-C, which reaches all processes of a terminal: the parent ends
    them, without a traceback of each."""
    resource_tracker.ensure_running()  # when it starts, it unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _outcome(child: _Child, ready: bool, seconds: float) -> tuple[bool, Any]:
    """Whether the child's job has ended, and how."""
    if ready:
        try:
            return True, child.pipe.recv()
        except (EOFError, ConnectionResetError):
            child.process.join()
            return True, Lost(exit_code=child.process.exitcode)
    if _cpu_seconds(child.process) - child.spent < seconds and time.monotonic() - child.begun < _PATIENCE * seconds:
        return False, None
    child.process.kill()
    child.process.join()
    return True, Lost(seconds=seconds)


def _cpu_seconds(process: BaseProcess) -> float:
    """Of all its threads so far; 0 where the system does not tell, or it has just ended."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _work(function: Callable[[Any], Any], pipe: Connection) -> None:
    """A child: does jobs until its parent is gone."""
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        pipe.send(function(job))
