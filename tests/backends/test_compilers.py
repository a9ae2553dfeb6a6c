"""Threads that compile beside the lowering of kernels: Python's lock goes round among them while there are any."""

from __future__ import annotations

import sys
import threading

import pytest

import heron
from heron.backends.cpu import machine
from heron.backends.cpu.compilers import Compilers, Countdown
from heron.codegen.llvm.jit import Jit
from heron.errors import HeronError


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


def test_a_countdown_waits_for_each_piece_once() -> None:
    countdown = Countdown(2)
    first, second = countdown.one(), countdown.one()
    first()
    first()
    waiting = threading.Thread(target=countdown.wait, daemon=True)
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    second()
    waiting.join(10)
    assert not waiting.is_alive()
    Countdown(0).wait()


TEXT = """HloModule m

ENTRY e {
  x = f32[40,999] parameter(0)
  a = f32[40,999] tanh(x)
  b = f32[999,40] transpose(a), dimensions={1,0}
  c = f32[999,40] sine(b)
  ROOT t = (f32[40,999], f32[999,40]) tuple(a, c)
}
"""


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr("heron.backends.cpu.portions._PORTION", 1)


@pytest.mark.usefixtures("apart")
def test_garbage_is_collected_when_all_that_is_left_is_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection keeps Python's lock, for which a thread at an earlier step would wait."""
    begun, collected, real = [], [], Jit.compile

    def compile(self: Jit, text: str, name: str, **options: object) -> object:
        at_code = options.pop("at_code", None)

        def note() -> None:
            if callable(at_code):
                begun.append(name)
                at_code()

        made = real(self, text, name, at_code=note, **options)  # type: ignore[arg-type]
        if callable(at_code):
            over.wait(10)
        return made

    over = threading.Event()
    monkeypatch.setattr(Jit, "compile", compile)
    monkeypatch.setattr(machine, "collect_meanwhile", lambda: (collected.append(list(begun)), over.set()))
    heron.compile(heron.parse(TEXT))
    assert len(collected) == 1 and len(collected[0]) >= 2


@pytest.mark.usefixtures("apart")
def test_an_error_before_machine_code_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile(self: Jit, text: str, name: str, **_: object) -> object:
        raise HeronError("LLVM011", f"refused {name}")

    monkeypatch.setattr(Jit, "compile", compile)
    with pytest.raises(HeronError, match="refused"):
        heron.compile(heron.parse(TEXT))
