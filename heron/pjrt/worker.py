"""The thread of a device: runs what is given to it, one after the other."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from heron.pjrt import float_environment

_STOP = None


class Worker:
    """A thread that starts with its first task. Tasks must not raise."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def submit(self, task: Callable[[], None]) -> None:
        """Run it after all that was submitted before."""
        self._tasks.put(task)
        if self._thread is None or not self._thread.is_alive():
            self._start()

    @property
    def is_here(self) -> bool:
        """Whether the caller is this worker."""
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        """Wait for what was submitted, and end the thread."""
        thread = self._thread
        if thread is None or not thread.is_alive() or self.is_here:
            return
        self._tasks.put(_STOP)
        thread.join()

    def _start(self) -> None:
        with self._lock:  # also after a fork, which takes no threads along
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        float_environment.reset()
        while (task := self._tasks.get()) is not None:
            task()
            del task  # what it held may go before the next one comes
