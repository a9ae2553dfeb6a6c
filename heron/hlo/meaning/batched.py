"""Scalar computations (reducers, combiners, comparators) applied to whole arrays at once.

Reducers are scalar computations of elementwise ops, so running them with arrays in place of scalars applies them
element by element. Computations with anything else in them (loops, slices…) run once per element.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.facts import is_combiner, is_given, is_tuple_op, reindexes
from heron.hlo.ir.op import Trait

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

_CALLS = {"call": "to_apply", "fusion": "calls"}


def is_batchable(c: Computation) -> bool:
    """Whether all of `c` works element by element."""
    for i in c.instructions:
        if is_given(i) or is_tuple_op(i) or i.opcode in _CALLS or _moves_scalar(i):
            if i.shape.is_array and i.shape.rank:
                return False
            if i.opcode in _CALLS and not is_batchable(i.attrs[_CALLS[i.opcode]]):
                return False
        elif not i.op.is_elementwise or i.op.has_side_effect or i.shape.rank:
            return False
    return True


def _moves_scalar(i: Instruction) -> bool:
    """Whether a scalar operand is the result, a bitcast's as another type."""
    return reindexes(i) or i.has(Trait.FORWARDS)


def simple_opcode(c: Computation) -> str | None:
    """The opcode when `c` is one commutative binary op on its two parameters (or hands on one: ``second``)."""
    root = c.root
    if root.opcode in _CALLS and [o.opcode for o in root.operands] == ["parameter", "parameter"]:
        if [o.attrs["number"] for o in root.operands] == [0, 1]:
            return simple_opcode(root.attrs[_CALLS[root.opcode]])
    if root.opcode == "parameter":
        return "second" if root.attrs["number"] == 1 and len(c.parameters) == 2 else None
    if not is_combiner(root.op) or len(c.parameters) != 2:
        return None
    a, b = root.operands
    return root.opcode if a is not b and a.opcode == b.opcode == "parameter" else None


def apply(ev: Evaluation, c: Computation, *arrays: np.ndarray) -> Any:
    """`c` on each element of `arrays` (all of one shape): an array, or a tuple of arrays."""
    if ev.is_batchable(c):
        return _shaped(_run(ev, c, arrays), np.broadcast_shapes(*(a.shape for a in arrays)))
    return _each(ev, c, arrays)


def apply_tuple(ev: Evaluation, c: Computation, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Like `apply`, always a tuple."""
    found = apply(ev, c, *arrays)
    return found if isinstance(found, tuple) else (found,)


def _shaped(value: Any, dims: tuple[int, ...]) -> Any:
    if isinstance(value, tuple):
        return tuple(_shaped(v, dims) for v in value)
    return value if value.shape == dims else np.broadcast_to(value, dims)  # constants, unused parameters


def _run(ev: Evaluation, c: Computation, arrays: tuple[np.ndarray, ...]) -> Any:
    values: dict[Any, Any] = {}
    for i in ev.order(c):
        inputs = [values[o] for o in i.operands]
        opcode = i.opcode
        if opcode == "parameter":
            values[i] = arrays[i.attrs["number"]]
        elif _moves_scalar(i) and opcode != "bitcast":
            values[i] = inputs[0]
        elif opcode in _CALLS:
            values[i] = _run(ev, i.attrs[_CALLS[opcode]], tuple(inputs))
        else:
            values[i] = i.op.evaluate(ev, i, *inputs)
    return values[c.root]


def _each(ev: Evaluation, c: Computation, arrays: tuple[np.ndarray, ...]) -> Any:
    dims = np.broadcast_shapes(*(a.shape for a in arrays))
    arrays = tuple(np.broadcast_to(a, dims) for a in arrays)
    parts = c.root.shape.tuple_shapes if c.root.shape.is_tuple else (c.root.shape,)
    results = [np.empty(dims, p.element_type.dtype) for p in parts or ()]
    for at in np.ndindex(*dims):
        value = ev.call(c, *(a[at] for a in arrays))
        for result, v in zip(results, value if isinstance(value, tuple) else (value,), strict=True):
            result[at] = v
    return tuple(results) if c.root.shape.is_tuple else results[0]
