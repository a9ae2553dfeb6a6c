"""A line on stderr with the current step of a long compile; only on a terminal, and only after a short delay."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

from heron.trace import Trace

_PATIENCE = 0.7  # seconds of silence before the line appears


@contextlib.contextmanager
def progress(trace: Trace, what: str) -> Iterator[None]:
    """Show `what` and the current stage or pass of `trace` while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.markup import escape

    status = Console(stderr=True).status(escape(what))
    timer = threading.Timer(_PATIENCE, status.start)
    timer.daemon = True
    passes = 0

    def show(name: str) -> None:
        nonlocal passes
        passes += 1
        status.update(f"{escape(what)}: {escape(name)} ({passes} steps)")

    trace.on_event = show
    timer.start()
    try:
        yield
    finally:
        trace.on_event = None
        timer.cancel()
        status.stop()


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
