"""Work in many pieces: a bar on a terminal, and an end by Ctrl-C that keeps the pieces that are done."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from heron.cli.main import INTERRUPTED
from heron.cli.progress import counted

T = TypeVar("T")


class Series:
    """The pieces of work under way; ``done`` of them are over."""

    def __init__(self, show: Callable[..., None] = lambda *_: None) -> None:
        self._show, self.done, self.is_interrupted = show, 0.0, False

    def say(self, done: float, current: str = "") -> None:
        """Move the bar, and name the piece that is under way."""
        self.done = done
        self._show(done, current)

    def over(self, pieces: Iterable[T], name: Callable[[T], str] = lambda _: "") -> Iterator[T]:
        """The pieces; each moves the bar once it has been dealt with. ``name``: of a piece that begins."""
        for done, piece in enumerate(pieces):
            if shown := name(piece):
                self.say(done, shown)
            yield piece
            self.say(done + 1)

    def code(self, is_bad: object) -> int:
        """The exit code of the command: 130 interrupted, 1 where something is bad, 0 otherwise."""
        return INTERRUPTED if self.is_interrupted else int(bool(is_bad))


@contextlib.contextmanager
def series(what: str, count: int, quiet: bool = False) -> Iterator[Series]:
    """Show a bar of `count` pieces; Ctrl-C ends the block and not the command, which reports what is done.

    ``quiet``: no bar, for commands outside `heron.cli.verbs` that print one document.
    """
    with counted(what, count, quiet) as say:
        made = Series(say)
        try:
            yield made
        except KeyboardInterrupt:
            made.is_interrupted = True
    if made.is_interrupted:
        print(f"\ninterrupted: these are the results of the {what} done so far, of {count}", file=sys.stderr)
