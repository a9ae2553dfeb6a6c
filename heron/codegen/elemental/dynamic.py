"""Reads at places known only when the kernel runs: dynamic-slice, dynamic-update-slice, gather.

Start indices are clamped so that the whole slice lies inside, as HLO says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith

from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, gather_index, gather_start_index
from heron.codegen.elemental.constants import scalar_constant
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.movement import scalar_to_index
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Value
from heron.hlo.ir.instruction import Instruction


def clamped_start(e: FunctionEmitter, i: Instruction, index: Index, highest: int) -> Expr:
    """The value of integer `i` at `index`, clamped to [0, highest], as an index variable."""
    if highest <= 0:
        return Const(0)

    def make() -> Expr:
        t = i.shape.element_type
        value = e.scalar(i, index)
        if t.is_unsigned and t.bits == 64:  # does not fit a signed index
            value = e.b.op(arith.MinUIOp, value, e.b.integer(highest, value.type))
        start = scalar_to_index(e, value, t)
        if t.is_signed:
            start = e.b.op(arith.MaxSIOp, start, e.b.integer(0))
        return e.variable(e.b.op(arith.MinSIOp, start, e.b.integer(highest)), 0, highest)

    return e.once(("start", i, index, highest), make)


@rule("dynamic-slice")
def _dynamic_slice(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    operand = i.operands[0]
    where = [
        position + clamped_start(e, start, (), size - length)
        for position, start, size, length in zip(index, i.operands[1:], operand.shape.dims, i.shape.dims, strict=True)
    ]
    return e.value(operand, e.simplify(tuple(where)))


def update_starts(e: FunctionEmitter, i: Instruction) -> list[Expr]:
    """The start of the update of a dynamic-update-slice."""
    sizes, update = i.operands[0].shape.dims, i.operands[1].shape.dims
    return [
        clamped_start(e, start, (), size - length)
        for start, size, length in zip(i.operands[2:], sizes, update, strict=True)
    ]


@rule("dynamic-update-slice")
def _dynamic_update_slice(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    operand, update = i.operands[:2]
    if not update.shape.num_elements:
        return e.value(operand, index)
    where = tuple(p - s for p, s in zip(index, update_starts(e, i), strict=True))
    inside = e.holds([(w, 0, size - 1) for w, size in zip(where, update.shape.dims, strict=True)])
    if inside is None:
        return e.value(update, e.simplify(where))
    return e.if_(inside, i.shape, lambda: e.value(update, e.simplify(where)), lambda: e.value(operand, index))


@rule("gather")
def _gather(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    operand, indices = i.operands
    starts: list[Expr] = []
    mapped: Sequence[int] = i.start_index_map
    sizes: Sequence[int] = i.slice_sizes
    if 0 in sizes:  # a window that collapses has no element
        t = i.shape.element_type
        return scalar_constant(e, np.zeros((), t.dtype), t)
    for component, d in enumerate(mapped):
        place = e.simplify(gather_start_index(i, index, Const(component)))
        starts.append(clamped_start(e, indices, place, operand.shape.dims[d] - sizes[d]))
    where, _ = gather_index(i, index, starts)
    return e.value(operand, e.simplify(where))
