"""docs/reference/emitters.md is what the compiler says today, and what it says is what the examples are there to show."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import heron
from benchmarks import emitters, ptx_text
from heron.codegen.llvm.assemble import knows
from heron.codegen.llvm.libdevice import candidates

pytestmark = pytest.mark.skipif(
    not knows(emitters.TARGET) or not any(path.is_file() for path in candidates()),
    reason="libdevice or an assembler is not here (pip install '.[ptx]')",
)


#: what a newer assembler may do otherwise with the same PTX
_FIGURES = re.compile(r"^The assembler's figures: .*", re.M)


def test_page(golden: Callable[[Path, str], None], request: pytest.FixtureRequest) -> None:
    text = emitters.page()
    if not request.config.getoption("--bless"):
        stored = iter(_FIGURES.findall(emitters.PAGE.read_text()))
        text = _FIGURES.sub(lambda found: next(stored, found.group()), text)
    golden(emitters.PAGE, text)


def test_gelu_is_read_and_written_in_vectors() -> None:
    executable = heron.compile(heron.parse(emitters.GELU), emitters.TARGET)
    (code,) = ptx_text.kernels(executable.stage("ptx")).values()
    assert set(code.accesses) <= {64, 128} and code.accesses.total() == 2
    assert "@__nv_tanhf(" in executable.stage("llvm")
    (used,) = executable.cubin.resources.values()  # type: ignore[attr-defined]
    assert not used.spill_bytes and not used.stack_bytes


def test_transpose_goes_through_a_padded_tile() -> None:
    executable = heron.compile(heron.parse(emitters.TRANSPOSE), emitters.TARGET)
    (tile,) = re.findall(r"allocate_shared : tensor<(\d+)xf32>", executable.stage("mlir"))
    assert int(tile) == 32 * 33 - 1  # the last row has no element after it to pad for
    (used,) = executable.cubin.resources.values()  # type: ignore[attr-defined]
    assert used.barriers == 1 and used.shared_bytes == 4 * int(tile) and not used.spill_bytes
    assert "st.shared" in executable.stage("ptx") and "ld.shared" in executable.stage("ptx")
