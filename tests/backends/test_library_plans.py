"""What the real programs call: every library's descriptor, in the order of the program, as golden text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import heron
from benchmarks import programs
from heron import Options, targets
from heron.backends.compiler import Compilation
from heron.runtime.cuda.libraries.cublaslt import EPILOGUES, stored
from heron.runtime.cuda.libraries.registry import LIBRARIES
from heron.runtime.thunks import LibraryThunk, walk
from heron.trace import Trace

PLANS = Path(__file__).parent / "library_plans"


def calls(name: str) -> list[LibraryThunk]:
    module = heron.parse(programs.path(name, small=True, platform="cuda").read_text())
    compilation = Compilation(module, targets.get("sm_90"), Options(triton="off"), Trace())
    return [t for t in walk(compilation.lowered[0]) if isinstance(t, LibraryThunk)]


@pytest.mark.parametrize("name", programs.names())
def test_plan(name: str, golden: Callable[[Path, str], None]) -> None:
    found = calls(name)
    for t in found:
        assert t.call.library in LIBRARIES
        assert len(t.args) == len(t.call.arrays)
        if t.call.library == "cublaslt":
            assert t.call.epilogue in EPILOGUES and stored(t.call)  # type: ignore[attr-defined, arg-type]
    lines = [f"{t.call}  // {t.source}" for t in found]
    path = PLANS / f"{name}.txt"
    if lines or path.exists():
        golden(path, "\n".join(lines) + "\n")
