"""Radix sorts by kernels of heron's own, as custom calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.evaluator.calls.table import evaluates, with_scratch
from heron.hlo.calls import radix_sort
from heron.hlo.meaning import sorting

if TYPE_CHECKING:
    from heron.evaluator.walker import Evaluator
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.shape import Shape


@evaluates(radix_sort.CALL, with_evaluator=True)
def sort(ev: Evaluator, i: Instruction, *operands: np.ndarray) -> Any:
    """Stable, along the last dimension."""
    made, given = radix_sort.positions(i), iter(operands)
    arrays = tuple([_positions(s) if n in made else next(given) for n, s in enumerate(radix_sort.arrays(i))])
    permutation = sorting.order(ev, radix_sort.comparator_of(i), arrays, arrays[0].ndim - 1)
    return with_scratch(i, [np.take_along_axis(x, permutation, -1) for x in arrays])


def _positions(shape: Shape) -> np.ndarray:
    """Each element's place in its row."""
    return np.broadcast_to(np.arange(shape.dims[-1]).astype(shape.element_type.dtype), shape.dims)
