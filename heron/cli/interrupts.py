"""Ctrl-C that no code can drop: Python drops the exception where an object is freed, and so does much native code."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import ExtensionFileLoader
from types import FrameType

#: seconds after which an interrupt that could not be raised is tried again
_AGAIN = 0.01


@contextlib.contextmanager
def none_dropped() -> Iterator[None]:
    """Raise each Ctrl-C of the block where the exception reaches the block's end.

    Native modules may drop exceptions while they are loaded, so an interrupt waits until they are. Python drops the
    exceptions of code that runs when an object is freed, as at the end of an import; an interrupt is raised again.
    """
    hook = sys.unraisablehook

    def report(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is KeyboardInterrupt:
            _interrupt_later()
        else:
            hook(dropped)

    sys.unraisablehook = report
    is_ours = _may_set_handlers() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, _raise)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def is_interrupted(error: BaseException | None) -> bool:
    """Whether an exception is Ctrl-C, or an error that came of it: locks are released twice when it ends a wait."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


def _may_set_handlers() -> bool:
    return threading.current_thread() is threading.main_thread()


def _raise(number: int, frame: FrameType | None) -> None:
    del number
    if _loads_native_code(frame):
        _interrupt_later()
    else:
        raise KeyboardInterrupt


def _loads_native_code(frame: FrameType | None) -> bool:
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
            return True
        frame = frame.f_back
    return False


def _interrupt_later() -> None:
    """Send the signal again, to the main thread: it ends a wait of that thread, too."""
    later = threading.Timer(_AGAIN, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    later.daemon = True
    later.start()
