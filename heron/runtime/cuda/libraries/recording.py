"""Functions of a library that only write down how they are called: plans are tested with no GPU and no library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import field
from typing import Any

from heron.errors import HeronError
from heron.records import dataclass


@dataclass
class Recording:
    """Stands in for `Native`: keeps every call as text.

    Handles that a function writes through a pointer are numbered from 1; ``answers`` has functions that write
    something else, by the name of the C function they stand for. ``fails`` maps functions to the status they give.
    """

    name: str
    calls: list[str] = field(default_factory=list)
    answers: dict[str, Callable[..., None]] = field(default_factory=dict)
    fails: dict[str, int] = field(default_factory=dict)
    _handles: int = 0

    def call(self, function: str, *arguments: Any) -> None:
        if function in self.fails:
            raise HeronError("RUN091", f"{self.name}: {function} failed", why=f"status {self.fails[function]}")
        if function in self.answers:
            self.answers[function](*arguments)
        else:
            self._fill_handles(arguments)
        self.calls.append(f"{function}({', '.join(map(show, arguments))})")

    def _fill_handles(self, arguments: tuple[Any, ...]) -> None:
        for a in arguments:
            target = getattr(a, "_obj", None)
            if isinstance(target, ctypes.c_void_p) and not target.value:
                self._handles += 1
                target.value = self._handles

    @property
    def text(self) -> str:
        return "\n".join(self.calls)


def show(argument: Any) -> str:
    """An argument of a call: numbers as they are, what a pointer points at after ``&``."""
    target = getattr(argument, "_obj", None)
    if target is not None:
        return "&" + show(target)
    if isinstance(argument, ctypes.Array):
        return "[" + ", ".join(show(a) for a in argument) + "]"
    value = getattr(argument, "value", argument)
    if value is None:
        return "0"
    return str(value)
