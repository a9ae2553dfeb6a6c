"""Python's cycle collector while programs are compiled and heron's modules are loaded."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: whether the collector is off because `collector_paused` paused it
_IS_PAUSED: ContextVar[bool] = ContextVar("is_paused", default=False)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Python's cycle collector off: it walks every instruction and op again and again, a sixth of a compile's time,
    and all that JAX has made whenever modules have added a fourth.

    The garbage that a compile leaves in cycles is small (4 MiB of 160 for a training step) and collected afterwards.
    """
    was_on, loaded = gc.isenabled(), len(sys.modules)
    gc.disable()
    token = _IS_PAUSED.set(was_on or _IS_PAUSED.get())
    try:
        yield
    finally:
        _IS_PAUSED.reset(token)
        if was_on:
            if len(sys.modules) != loaded:
                _keep_modules()
            gc.enable()


def collect_meanwhile() -> None:
    """Collect what was made since the collector paused: a twentieth of a compile's time, for a moment at which nothing
    else can be done. Where the process has its collector off it stays off."""
    if _IS_PAUSED.get():
        gc.collect(0)


def _keep_modules() -> None:
    """Spare what is in memory the walks on the way to the oldest generation: most of it is modules, which stay.

    Thawing puts all that was frozen there; what somebody else has frozen must stay so.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
