"""The device for which the present thread runs a routine of the host, as such routines ask for it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron.evaluator.walker import Evaluator


class _Current(threading.local):
    number = 0
    evaluator: Evaluator | None = None


_CURRENT = _Current()


def device_number() -> int:
    """The number of the device whose program has called Python; 0 elsewhere."""
    return _CURRENT.number


def set_device_number(number: int) -> None:
    """Say for which device this thread calls Python."""
    _CURRENT.number = number


def evaluator() -> Evaluator | None:
    """The evaluator of the simulated device that this thread runs; None on other threads."""
    return _CURRENT.evaluator


def set_evaluator(evaluator: Evaluator) -> None:
    """Say which simulated device this thread runs."""
    _CURRENT.evaluator, _CURRENT.number = evaluator, evaluator.device.number
