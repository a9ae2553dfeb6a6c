"""Threads that compile, for as long as one program is being compiled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from heron.runtime.cpu.pool import usable_cpus

P = ParamSpec("P")
R = TypeVar("R")


class Compilers:
    """At most `wanted` threads, and no more than there are processors; where there is one, work is done when submitted.

    Leaving the `with` block ends them. They live no longer, so that a process that forks leaves none behind.
    """

    def __init__(self, wanted: int) -> None:
        processors = usable_cpus()
        count = min(wanted, processors)
        self._threads = ThreadPoolExecutor(count, "heron-compile") if count and processors > 1 else None

    def __enter__(self) -> Compilers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def submit(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """What `function` will give, or raise, when asked for its result."""
        if self._threads is not None:
            return self._threads.submit(function, *args, **kwargs)
        done: Future[R] = Future()
        done.set_result(function(*args, **kwargs))
        return done
