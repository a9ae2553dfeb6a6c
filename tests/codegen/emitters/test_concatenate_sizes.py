"""To emit a concatenation takes as long for long arrays as for short ones."""

from __future__ import annotations

import pytest

import heron
from heron.backends.compiler import Compilation
from heron.codegen.emitters import concatenate
from heron.options import Options
from heron.targets import get
from heron.trace import Trace

JOINED = """HloModule m
ENTRY e {
  x = f32[40,30000] parameter(0)
  y = f32[40,7] parameter(1)
  ROOT c = f32[40,30007] concatenate(x, y), dimensions={1}
}"""


def test_no_piece_for_each_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements of a short row are stored by one step of a loop; a long row is never looked at so."""
    made = list[int]()

    def noted(*bounds: int) -> range:
        made.append(1)
        return range(*bounds)

    monkeypatch.setattr(concatenate, "range", noted, raising=False)
    assert "concatenate" in Compilation(heron.parse(JOINED), get("cpu"), Options(), Trace()).text("mlir")
    assert 0 < len(made) < 100
