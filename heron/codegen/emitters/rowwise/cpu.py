"""Kernels by rows on the CPU: from the second time on a row is in the cache.

Functions that take long and are needed again by a later stage are computed once: their values are kept for the row.

Rows of a few vectors, where they take functions, are done in blocks (`cpu_blocks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from heron.analysis.fusion.rowwise import RowwiseForm, Stage, stages_of
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.elemental import FunctionEmitter
from heron.codegen.elemental.reducer import Reducer
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import item_loop
from heron.codegen.emitters.partial_sums import Body, Loop, reduced
from heron.codegen.emitters.rowwise.cpu_blocks import Blocks, block_of
from heron.codegen.emitters.rowwise.cpu_walk import RowWalk
from heron.codegen.emitters.rowwise.stage import StageCode
from heron.codegen.ir.dialects.xla_gpu import LoopOp
from heron.codegen.ir.types import scalar_type
from heron.codegen.kernel import STACK_BYTES, Kernel, Launch
from heron.hlo.ir.instruction import Instruction

#: flops of a division, which 16 numbers at a time keep the processor from all else for 16 cycles
_LONG = 4
#: elements of a row that are so few that loops along it are written out: here, by LLVM, and by LLVM where little is
#: read and stored
_FEW, _SHORT, _SHORTER_THAN_VECTORS = 4, 6, 8
#: bits of a vector, of which a short row fills a part, and arrays along the row to one reduction where "little" ends
_VECTOR_BITS, _ARRAYS = 512, 2
#: rows side by side that vectors are worth a loop of their own for, and work items that there should be
_VECTOR, _FEWEST = 16, 16


def emit(frame: Frame, rows: RowwiseForm) -> Kernel:
    """The kernel that does a row a work item, or all rows that lie beside each other along the last dimension but
    the row's own."""
    e, count, short = frame.e, rows.count, _is_short(frame, rows)
    side_by_side = _side_by_side(frame, rows) if short else 1
    walk, loop = RowWalk(frame, rows), partial(_loop, e, short)
    stages = stages_of(frame.fusion, rows, _takes_long if rows.row > _FEW else lambda _: False)
    kept = list(dict.fromkeys(i for stage in stages for i in stage.saved))
    block = 1 if short else block_of(frame, rows)
    if block * rows.row * sum(i.shape.element_type.byte_size for i in kept) > STACK_BYTES:
        stages, kept = stages_of(frame.fusion, rows, lambda _: False), []
    names = ", ".join(i.name for i in rows.reduces)
    notes = {"form": f"rows of {rows.row}", "reduces": names}
    if kept:
        notes["kept"] = ", ".join(i.name for i in kept)
    if block > 1:
        notes["form"] += f", {block} in a block"
        blocks = Blocks(frame, rows, walk, stages, kept, block)
        frame.outputs = item_loop(frame, blocks.count, 0, blocks.count, frame.outputs, blocks.emit)
        return frame.finish(Launch(work_items=blocks.count), "rows", notes)

    def row(place: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        # variables of their own: what reads a reduction finds it by its index
        at = tuple(e.variable(v, 0, size - 1) for v, size in zip(e.index_values(place), rows.sizes, strict=True))
        room = {i: frame.scratch(scalar_type(i.shape.element_type), *walk.sizes) for i in kept}
        for stage in stages:
            _reduce(frame, walk, stage, at, room, loop)
        outputs = list(carried)
        # all values before the first store: an output may have the buffer of what another one reads
        values = [e.value(frame.fusion.outputs[n].instruction, at) for n in rows.narrow]
        for n, value in zip(rows.narrow, values, strict=True):
            outputs[n] = e.insert(value, outputs[n], at)

        def along(v: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            index = walk.index(e, at, v)
            for i in stages[-1].given:
                e.provide(i, index, e.extract(room[i], v))
            values = [e.value(frame.fusion.outputs[n].instruction, index) for n in rows.wide]
            return [e.insert(value, t, index) for value, t in zip(values, tensors, strict=True)]

        stored = loop(walk.sizes, [outputs[n] for n in rows.wide], along) if rows.wide else []
        for n, t in zip(rows.wide, stored, strict=True):
            outputs[n] = t
        return outputs

    items, sizes = count // side_by_side, rows.sizes[:-1] if side_by_side > 1 else rows.sizes

    def work(item: Expr, carried: Sequence[SSAValue]) -> list[SSAValue]:
        outer = e.simplify(delinearize(item, sizes))
        if side_by_side == 1:
            return row(outer, carried)
        return e.loop([side_by_side], carried, lambda v, c: row((*outer, *v), c))

    frame.outputs = item_loop(frame, items, 0, items, frame.outputs, work)
    if side_by_side > 1:
        notes["form"] += f", {side_by_side} side by side"
    return frame.finish(Launch(work_items=items), "rows", notes)


def _is_short(frame: Frame, rows: RowwiseForm) -> bool:
    """Whether vectors go across rows. Arrays are then turned round in registers, element by element of a row, and
    nothing is added up within a vector."""
    if rows.row <= _SHORT:
        return True
    arrays = sum(i.shape.dims == rows.dims for i in frame.fusion.inputs) + len(rows.wide)
    bits = max(i.operands[0].shape.element_type.bits for i in rows.reduces)
    if rows.row > _SHORTER_THAN_VECTORS or rows.row * bits >= _VECTOR_BITS:
        return False
    return arrays <= _ARRAYS * len(rows.reduces)


def _side_by_side(frame: Frame, rows: RowwiseForm) -> int:
    """Short rows of a work item. Vectors go across them, along a loop of their own: what is spread over other
    dimensions of the rows would be found by a division for each of them."""
    if len(rows.sizes) < 2 or frame.fusion.parts:
        return 1
    last = rows.sizes[-1]
    return last if last >= _VECTOR and rows.count // last >= _FEWEST else 1


def _reduce(
    frame: Frame, walk: RowWalk, stage: Stage, at: Index, room: dict[Instruction, SSAValue], loop: Loop
) -> None:
    """One loop along a row for the reductions of a stage and the elements it keeps in `room`, which is replaced."""
    code = StageCode(frame.e, [Reducer.in_parts(i, keys=True) for i in stage.reduces], stage.given, (), stage.saved)
    if not code.reducers:
        return
    start = code.start()

    def element(v: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        return code.element(walk.index(frame.e, at, v), v, room, carried)

    inits = [*start, *(room[i] for i in stage.saved)]
    results = reduced(frame.e, code.reducers, walk.sizes, inits, element, loop=loop)
    room |= zip(stage.saved, results[len(start) :], strict=True)
    code.finish(at, results[: len(start)])


def _loop(
    e: FunctionEmitter, short: bool, sizes: Sequence[int], inits: Sequence[SSAValue], body: Body
) -> list[SSAValue]:
    """A loop along a row, which is written out if that is ``short``.

    One of few elements is written out here: what stages have in common is then computed and read once.
    """
    if prod(sizes) <= _FEW:
        return e.box(sizes, inits, body)
    results = e.loop(sizes, inits, body)
    if short and isinstance(loop := results[0].owner, LoopOp):
        loop.attributes["heron.short"] = UnitAttr()
    return results


def _takes_long(i: Instruction) -> bool:
    """Whether to compute an element again takes much longer than to read it from the first cache."""
    return i.op.is_elementwise and i.op.flops >= _LONG
