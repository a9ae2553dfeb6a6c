"""A bar or a line on stderr with the current step of long work; only on a terminal, and only after a short delay."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from heron.trace import Trace

if TYPE_CHECKING:
    from heron.evaluator.walker import Watcher

_PATIENCE = 0.7  # seconds of silence before the bar appears
_PAUSE = 0.1  # seconds between changes of a line
#: the stages of a compile in order; those that a target has take a part of the bar each
_STAGES = ("hlo", "fused", "scheduled", "buffers", "emit", "llvm", "ptx", "machine code")


@contextlib.contextmanager
def progress(trace: Trace, what: str) -> Iterator[None]:
    """Show `what`, the stages that are done, and the current stage, pass or kernel of `trace` while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn()
    bar = Progress(*columns, TextColumn("{task.fields[step]}"), console=Console(stderr=True), transient=True)
    task = bar.add_task(escape(what), total=len(_STAGES), step="")
    timer = threading.Timer(_PATIENCE, bar.start)
    timer.daemon = True
    steps = 0

    def show(name: str) -> None:
        nonlocal steps
        steps += 1
        bar.update(task, completed=stages_done(trace), step=f"{escape(name)} ({steps} steps)")

    trace.on_event = show
    timer.start()
    try:
        yield
    finally:
        trace.on_event = None
        timer.cancel()
        bar.stop()


@contextlib.contextmanager
def at_step(first: str) -> Iterator[Callable[[str], None]]:
    """A line on a terminal, beginning with `first`, that each call replaces; after a delay, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape

    status = Console(stderr=True).status(escape(first))
    timer = threading.Timer(_PATIENCE, status.start)
    timer.daemon = True
    told = 0.0

    def say(text: str) -> None:
        nonlocal told
        if time.monotonic() - told >= _PAUSE:
            told = time.monotonic()
            status.update(escape(text))

    timer.start()
    try:
        yield say
    finally:
        timer.cancel()
        status.stop()


@contextlib.contextmanager
def evaluation(name: str) -> Iterator[Watcher | None]:
    """Show the instruction that the evaluator has computed last: a function that is to be told of each; None where
    nothing is shown."""
    what = f"evaluating {name}"
    with at_step(what) as say:
        yield (lambda i, _: say(f"{what}: %{i.name}")) if sys.stderr.isatty() else None


def stages_done(trace: Trace) -> int:
    """The stages before the latest one that the compile has come to."""
    known = [_STAGES.index(s.name) for s in trace.stages if s.name in _STAGES]
    return max(known, default=0)


@contextlib.contextmanager
def kept_when_interrupted(trace: Trace, path: str | None) -> Iterator[None]:
    """After Ctrl-C in the block write to `path` the record up to then, with a note about the step in progress."""
    try:
        yield
    except KeyboardInterrupt:
        if path is not None:
            trace.note(f"interrupted at {trace.at}")
            trace.save(path)
            print(f"\nthe trace up to {trace.at} is in {path}", file=sys.stderr)
        raise


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the process at once while native code runs; Python's own handler would wait for that code."""
    import signal

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
