"""Event: something that will be done, or fail."""

from __future__ import annotations

import threading
from collections.abc import Callable

from heron.errors import HeronError

Callback = Callable[[BaseException | None], None]


class Event:
    """Becomes ready once, with or without an error. Safe to use from several threads.

    >>> event = Event()
    >>> event.on_ready(lambda error: print("ready", error))
    >>> event.set()
    ready None
    >>> event.is_ready, event.error
    (True, None)
    """

    __slots__ = ("_callbacks", "_error", "_lock", "_ready", "_waiter")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready = False
        self._error: BaseException | None = None
        self._callbacks: list[Callback] = []
        self._waiter: threading.Event | None = None

    @staticmethod
    def done(error: BaseException | None = None) -> Event:
        """An event that is ready."""
        if error is None:
            return _DONE
        event = Event()
        event.set(error)
        return event

    @property
    def is_ready(self) -> bool:
        """Whether it is over; never waits."""
        return self._ready

    @property
    def error(self) -> BaseException | None:
        """The error of a failed event; None before it is ready."""
        return self._error

    def set(self, error: BaseException | None = None) -> None:
        """It is over. Raises PJRT001 when it was already."""
        with self._lock:
            if self._ready:
                raise HeronError("PJRT001", "an event becomes ready only once")
            self._error, self._ready = error, True
            callbacks, self._callbacks = self._callbacks, []
        if self._waiter is not None:
            self._waiter.set()
        for callback in callbacks:
            callback(error)

    def on_ready(self, callback: Callback) -> None:
        """Call back with the error or None: at once when it is ready, else by the thread that makes it so."""
        with self._lock:
            if not self._ready:
                self._callbacks.append(callback)
                return
        callback(self._error)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is over; False when that took more than `timeout` seconds. The error is not raised."""
        with self._lock:
            if self._ready:
                return True
            if self._waiter is None:
                self._waiter = threading.Event()
        return self._waiter.wait(timeout)

    def await_(self) -> None:
        """Wait until it is over, and raise its error."""
        self.wait()
        if self._error is not None:
            raise self._error


_DONE = Event()
_DONE.set()


def all_of(events: list[Event]) -> Event:
    """Ready when all are, with the first error among them in order."""
    pending = [e for e in events if not e.is_ready]
    if not pending:
        return Event.done(next((e.error for e in events if e.error is not None), None))
    result, left, lock = Event(), len(pending), threading.Lock()

    def one_less(_: BaseException | None) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            result.set(next((e.error for e in events if e.error is not None), None))

    for event in pending:
        event.on_ready(one_less)
    return result
