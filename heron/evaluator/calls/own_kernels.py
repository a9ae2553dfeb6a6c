"""Sorts and scans that are kernels of heron's own, as custom calls; what is scratch memory is zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.evaluator.calls.libraries import target
from heron.hlo.calls import radix_sort, scan
from heron.hlo.meaning import sorting

if TYPE_CHECKING:
    from heron.evaluator.walker import Evaluator
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.shape import Shape


@target(radix_sort.TARGET, with_evaluator=True)
def sort(ev: Evaluator, i: Instruction, *operands: np.ndarray) -> tuple[Any, ...]:
    """Stable, along the last dimension."""
    made, given = radix_sort.positions(i), iter(operands)
    arrays = tuple([_positions(s) if n in made else next(given) for n, s in enumerate(radix_sort.arrays(i))])
    permutation = sorting.order(ev, radix_sort.comparator_of(i), arrays, arrays[0].ndim - 1)
    results = [np.take_along_axis(x, permutation, -1) for x in arrays]
    return _with_scratch(i, results)


def _positions(shape: Shape) -> np.ndarray:
    """Each element's place in its row."""
    return np.broadcast_to(np.arange(shape.dims[-1]).astype(shape.element_type.dtype), shape.dims)


@target(scan.TARGET, with_evaluator=True)
def scan_(ev: Evaluator, i: Instruction, *operands: np.ndarray) -> tuple[Any, ...]:
    """The result of the called computation."""
    results = ev.call(scan.body_of(i), *operands)
    return _with_scratch(i, list(results) if isinstance(results, tuple) else [results])


def _with_scratch(i: Instruction, results: list[Any]) -> tuple[Any, ...]:
    rest = (i.shape.tuple_shapes or ())[len(results) :]
    return (*results, *(np.zeros(s.dims, s.element_type.dtype) for s in rest))
