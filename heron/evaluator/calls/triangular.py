"""The meaning of XLA:GPU's cuBLAS calls for triangular systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.evaluator.calls.table import evaluates, with_scratch
from heron.hlo.calls import triangular
from heron.hlo.meaning import linalg

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction


@evaluates(triangular.CALL)
def solve(i: Instruction, a: np.ndarray, b: np.ndarray) -> Any:
    """x, and scratch memory."""
    t = triangular.read(i)
    x = linalg.triangular_solve(a, b, t.left, t.lower, t.transpose, t.unit_diagonal)
    return with_scratch(i, [x])
