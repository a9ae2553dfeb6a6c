"""To emit a concatenation takes as long for long arrays as for short ones."""

from __future__ import annotations

import numpy as np
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


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_no_kernel_of_any_number_of_parameters(target: str) -> None:
    """The compile of one takes time with the square of their number, and a GPU has no room for so many."""
    count = 700
    rows = "".join(f"p{n} = s32[2] parameter({n}) r{n} = s32[2,1] reshape(p{n})\n" for n in range(count))
    joined = f"ROOT c = s32[2,{count}] concatenate({', '.join(f'r{n}' for n in range(count))}), dimensions={{1}}"
    text = f"HloModule m\nENTRY e {{ {rows} {joined} }}"
    compilation = Compilation(heron.parse(text), get(target), Options(), Trace())
    joins = [line for line in compilation.text("fused").splitlines() if " concatenate(" in line]
    assert len(joins) > 2 and all(line.count("%") <= 257 for line in joins)
    (got,) = heron.compile(text, target=target).run([np.array([n * n, n], np.int32) for n in range(count)])
    np.testing.assert_array_equal(got, [np.arange(count) ** 2, np.arange(count)])


def test_a_large_result_is_written_once() -> None:
    """Parts of it would take as much memory again."""
    rows = "".join(f"p{n} = f32[2000] parameter({n})\n" for n in range(300))
    joined = f"ROOT c = f32[600000] concatenate({', '.join(f'p{n}' for n in range(300))}), dimensions={{0}}"
    compilation = Compilation(
        heron.parse(f"HloModule m\nENTRY e {{ {rows} {joined} }}"), get("cpu"), Options(), Trace()
    )
    assert compilation.text("fused").count(" concatenate(") == 1
