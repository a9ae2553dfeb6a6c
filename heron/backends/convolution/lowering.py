"""convolution and select-and-scatter: sums in registers where that is faster, else kernels."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from heron.backends.convolution.axes import Axis, axes_of
from heron.backends.convolution.tiles import tiling
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, F64
from heron.runtime.thunks import ConvolutionThunk, Thunk
from heron.trace import Decision

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


#: multiply-adds a microsecond of a plain loop
_LOOP_RATE = 1_000


def convolution(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """On the CPU sums in registers, if they are estimated faster than a kernel that sums window by window."""
    if lowering.target.is_gpu:
        return lowering.alone(i)
    t = i.shape.element_type
    if any(o.shape.element_type is not t for o in i.operands) or t not in (F32, F64):
        lowering.trace.decide(Decision(False, f"no products of {t}", "convolution", i.name, "library"))
        return lowering.alone(i)
    axes = axes_of(i)
    how, after = tiling(i, axes)
    before = _loops_cost(i, axes)
    if how is None:
        reason = "output features are not next to each other, or there are too many dimensions"
        lowering.trace.decide(Decision(False, reason, "convolution", i.name, "library"))
        return lowering.alone(i)
    if not lowering.trace.decide(
        Decision(after < before, how.summary, "convolution", i.name, "library", before, after)
    ):
        return lowering.alone(i)
    lhs, rhs, out = map(lowering.slice, (*i.operands, i))
    return [ConvolutionThunk(lhs, rhs, out, how, t, i.name)]


def _loops_cost(i: Instruction, axes: list[Axis] | None) -> float:
    """Estimated microseconds of a kernel that sums each output element by itself."""
    if axes is None:
        return float("inf")
    features = i.operands[1].shape.dims[i.dim_labels.kernel_input]
    work = features * i.shape.dims[i.dim_labels.output_batch] * i.shape.dims[i.dim_labels.output_feature]
    return work * prod(int(np.count_nonzero(axis.meets)) for axis in axes) / _LOOP_RATE


def select_and_scatter(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """One kernel: each operand element sums the sources of the windows that select it."""
    return lowering.alone(i)
