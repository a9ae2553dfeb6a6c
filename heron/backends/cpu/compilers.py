"""Threads that compile, for as long as one program is being compiled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from heron.backends.watchdog import leave
from heron.runtime.cpu.pool import usable_cpus

P = ParamSpec("P")
R = TypeVar("R")


class Compilers:
    """At most `wanted` threads, and no more than there are processors; where there is one, work is done when submitted.

    Leaving the `with` block ends them, so that a process that forks leaves none behind. After Ctrl-C, or when nobody
    waits for the compile any more, they are not waited for, and end with the work they are at.
    """

    def __init__(self, wanted: int) -> None:
        processors = usable_cpus()
        count = min(wanted, processors) if processors > 1 else 0
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._is_over = False
        self._threads = [Thread(target=self._serve, name=f"heron-compile_{n}", daemon=True) for n in range(count)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Compilers:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._is_over = error is not None
        for _thread in self._threads:
            self._work.put(None)
        if error is None or issubclass(error, Exception):
            for thread in self._threads:
                thread.join()
        else:
            leave(self._threads)

    def submit(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """A handle that returns, or raises, the outcome of `function`."""
        done: Future[R] = Future()
        if self._threads:
            self._work.put((done, lambda: function(*args, **kwargs)))
        else:
            done.set_result(function(*args, **kwargs))
        return done

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            done, make = work
            if self._is_over:
                done.cancel()
                continue
            try:
                done.set_result(make())
            except BaseException as error:  # whoever asks for the result gets it
                done.set_exception(error)
