"""Kernels by rows on the CPU: from the second time on a row is in the cache.

Functions that take long and are needed again by a later stage are computed once: their values are kept for the row.
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
from heron.codegen.emitters.partial_sums import Body, reduced
from heron.codegen.emitters.rowwise.stage import StageCode
from heron.codegen.ir.dialects.xla_gpu import LoopOp
from heron.codegen.ir.types import scalar_type
from heron.codegen.kernel import STACK_BYTES, Kernel, Launch
from heron.hlo.ir.instruction import Instruction

#: flops of a division, which 16 numbers at a time keep the processor from all else for 16 cycles
_LONG = 4
#: elements of a row that fill so little of a vector that loops along it are written out
_SHORT = 8


def emit(frame: Frame, rows: RowwiseForm) -> Kernel:
    """The kernel that does a row a work item."""
    e, count = frame.e, rows.count
    stages = stages_of(frame.fusion, rows, _takes_long)
    kept = list(dict.fromkeys(i for stage in stages for i in stage.saved))
    if prod(rows.row_sizes) * sum(i.shape.element_type.byte_size for i in kept) > STACK_BYTES:
        stages, kept = stages_of(frame.fusion, rows, lambda _: False), []

    def row(item: Expr, carried: Sequence[SSAValue]) -> list[SSAValue]:
        place = e.simplify(delinearize(item, rows.sizes))
        # variables of their own: what reads a reduction finds it by its index
        at = tuple(e.variable(v, 0, size - 1) for v, size in zip(e.index_values(place), rows.sizes, strict=True))
        room = {i: frame.scratch(scalar_type(i.shape.element_type), *rows.row_sizes) for i in kept}
        for stage in stages:
            _reduce(frame, rows, stage, at, room)
        outputs = list(carried)
        # all values before the first store: an output may have the buffer of what another one reads
        values = [e.value(frame.fusion.outputs[n].instruction, at) for n in rows.narrow]
        for n, value in zip(rows.narrow, values, strict=True):
            outputs[n] = e.insert(value, outputs[n], at)

        def along(v: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            index = (*at, *v)
            for i in stages[-1].given:
                e.provide(i, index, e.extract(room[i], v))
            values = [e.value(frame.fusion.outputs[n].instruction, index) for n in rows.wide]
            return [e.insert(value, t, index) for value, t in zip(values, tensors, strict=True)]

        stored = _loop(e, rows.row_sizes, [outputs[n] for n in rows.wide], along) if rows.wide else []
        for n, t in zip(rows.wide, stored, strict=True):
            outputs[n] = t
        return outputs

    frame.outputs = item_loop(frame, count, 0, count, frame.outputs, row)
    names = ", ".join(i.name for i in rows.reduces)
    notes = {"form": f"rows of {rows.row}", "reduces": names}
    if kept:
        notes["kept"] = ", ".join(i.name for i in kept)
    return frame.finish(Launch(work_items=count), "rows", notes)


def _reduce(frame: Frame, rows: RowwiseForm, stage: Stage, at: Index, room: dict[Instruction, SSAValue]) -> None:
    """One loop along a row for the reductions of a stage and the elements it keeps in `room`, which is replaced."""
    code = StageCode(frame.e, [Reducer.in_parts(i, keys=True) for i in stage.reduces], stage.given, (), stage.saved)
    if not code.reducers:
        return
    start = code.start()

    def element(v: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        return code.element((*at, *v), v, room, carried)

    inits = [*start, *(room[i] for i in stage.saved)]
    results = reduced(frame.e, code.reducers, rows.row_sizes, inits, element, loop=partial(_loop, frame.e))
    room |= zip(stage.saved, results[len(start) :], strict=True)
    code.finish(at, results[: len(start)])


def _loop(e: FunctionEmitter, sizes: Sequence[int], inits: Sequence[SSAValue], body: Body) -> list[SSAValue]:
    """A loop along a row. A short one is written out: vectors then go across rows, and nothing is added up in them."""
    results = e.loop(sizes, inits, body)
    if 1 < prod(sizes) <= _SHORT and isinstance(loop := results[0].owner, LoopOp):
        loop.attributes["heron.short"] = UnitAttr()
    return results


def _takes_long(i: Instruction) -> bool:
    """Whether to compute an element again takes much longer than to read it from the first cache."""
    return i.op.is_elementwise and i.op.flops >= _LONG
