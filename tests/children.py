"""Jobs in child processes: a job that ends its process, or takes too long, is an outcome like any other."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any


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
    process: SpawnProcess
    pipe: Connection
    job: int | None = None
    begun: float = 0.0


def results(
    function: Callable[[Any], Any],
    jobs: Sequence[Any],
    processes: int = 1,
    seconds: float = 60.0,
    fresh: bool = False,
) -> Iterator[tuple[int, Any]]:
    """``(number of the job, function(job))`` as jobs end, or a `Lost` in place of the result.

    Args:
        function: what to do with a job, a function of a module other than `__main__`; its result is sent back by pickling.
        jobs: what it is called with.
        processes: how many run at a time. Each does one job after the other.
        seconds: how long a job may take.
        fresh: every job gets a process of its own.
    """
    context = multiprocessing.get_context("spawn")
    waiting = list(range(len(jobs)))[::-1]
    children: list[_Child] = []
    try:
        while waiting or any(c.job is not None for c in children):
            while waiting and len(children) < processes:
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(function, theirs), daemon=True)
                process.start()
                theirs.close()
                children.append(_Child(process, ours))
            for child in children:
                if child.job is None and waiting:
                    child.job, child.begun = waiting.pop(), time.monotonic()
                    child.pipe.send(jobs[child.job])
            busy = [c for c in children if c.job is not None]
            left = min(c.begun for c in busy) + seconds - time.monotonic()
            ready = set(wait([c.pipe for c in busy], timeout=max(left, 0)))
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


def _outcome(child: _Child, ready: bool, seconds: float) -> tuple[bool, Any]:
    """Whether the child's job has ended, and how."""
    if ready:
        try:
            return True, child.pipe.recv()
        except (EOFError, ConnectionResetError):
            child.process.join()
            return True, Lost(exit_code=child.process.exitcode)
    if time.monotonic() - child.begun < seconds:
        return False, None
    child.process.kill()
    child.process.join()
    return True, Lost(seconds=seconds)


def _work(function: Callable[[Any], Any], pipe: Connection) -> None:
    """A child: does jobs until its parent is gone."""
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        pipe.send(function(job))
