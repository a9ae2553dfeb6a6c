"""Python's cycle collector while programs are compiled and heron's modules are loaded."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Python's cycle collector off: it walks every instruction and op again and again, a sixth of a compile's time,
    and all that JAX has made whenever modules have added a fourth.

    The garbage that a compile leaves in cycles is small (4 MiB of 160 for a training step) and collected afterwards.
    """
    was_on, loaded = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if len(sys.modules) != loaded:
                _keep_modules()
            gc.enable()


def _keep_modules() -> None:
    """Spare what is in memory the walks on the way to the oldest generation: most of it is modules, which stay.

    Thawing puts all that was frozen there; what somebody else has frozen must stay so.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
