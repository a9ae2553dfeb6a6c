"""Scatters on the CPU: the updates one after the other, window elements innermost.

Work items are parts of the window, so that no two of them touch one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from xdsl.ir import SSAValue

from heron.analysis.fusion.scatter import Scatter
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental.float_pick import pick, picks
from heron.codegen.elemental.values import scalar_of
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import item_loop
from heron.codegen.emitters.scatter.code import combine, place_of
from heron.codegen.kernel import Kernel, Launch
from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction

#: window elements a work item takes at least
MIN_PART = 64


def emit(frame: Frame, s: Scatter) -> Kernel:
    """The kernel."""
    e = frame.e
    _copy_computed_operands(frame, s)
    parts, part = _window_parts(s)
    window_sizes = [s.sizes[d] for d in s.window]
    if part:
        window_sizes[-1] = part

    def all_updates(item: Expr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        batch_sizes = [s.sizes[d] for d in s.batch]
        each = partial(update, item)
        return e.loop(batch_sizes, carried, each) if batch_sizes else each((), carried)

    def update(item: Expr, batch: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        first: list[Expr] = [Const(0)] * len(s.sizes)
        for d, v in zip(s.batch, batch, strict=True):
            first[d] = v
        if part:
            first[s.window[-1]] = item * part
        start, constraints = place_of(e, s, e.simplify(tuple(first)))

        def element(window: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            index = list(first)
            for d, v in zip(s.window, window, strict=True):
                index[d] = index[d] + v
            at = e.simplify(tuple(index))
            where, _ = place_of(e, s, at)
            values = [e.value(u, at) for u in s.updates]
            opcode = combiner(s.i.to_apply) or ""
            if not picks(opcode, s.updates[0].shape.element_type):
                return combine(frame, s, where, values, tensors)
            current, value = e.extract(tensors[0], where), scalar_of(values[0])
            return [e.insert(pick(e, opcode, scalar_of(current), value), tensors[0], where)]

        def inside(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return e.loop(window_sizes, tensors, element) if window_sizes else element((), tensors)

        return e.loop([], carried, inside, lambda _: constraints)

    if prod(s.sizes):
        frame.outputs[:] = item_loop(frame, parts, 0, parts, frame.outputs, all_updates)
    return frame.finish(Launch(work_items=parts), "scatter", {"parts": str(parts)})


def _window_parts(s: Scatter) -> tuple[int, int]:
    """Into how many parts the last window dimension is cut for the work items, and their length (0: not cut)."""
    if not s.window or any(o.opcode != "parameter" for o in s.operands):
        return 1, 0
    length = s.sizes[s.window[-1]]
    if prod(s.sizes) < 1 << 15:
        return 1, 0
    for parts in (16, 8, 4, 2):
        if length % parts == 0 and length // parts >= MIN_PART:
            return parts, length // parts
    return 1, 0


def _copy_computed_operands(frame: Frame, s: Scatter) -> None:
    """An operand computed in the fusion is written to the output before the updates."""
    for n, operand in enumerate(s.operands):
        if operand.opcode == "parameter":
            continue

        def element(index: Index, carried: Sequence[SSAValue], operand: Instruction = operand) -> list[SSAValue]:
            return [frame.e.insert(frame.e.value(operand, index), carried[0], index)]

        frame.outputs[n : n + 1] = frame.e.loop(operand.shape.dims, [frame.outputs[n]], element)
