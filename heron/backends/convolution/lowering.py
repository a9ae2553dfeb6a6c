"""convolution and select-and-scatter: sums in registers or BLAS where that is faster, else kernels of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.convolution.axes import Axis, axes_of
from heron.backends.convolution.strided_products import cost, loops_cost, strided_products
from heron.backends.convolution.tiles import tiling
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, F64
from heron.runtime.cpu import blas
from heron.runtime.strided import StridedProducts, Tiling
from heron.runtime.thunks import ConvolutionThunk, Thunk
from heron.trace import Decision

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def convolution(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """On the CPU sums in registers or matrix products in place, if they are estimated faster than a kernel that sums
    window by window.
    """
    if lowering.target.is_gpu:
        return lowering.alone(i)
    t = i.shape.element_type
    if any(o.shape.element_type is not t for o in i.operands) or t not in blas.PREFIX:
        lowering.trace.decide(Decision(False, f"no products of {t}", "convolution", i.name, "library"))
        return lowering.alone(i)
    is_tiled = t in (F32, F64)  # BLAS is slow to load: only what is done by it asks whether it is there
    if not is_tiled and (why := blas.why_not()):
        lowering.trace.decide(Decision(False, f"no BLAS: {why}", "convolution", i.name, "library"))
        return lowering.alone(i)
    axes = axes_of(i)
    how, after, reason = _tiled(i, axes) if is_tiled else _multiplied(i, axes)
    before = loops_cost(i, axes)
    if how is None:
        lowering.trace.decide(Decision(False, reason, "convolution", i.name, "library"))
        return lowering.alone(i)
    if not lowering.trace.decide(Decision(after < before, reason, "convolution", i.name, "library", before, after)):
        return lowering.alone(i)
    lhs, rhs, out = map(lowering.slice, (*i.operands, i))
    return [ConvolutionThunk(lhs, rhs, out, how, t, i.name)]


def _tiled(i: Instruction, axes: list[Axis] | None) -> tuple[Tiling | None, float, str]:
    found, micros = tiling(i, axes)
    if found is None:
        return None, micros, "output features are not next to each other, or there are too many dimensions"
    return found, micros, found.summary


def _multiplied(i: Instruction, axes: list[Axis] | None) -> tuple[StridedProducts | None, float, str]:
    """Complex numbers, by BLAS."""
    found = strided_products(i, axes)
    if found is None:
        return None, float("inf"), "no two dimensions of an operand make a matrix"
    return found, cost(found), found.summary


def select_and_scatter(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """One kernel: each operand element sums the sources of the windows that select it."""
    return lowering.alone(i)
