"""A process that works on one name after the other, and is replaced when a name takes it too long or ends it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why there is no answer for a name."""

    why: str


def answers(
    job: Callable[[str], Any], names: Sequence[str], limit: float, begin: Callable[[], None] | None = None
) -> Iterator[tuple[str, Any | NoAnswer]]:
    """``job(name)`` of each name, from another process. One that takes longer than ``limit`` seconds is ended.

    ``begin`` runs first in each new process, and does not count. Both are functions at the top of a module.
    """
    spawn, process, here = multiprocessing.get_context("spawn"), None, None
    for name in names:
        if process is None or here is None:
            here, there = spawn.Pipe()
            process = spawn.Process(target=_work, args=(there, job, begin), daemon=True)
            process.start()
            there.close()
        try:
            here.recv()  # it is ready
            here.send(name)
            if here.poll(limit):
                yield name, here.recv()
                continue
            why = f"no answer in {limit:.0f} s"
        except (EOFError, OSError):
            why = "the process ended"
        process.kill()
        process = None
        yield name, NoAnswer(why)
    if process is not None and here is not None:
        here.recv()
        here.send(None)
        process.join()


def _work(pipe: Any, job: Callable[[str], Any], begin: Callable[[], None] | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends this process
    if begin is not None:
        begin()
    pipe.send(None)
    while (name := pipe.recv()) is not None:
        pipe.send(job(name))
        pipe.send(None)
