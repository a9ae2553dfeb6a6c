"""Compiling again and again: what a program took goes with it."""

from __future__ import annotations

import gc
import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from heron import targets
from heron.backends.compiler import Compilation
from heron.codegen.llvm.jit import Jit
from heron.hlo.text import parse
from heron.options import Options
from heron.runtime.object_code import Object, Timing
from heron.trace import Trace

TEXT = """HloModule m

ENTRY e {
  x = f32[64]{0} parameter(0)
  y = f32[64]{0} exponential(x)
  ROOT z = f32[64]{0} add(y, x)
}
"""
#: mebibytes that many compiles may add to the process; one program in memory has half of one
_MOST = 4.0
_TIMES = 150


def _resident() -> float:
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _growth(step: Callable[[], object], enough: float) -> float:
    """Mebibytes the process grows by in `_TIMES` steps: the least of a few rounds, the first one below `enough`.

    What steps leave makes every round grow. Caches, pages the system joins to large ones, and pieces the allocator takes
    at once do not.
    """
    for _ in range(40):
        step()
    rounds = list[float]()
    while len(rounds) < 4 and not any(grown < enough for grown in rounds):
        gc.collect()
        before = _resident()
        for _ in range(_TIMES):
            step()
        gc.collect()
        rounds.append(_resident() - before)
    return min(rounds)


@pytest.mark.skipif(platform.system() != "Linux", reason="reads /proc")
def test_programs_leave_nothing_in_memory() -> None:
    module = parse(TEXT)

    assert _growth(lambda: Compilation(module, targets.get("cpu"), Options(), Trace()).lowered, _MOST) < _MOST


@pytest.mark.skipif(platform.system() != "Linux", reason="reads /proc")
def test_machine_code_is_unloaded() -> None:
    body = "".join(f"  %v{n + 1} = mul i64 %v{n}, %v0\n" for n in range(4000))  # 30 KB of code
    text = f"define i64 @f(i64 %v0) {{\n{body}  ret i64 %v4000\n}}\n"
    code = Jit(level=0).compile(text).code

    def link() -> None:
        Jit().link(Object("f", code, Timing()), ["f"])

    assert len(code) > 15_000 and _growth(link, _MOST / 2) < _MOST / 2
