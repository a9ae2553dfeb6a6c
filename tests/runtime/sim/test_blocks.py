"""What the simulated GPU finds in block kernels."""

from __future__ import annotations

import numpy as np
import pytest

from heron.errors import HeronError
from heron.runtime.sim.blocks import BlockKernel

COPY = """
builtin.module {
  tt.func public @k(%in: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %0 = tt.get_program_id x : i32
    %step = arith.constant STEP : i32
    %1 = arith.muli %0, %step : i32
    %2 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %3 = tt.splat %1 : i32 -> tensor<32xi32>
    %4 = arith.addi %2, %3 : tensor<32xi32>
    %5 = tt.splat %in : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %6 = tt.addptr %5, %4 : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %7 = tt.load %6 : tensor<32x!tt.ptr<f32>>
    %8 = tt.splat %out : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %9 = tt.addptr %8, %4 : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    tt.store %9, %7 : tensor<32x!tt.ptr<f32>>
    tt.return
  }
}
"""


def copied(step: int, programs: int, elements: int, checks: str = "") -> np.ndarray:
    x, y = np.arange(elements, dtype=np.float32), np.zeros(elements, np.float32)
    kernel = BlockKernel(COPY.replace("STEP", str(step)), programs, checks)
    kernel([(a.ctypes.data, a.nbytes) for a in (x, y)])
    return y


def test_all_programs_run() -> None:
    np.testing.assert_array_equal(copied(32, 4, 128, "all"), np.arange(128))


def test_an_access_outside_is_found() -> None:
    with pytest.raises(HeronError, match="RUN075.*element 100 of argument 0, which has 100, is outside"):
        copied(32, 4, 100)


def test_an_element_written_twice_is_found() -> None:
    assert copied(16, 4, 128)[0] == 0  # by chance right, for both write the same
    with pytest.raises(HeronError, match="RUN076.*element 16 .*two programs"):
        copied(16, 4, 128, "races")


def test_what_is_no_kernel() -> None:
    with pytest.raises(ValueError, match="no op tt.nothing"):
        BlockKernel(COPY.replace("tt.load", "tt.nothing"), 1)
    with pytest.raises(ValueError, match="line 4 is no op"):
        BlockKernel(COPY.replace("%0 = tt.get_program_id", "%0 = "), 1)
    with pytest.raises(ValueError, match="no kernel"):
        BlockKernel("builtin.module {\n}\n", 1)
