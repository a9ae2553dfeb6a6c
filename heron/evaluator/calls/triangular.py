"""The meaning of XLA:GPU's cuBLAS calls for triangular systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.evaluator.calls.libraries import target
from heron.hlo.calls import triangular
from heron.hlo.meaning import linalg

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction


@target(triangular.TARGET)
def solve(i: Instruction, a: np.ndarray, b: np.ndarray) -> Any:
    """x, and scratch memory."""
    t = triangular.read(i)
    x = linalg.triangular_solve(a, b, t.left, t.lower, t.transpose, t.unit_diagonal)
    rest = [np.zeros(s.dims, s.element_type.dtype) for s in (i.shape.tuple_shapes or ())[1:]]
    return (x, *rest) if i.shape.is_tuple else x
