"""A thread for each device of a launch: each enqueues the work of its device, and waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from queue import SimpleQueue
from typing import Any

from heron.records import dataclass


@dataclass(eq=False)
class Job:
    """Work of one device. ``error``: what it raised."""

    work: Callable[[], Any]
    done: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.work()
        except BaseException as error:  # for whoever waits
            self.error = error
        self.done.set()

    @property
    def failed(self) -> bool:
        return self.done.is_set() and self.error is not None


class Crew:
    """Threads that sleep between launches. Those that hang do not hold the process up when it ends."""

    def __init__(self, count: int) -> None:
        self._queues: list[SimpleQueue[Job | None]] = [SimpleQueue() for _ in range(count)]
        for n, queue in enumerate(self._queues):
            threading.Thread(target=_serve, args=(queue,), name=f"heron-gpu-{n}", daemon=True).start()

    def start(self, works: Sequence[Callable[[], Any]]) -> list[Job]:
        """Begin a launch."""
        jobs = [Job(work) for work in works]
        for queue, job in zip(self._queues, jobs, strict=True):
            queue.put(job)
        return jobs

    def stop(self) -> None:
        """End the threads, those that hang when they come back."""
        for queue in self._queues:
            queue.put(None)


def wait_for(jobs: Sequence[Job], seconds: float) -> None:
    """Wait until all have ended, but no longer."""
    deadline = time.monotonic() + seconds
    for job in jobs:
        job.done.wait(max(0.0, deadline - time.monotonic()))


def _serve(queue: SimpleQueue[Job | None]) -> None:
    while (job := queue.get()) is not None:
        job.run()
