"""Ctrl-C reaches the end of a command wherever it arrives."""

from __future__ import annotations

import _imp
import signal
import threading
import time
from importlib.machinery import ExtensionFileLoader
from types import ModuleType

import pytest

from heron.cli.interrupts import is_interrupted, none_dropped
from tests.support import interruptible

#: seconds in which an interrupt comes again
_WAIT = 60.0


def _press() -> None:
    signal.raise_signal(signal.SIGINT)


def _press_and_drop(module: ModuleType) -> None:
    """Do what native code does that asks Python for something and goes on without it."""
    del module
    try:
        _press()
    except BaseException:
        return


class _PressedWhenFreed:
    def __del__(self) -> None:
        _press()


def test_an_interrupt_waits_for_a_native_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_imp, "exec_dynamic", _press_and_drop)
    with interruptible(), pytest.raises(KeyboardInterrupt), none_dropped():
        ExtensionFileLoader("native", "native.so").exec_module(ModuleType("native"))
        time.sleep(_WAIT)


def test_an_interrupt_outlives_a_freed_object() -> None:
    with interruptible(), pytest.raises(KeyboardInterrupt), none_dropped():
        freed = _PressedWhenFreed()
        del freed
        time.sleep(_WAIT)


def test_the_handler_is_put_back() -> None:
    with interruptible():
        with none_dropped():
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_that_comes_of_an_interrupt_is_one() -> None:
    lock = threading.Lock()
    with pytest.raises(RuntimeError) as raised, lock:
        lock.release()
        raise KeyboardInterrupt
    assert is_interrupted(raised.value)
    assert not is_interrupted(RuntimeError("release unlocked lock"))
