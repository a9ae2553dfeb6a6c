"""Threads that compile, for as long as one program is being compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, ParamSpec, TypeVar

from heron.backends.watchdog import leave
from heron.outcome import Outcome
from heron.runtime.cpu.pool import usable_cpus

P = ParamSpec("P")
R = TypeVar("R")


#: seconds after which Python's lock goes to a thread that waits for it. Python's own 5 ms would pass at each of the
#: short calls around LLVM's long ones: the threads would begin when the lowering of all kernels ends
_TURN = 2e-4


class _Turns:
    """Python's lock goes round faster while some program has threads that compile."""

    def __init__(self) -> None:
        self._lock, self._programs, self._usual = Lock(), 0, 0.0

    def begin(self) -> None:
        with self._lock:
            self._programs += 1
            if self._programs == 1:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(_TURN, self._usual))

    def end(self) -> None:
        with self._lock:
            self._programs -= 1
            if not self._programs:
                sys.setswitchinterval(self._usual)


_TURNS = _Turns()


class Countdown:
    """Tells when each of several pieces of work has come to its last step."""

    def __init__(self, pieces: int) -> None:
        self._lock, self._left, self._over = Lock(), pieces, Event()
        if not pieces:
            self._over.set()

    def one(self) -> Callable[[], None]:
        """To be called when one of them is there; to call it again does nothing."""
        waiting = [True]

        def there() -> None:
            with self._lock:
                self._left -= bool(waiting and waiting.pop())
                if not self._left:
                    self._over.set()

        return there

    def wait(self) -> None:
        """Return when all are there."""
        self._over.wait()


class Compilers:
    """At most `wanted` threads, and no more than there are processors; where there is one, work is done when submitted.

    Leaving the `with` block ends them, so that a process that forks leaves none behind. After Ctrl-C, or when nobody
    waits for the compile any more, they are not waited for, and end with the work they are at.
    """

    def __init__(self, wanted: int) -> None:
        processors = usable_cpus()
        count = min(wanted, processors) if processors > 1 else 0
        self._work: SimpleQueue[tuple[Outcome[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._is_over = False
        self._threads = [Thread(target=self._serve, name=f"heron-compile_{n}", daemon=True) for n in range(count)]

    def __enter__(self) -> Compilers:
        _TURNS.begin()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        _TURNS.end()
        self._is_over = error is not None
        for _thread in self._threads:
            self._work.put(None)
        if error is None or issubclass(error, Exception):
            for thread in self._threads:
                thread.join()
        else:
            leave(self._threads)

    def submit(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Outcome[R]:
        """A handle that returns, or raises, the outcome of `function`."""
        done: Outcome[R] = Outcome()
        if self._threads:
            self._work.put((done, lambda: function(*args, **kwargs)))
        else:
            done.give(function(*args, **kwargs))
        return done

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            done, make = work
            if self._is_over:
                done.fail(RuntimeError("the compile is over"))
                continue
            try:
                done.give(make())
            except BaseException as error:  # whoever asks for the result gets it
                done.fail(error)
