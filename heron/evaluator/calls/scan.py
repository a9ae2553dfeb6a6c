"""Scans by kernels of heron's own, as custom calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.evaluator.calls.table import evaluates, with_scratch
from heron.hlo.calls import scan

if TYPE_CHECKING:
    from heron.evaluator.walker import Evaluator
    from heron.hlo.ir.instruction import Instruction


@evaluates(scan.CALL, with_evaluator=True)
def scan_(ev: Evaluator, i: Instruction, *operands: np.ndarray) -> Any:
    """The results of the called computation."""
    results: Any = ev.call(scan.body_of(i), *operands)
    return with_scratch(i, results if isinstance(results, tuple) else [results])
