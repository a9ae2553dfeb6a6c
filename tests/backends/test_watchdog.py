"""A compile that takes longer than it may ends with an error that says what it was at, whatever that is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import heron
from heron.backends import watchdog
from heron.backends.watchdog import watched
from heron.codegen.llvm.jit import Jit
from heron.errors import HeronError
from heron.options import Options
from heron.passes.simplify.dce import Dce
from heron.pjrt.client import Client
from tests.support import heron as run

TEXT = """
HloModule slow

ENTRY main {
  x = f32[64] parameter(0)
  ROOT y = f32[64] exponential(x)
}
"""
LIMIT = Options(compile_timeout=2)


@pytest.fixture(autouse=True, scope="module")
def _warm() -> None:
    """What a process does once is done."""
    Client("cpu").compile(TEXT)


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """LLVM that is at it until the test ends."""
    over, real = threading.Event(), Jit.compile

    def compile(self: Jit, *args: Any, **kwargs: Any) -> Any:
        over.wait(30)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Jit, "compile", compile)
    yield over
    over.set()


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A pass that does not end by itself; what it leaves says that it was ended."""
    ended: list[bool] = []

    def run(*_: Any) -> bool:
        try:
            while True:
                time.sleep(0.001)
        finally:
            ended.append(True)

    monkeypatch.setattr(Dce, "run", run)
    return ended


def on_the_command_line(tmp_path: Path) -> str:
    path = tmp_path / "slow.hlo"
    path.write_text(TEXT)
    made = run("compile", str(path), "--timeout", "2")
    assert made.code == 2
    return made.err


def by_compile(_: Path) -> str:
    with pytest.raises(HeronError, match="TGT009") as caught:
        heron.compile(heron.parse(TEXT), options=LIMIT)
    return str(caught.value)


def by_pjrt(_: Path) -> str:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(HeronError, match="TGT009") as caught:
        patch.setenv("HERON_COMPILE_TIMEOUT", "2")
        Client("cpu").compile(TEXT)
    return str(caught.value)


@pytest.mark.parametrize("way", [by_compile, by_pjrt, on_the_command_line])
def test_while_llvm_runs(way: Callable[[Path], str], native: threading.Event, tmp_path: Path) -> None:
    said = way(tmp_path)
    assert "TGT009" in said and "longer than 2 s" in said
    assert "stage 'machine code', LLVM on module 'slow' with kernels wrapped_exponential" in said
    assert watchdog.is_busy()
    native.set()


def test_while_a_pass_runs(endless: list[bool]) -> None:
    assert "stage 'hlo', 'dce'" in by_compile(Path())
    for _ in range(5000):
        if ended := list(endless):
            break
        time.sleep(0.001)
    assert ended, "the thread was told to stop"


def test_evaluation_that_does_not_end(tmp_path: Path) -> None:
    path = tmp_path / "endless.hlo"
    path.write_text("""
HloModule endless

body {
  ROOT p = s32[] parameter(0)
}

condition {
  p = s32[] parameter(0)
  ROOT t = pred[] constant(true)
}

ENTRY main {
  x = s32[] parameter(0)
  ROOT w = s32[] while(x), condition=condition, body=body
}
""")
    made = run("eval", str(path), "--random", "0", "--timeout", "1")
    assert made.code == 2 and "CLI048" in made.err


def test_in_time_nothing_is_different(tmp_path: Path) -> None:
    assert watched(lambda: 3, 5, lambda: HeronError("TGT009", "late")) == 3
    with pytest.raises(KeyError):
        watched(lambda: {}["x"], 5, lambda: HeronError("TGT009", "late"))
    assert heron.compile(heron.parse(TEXT), options=LIMIT.replace(compile_timeout=300)) is not None


def test_threads_that_compile_end() -> None:
    from heron.backends.cpu.compilers import Compilers

    with Compilers(4) as compilers:
        made = [compilers.submit(pow, 2, n) for n in range(20)]
    assert [m.result() for m in made] == [2**n for n in range(20)]
    with pytest.raises(ZeroDivisionError), Compilers(2) as compilers:
        compilers.submit(lambda: 1 / 0).result()
    assert not [t for t in threading.enumerate() if t.name.startswith("heron-compile")]
