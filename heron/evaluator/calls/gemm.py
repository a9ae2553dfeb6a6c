"""The meaning of cuBLAS calls: a product with its epilogue, computed in a wide type and rounded once.

Source: https://docs.nvidia.com/cuda/cublas (cublasLtMatmul, cublasLtEpilogue_t).
"""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from heron.evaluator.calls.table import evaluates, with_scratch
from heron.hlo.calls import gemm
from heron.hlo.calls.form import results_of
from heron.hlo.ir.types import C128, F64, ElementType
from heron.hlo.meaning import products
from heron.hlo.meaning.numeric import settle

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction


@evaluates(gemm.CALL)
def matmul(i: Instruction, x: np.ndarray, y: np.ndarray, *more: np.ndarray) -> Any:
    """The product and the other results of the call; workspace is zero."""
    config = gemm.read(i)
    operands, places = (x, y, *more), gemm.parts(i, config)
    t = gemm.product(i).element_type
    dims = (config.lhs_batch, config.lhs_contracting, config.rhs_batch, config.rhs_contracting)
    value = scaled(products.dot(x, y, dims, wide(t)), config.alpha, t)
    for n in (places.lhs_scale, places.rhs_scale):
        if n >= 0:
            value = value * operands[n].astype(np.float64)
    if places.c >= 0:
        value = value + scaled(operands[places.c].astype(value.dtype), config.beta, t)
    if places.bias >= 0:
        value = value + operands[places.bias].astype(value.dtype)
    before = value
    value = activated(value, config.activation)
    kept = [before] if config.keeps_input else []
    kept += [np.abs(value).max(initial=0.0)] if config.gives_amax else []
    if places.out_scale >= 0:
        value = saturated(value * operands[places.out_scale].astype(np.float64), t.dtype)
    rest = [settle(np.asarray(x), s.element_type) for x, s in zip(kept, results_of(i)[1:], strict=False)]
    return with_scratch(i, [products.finish(value, t), *rest])


def wide(t: ElementType) -> ElementType:
    """The type products with results of type `t` are computed in."""
    return C128 if t.is_complex else F64 if t.is_float else t


def scaled(value: np.ndarray, by: complex, t: ElementType) -> np.ndarray:
    """`value` times a factor of the configuration, which is a whole number for integers."""
    if by == 1:
        return value
    return value * (int(by.real) if t.is_integer else by)


def saturated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Values clamped to the bounds of an 8-bit float; NaN stays."""
    largest = float(ml_dtypes.finfo(dtype).max)
    return np.clip(x, -largest, largest)


def activated(x: np.ndarray, activation: str) -> np.ndarray:
    """relu, gelu (by its approximation with tanh) or silu of f64 values."""
    if activation == "relu":
        return np.maximum(x, 0)
    if activation == "gelu":
        return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))
    return x / (1 + np.exp(-x)) if activation == "silu" else x
