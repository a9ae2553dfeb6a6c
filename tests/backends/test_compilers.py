"""Threads that compile beside the lowering of kernels: Python's lock goes round among them while there are any."""

from __future__ import annotations

import sys
import threading

import pytest

from heron.backends.cpu.compilers import Compilers


def test_the_lock_goes_round_faster_while_threads_compile() -> None:
    usual = sys.getswitchinterval()
    with Compilers(2):
        assert sys.getswitchinterval() < 1e-3
    assert sys.getswitchinterval() == usual
    with pytest.raises(ZeroDivisionError), Compilers(2):
        raise ZeroDivisionError
    assert sys.getswitchinterval() == usual


def test_the_usual_pace_is_back_after_the_last_of_several_programs() -> None:
    usual = sys.getswitchinterval()
    first, second = Compilers(1), Compilers(1)
    with first:
        inside, over = threading.Event(), threading.Event()

        def other() -> None:
            with second:
                inside.set()
                over.wait()

        thread = threading.Thread(target=other)
        thread.start()
        inside.wait()
    assert sys.getswitchinterval() < usual
    over.set()
    thread.join()
    assert sys.getswitchinterval() == usual


def test_a_faster_pace_stays() -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with Compilers(1):
            assert sys.getswitchinterval() == pytest.approx(1e-5)
    finally:
        sys.setswitchinterval(usual)
