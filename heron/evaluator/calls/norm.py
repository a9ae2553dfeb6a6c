"""The meaning of cuDNN's norm calls: computed in a wide type, rounded once.

Source: https://docs.nvidia.com/deeplearning/cudnn (normalization forward and backward).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.evaluator.calls.table import evaluates, with_scratch
from heron.hlo.calls import norm
from heron.hlo.calls.norm import NormConfig
from heron.hlo.meaning import products

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction


@evaluates(norm.CALL)
def normalize(i: Instruction, *operands: np.ndarray) -> Any:
    """The arrays; workspace is zero."""
    given = norm.read(i)
    shapes = i.shape.tuple_shapes or (i.shape,)
    found = [products.finish(value, s.element_type) for value, s in zip(compute(given, operands), shapes, strict=False)]
    return with_scratch(i, found)


def compute(given: NormConfig, operands: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The results of a call in f64."""
    x, scale, *more = (o.astype(np.float64) for o in operands)
    row = tuple(range(1, x.ndim))
    if given.kind == norm.BACKWARD:
        dy, mean, factor = more
        normal, scaled = (x - mean) * factor, dy * scale
        inside = scaled - scaled.mean(row, keepdims=True) - normal * (scaled * normal).mean(row, keepdims=True)
        return factor * inside, (dy * normal).sum(0, keepdims=True), dy.sum(0, keepdims=True)
    mean = x.mean(row, keepdims=True)
    factor = 1 / np.sqrt(((x - mean) ** 2).mean(row, keepdims=True) + given.epsilon)
    y = (x - mean) * factor * scale + more[0]
    return (y,) if given.kind == norm.INFERENCE else (y, mean, factor)
