"""``Outcome``: what comes of work that another thread does.

As `concurrent.futures.Future`, without the module around it, which loads logging: 5 ms of a process's first compile.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Outcome(Generic[_T]):
    """The value that work gives, or the exception that it raises; any thread may wait for it."""

    __slots__ = ("_error", "_over", "_value")

    def __init__(self) -> None:
        self._over = Event()
        self._value: _T | None = None
        self._error: BaseException | None = None

    def give(self, value: _T) -> None:
        """The work is done."""
        self._value = value
        self._over.set()

    def fail(self, error: BaseException) -> None:
        """The work has failed."""
        self._error = error
        self._over.set()

    def done(self) -> bool:
        """Whether it has been done, or has failed."""
        return self._over.is_set()

    def result(self) -> _T:
        """The value, once it is there. Raises what the work raised."""
        self._over.wait()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


def beside(work: Callable[[], _T]) -> Outcome[_T]:
    """The outcome of `work`, which a thread of its own does meanwhile."""
    done: Outcome[_T] = Outcome()

    def run() -> None:
        try:
            done.give(work())
        except BaseException as error:  # whoever asks for the result gets it
            done.fail(error)

    Thread(target=run, name="heron-compile", daemon=True).start()
    return done
