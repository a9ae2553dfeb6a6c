"""Values of calls around sizes known at run time, of the k largest elements, and of annotations."""

from __future__ import annotations

from typing import Any

import numpy as np

from heron.evaluator.calls.table import evaluates
from heron.hlo.calls import size_checks
from heron.hlo.calls.markers import MARKERS, UNWRITTEN
from heron.hlo.ir.instruction import Instruction
from heron.hlo.meaning import sorting
from heron.hlo.meaning.dynamic_size import trimmed, within_bound


@evaluates("TopK")
def top_k(i: Instruction, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest elements of each line and their positions."""
    return sorting.top_k(x, i.operands[0].shape.element_type, i.shape.at((0,)).dims[-1], True)


@evaluates(UNWRITTEN)
def unwritten(i: Instruction) -> np.ndarray:
    """An array of zero bytes."""
    return np.zeros(i.shape.dims, i.shape.element_type.dtype)


@evaluates("SliceToDynamic")
def slice_to_dynamic(i: Instruction, x: np.ndarray, *sizes: np.ndarray) -> np.ndarray:
    """The first elements: a size for each dimension, known at run time."""
    bounds = i.shape.dims
    return trimmed(x, [within_bound(int(n), bounds[d], d) for d, n in enumerate(sizes)])


@evaluates("PadToStatic")
def pad_to_static(i: Instruction, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """(the array filled up to its bound with zeros, the size of each dimension)."""
    return trimmed(x, i.shape.at((0,)).dims), *(np.array(n, np.int32) for n in x.shape)


@evaluates(size_checks.TARGET)
def check_sizes(i: Instruction, failed: np.ndarray, left: np.ndarray, right: np.ndarray) -> tuple[()]:
    """Nothing, or the error of the condition on sizes that did not hold."""
    checks = size_checks.read(str(i.extras.get("backend_config", "")))
    size_checks.need_none_failed(checks, int(failed), int(left), int(right))
    return ()


@evaluates(*MARKERS)
def marker(i: Instruction, *operands: Any) -> Any:
    """An annotation: where or how to keep operands; the value is the operand itself, or nothing."""
    if not any(True for _ in i.shape.leaves()):
        return ()
    return operands[0] if len(operands) == 1 and not _wraps(i) else operands


def _wraps(i: Instruction) -> bool:
    """Whether the value is a tuple of the operand."""
    return i.shape.is_tuple and not i.operands[0].shape.is_tuple
