"""Matrix products with what cuBLASLt's epilogues add, by NumPy: narrow types are summed in f32 and rounded once."""

from __future__ import annotations

from math import prod

import numpy as np

from heron.evaluator.calls.gemm import activated, saturated
from heron.hlo.calls.gemm import GemmConfig, Parts
from heron.hlo.meaning.products import matmul
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Matmul:
    """``out = act(alpha x y + beta c + bias)``; operands, the result, what else results, workspace last."""

    config: GemmConfig
    places: Parts
    operands: int

    def __str__(self) -> str:
        return f"matmul {self.config.epilogue}"

    def __call__(self, *arrays: np.ndarray) -> None:
        x, y, out = arrays[0], arrays[1], arrays[self.operands]
        given, at = self.config, self.places
        value = product(x, y, given, summed_in(x.dtype, out.dtype))
        if given.alpha != 1:
            value *= value.dtype.type(given.alpha)
        for n in (at.lhs_scale, at.rhs_scale):
            if n >= 0:
                value *= arrays[n].astype(value.dtype)
        if at.c >= 0:
            value += value.dtype.type(given.beta) * arrays[at.c].astype(value.dtype)
        if at.bias >= 0:
            value += arrays[at.bias].astype(value.dtype)
        if given.keeps_input:
            arrays[self.operands + 1][...] = value.astype(arrays[self.operands + 1].dtype)
        value = activated(value, given.activation)
        if given.gives_amax:
            arrays[self.operands + 1][...] = np.abs(value).max(initial=0)
        if at.out_scale >= 0:
            value = saturated(value * arrays[at.out_scale].astype(value.dtype), out.dtype)
        out[...] = value.astype(out.dtype, copy=False)


def product(x: np.ndarray, y: np.ndarray, given: GemmConfig, dtype: np.dtype) -> np.ndarray:
    """``x y`` by the dimension numbers of a dot, in that type."""
    x_free = [d for d in range(x.ndim) if d not in (*given.lhs_batch, *given.lhs_contracting)]
    y_free = [d for d in range(y.ndim) if d not in (*given.rhs_batch, *given.rhs_contracting)]
    batch = [x.shape[d] for d in given.lhs_batch]
    rows, columns = [x.shape[d] for d in x_free], [y.shape[d] for d in y_free]
    inner = prod(x.shape[d] for d in given.lhs_contracting)
    left = x.transpose(*given.lhs_batch, *x_free, *given.lhs_contracting).reshape(*batch, prod(rows), inner)
    right = y.transpose(*given.rhs_batch, *given.rhs_contracting, *y_free).reshape(*batch, inner, prod(columns))
    value = matmul(left.astype(dtype, copy=False), right.astype(dtype, copy=False))
    return value.reshape((*batch, *rows, *columns))


def summed_in(operand: np.dtype, result: np.dtype) -> np.dtype:
    """The type a matrix library sums in."""
    if operand.kind in "iu" or operand.name.startswith(("int", "uint")):
        return np.dtype(np.int32 if operand.itemsize <= 4 else np.int64)
    if operand.kind == "c" or result.kind == "c":
        return np.result_type(operand, result)
    return np.dtype(np.float64 if np.float64 in (operand, result) else np.float32)
