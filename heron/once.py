"""``once``: functions that a process calls a single time, even when several threads call them at once.

`functools.cache` calls a function again for each thread that asks before the first has an answer, and keeps the last
answer. Where addresses of an answer are handed on (native code, callbacks, tables of C functions), the others must
never exist: they are dropped, and with them the code that was already promised to somebody.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from threading import RLock
from typing import ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_T = TypeVar("_T")


def once(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """`function`, called once for each set of (positional, hashable) arguments; threads wait for the first to end.

    An exception is not kept: the next caller tries again.
    """
    lock, kept = RLock(), dict[tuple[Hashable, ...], _T]()

    @functools.wraps(function)
    def asked(*arguments: Hashable) -> _T:
        try:
            return kept[arguments]
        except KeyError:
            with lock:
                if arguments not in kept:
                    kept[arguments] = function(*arguments)  # type: ignore[call-arg]
                return kept[arguments]

    asked.cache_clear = kept.clear  # type: ignore[attr-defined]
    return cast(Callable[_P, _T], asked)
