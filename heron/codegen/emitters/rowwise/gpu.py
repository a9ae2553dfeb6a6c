"""Kernels by rows on the GPU: the threads of a row keep its elements in registers from one reduction to the next.

A warp or a block does a row, and short rows share warps. Each thread has vectors of neighbouring elements; reductions
are combined by shuffles and, between warps, through shared memory, so that all threads of the row have the results. A
row of more elements than registers hold is read again instead: it comes from the core's or the chip's cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.fusion.rowwise import RowwiseForm, Stage, kept_words, stages_of
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize, operand_index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental import Value
from heron.codegen.elemental.movement import scalar_constant
from heron.codegen.elemental.reducer import Reducer
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.gpu_sums import PartialSums, accumulator_bytes, rounds
from heron.codegen.emitters.loops import WARPS_PER_BLOCK
from heron.codegen.emitters.rowwise.stage import StageCode
from heron.codegen.ir.types import scalar_type
from heron.codegen.kernel import Kernel, Launch
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import scalar
from heron.records import dataclass
from heron.targets import WARP, Target

#: bytes a thread reads at once
ACCESS = 16
#: elements a thread has where there are rows enough, and 32-bit words of them it keeps
ELEMENTS = 16
WORDS = 16
#: threads that share a row at least, so that neighbouring threads read neighbouring elements
LANES = 8
#: the part of a core's registers that may keep a row (less of it where arithmetic of 64 bits takes registers in pairs);
#: rounds in which a thread walks along it, all written out
ROOM, ROOM_64 = 1 / 2, 3 / 8
ROUNDS = 16
#: the part of the threads a GPU can have under way that rows should give, if they are long enough
WANTED = 1 / 4


@dataclass(frozen=True, slots=True)
class Plan:
    """``threads`` share a row, each reads ``vector`` neighbours at once; ``per_block`` rows share a block of ``block``
    threads. ``keeps``: elements stay in registers between stages."""

    vector: int
    threads: int
    per_block: int
    block: int
    keeps: bool

    @staticmethod
    def of(row: int, rows: int, widest: int, words: int, room: float, target: Target) -> Plan:
        """A plan for `rows` rows of `row` elements: the widest array has `widest` bytes an element, `words` are kept of
        each, and the code for one may be written out `room` times."""
        vector = max(1, ACCESS // widest)
        while row % vector or vector > max(1.0, room):
            vector //= 2
        parts, most = row // vector, min(1024, target.threads_per_block)
        full = _power(parts)
        each = max(1, int(min(ELEMENTS, WORDS // max(1, words), room)) // vector)
        threads = min(most, max(_power(-(-parts // each)), min(LANES, full)))
        wanted = target.cores * target.threads_per_core * WANTED
        while threads * 2 <= min(most, full) and rows * threads < wanted:
            threads *= 2
        turns = -(-parts // threads)
        registers = target.registers_per_core * (ROOM_64 if widest > 4 else ROOM)
        keeps = turns <= ROUNDS and turns * vector <= room and turns * vector * threads * words <= registers
        per_block = max(1, min(WARPS_PER_BLOCK * WARP // threads, _power(rows)))
        if threads * per_block < WARP:  # shuffles want whole warps
            per_block = WARP // threads
        return Plan(vector, threads, per_block, threads * per_block, keeps)


def emit(frame: Frame, rows: RowwiseForm) -> Kernel:
    """The kernel that does a row with a group of threads."""
    stages = stages_of(frame.fusion, rows)
    plan = Plan.of(rows.row, rows.count, _widest(frame, rows), kept_words(stages), frame.room, frame.target)
    grid = -(-rows.count // plan.per_block)
    walk = _Walk.of(frame, rows, plan, grid)
    for number, stage in enumerate(stages):
        walk.do(stage, number)
    walk.finish()
    reducers = [Reducer.in_parts(i) for i in rows.reduces]
    shared = plan.block // WARP * accumulator_bytes(reducers) if plan.threads > WARP else 0
    notes = {
        "form": f"rows of {rows.row}",
        "reduces": ", ".join(i.name for i in rows.reduces),
        "threads": str(plan.threads),
        "vector": str(plan.vector),
        "row": "in registers" if plan.keeps else "read again",
    }
    return frame.finish(Launch((grid, 1, 1), (plan.block, 1, 1), shared), "rows", notes)


@dataclass(slots=True)
class _Walk:
    """A row's threads going along it, once a stage.

    ``at``: the row's index; ``exists``: what holds where there is such a row. ``kept``: the elements a thread keeps.
    """

    frame: Frame
    rows: RowwiseForm
    plan: Plan
    thread: Expr
    lane: Expr
    at: Index
    exists: list[Constraint]
    kept: dict[Instruction, SSAValue]

    @staticmethod
    def of(frame: Frame, rows: RowwiseForm, plan: Plan, grid: int) -> _Walk:
        e, count = frame.e, rows.count
        thread = e.variable(frame.thread_id(), 0, plan.block - 1)
        block = e.variable(frame.block_id(), 0, grid - 1)
        number, lane = e.simplify((block * plan.per_block + thread // plan.threads, thread % plan.threads))
        exists: list[Constraint] = [(number, 0, count - 1)] if count % plan.per_block else []
        # a variable of its own, which lies among the rows wherever it is used
        place = e.variable(e.index_value(number), 0, count - 1)
        return _Walk(frame, rows, plan, thread, lane, e.simplify(delinearize(place, rows.sizes)), exists, {})

    def do(self, stage: Stage, number: int) -> None:
        """Emit a stage: its reductions and its outputs."""
        frame, e, plan = self.frame, self.frame.e, self.plan
        given, saved = (stage.given, stage.saved) if plan.keeps else ((), ())
        for value in stage.spread:
            self._spread(value)
        outputs = [frame.fusion.outputs[n].instruction for n in stage.outputs]
        code = StageCode(e, [Reducer.in_parts(i) for i in stage.reduces], given, outputs, saved)
        start = code.start()
        inits = [*start, *(frame.outputs[n] for n in stage.outputs), *map(self._room, saved)]
        first, then = len(start), len(start) + len(outputs)

        def element(turn: Expr, v: Expr, carried: Sequence[SSAValue]) -> list[SSAValue]:
            place = ((turn * plan.threads + self.lane) * plan.vector) + v
            index = e.simplify((*self.at, *delinearize(place, self.rows.row_sizes)))
            slot = e.simplify((turn * plan.vector + v,))
            return code.element(index, slot, self.kept, carried)

        parts = self.rows.row // plan.vector
        results = rounds(frame, parts, plan.threads, self.lane, plan.vector, self.exists, inits, element)
        for n, result in zip(stage.outputs, results[first:then], strict=True):
            frame.outputs[n] = result
        self.kept |= zip(saved, results[then:], strict=True)
        if code.reducers:
            sums = PartialSums.of(frame, code.reducers, number)
            code.finish(self.at, sums.for_all(results[:first], self.thread, plan.threads, plan.per_block))

    def finish(self) -> None:
        """Store the outputs of one element a row, by the row's first thread."""
        frame, e, narrow = self.frame, self.frame.e, self.rows.narrow

        def store(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            values = [e.value(frame.fusion.outputs[n].instruction, self.at) for n in narrow]
            return [e.insert(v, t, self.at) for v, t in zip(values, tensors, strict=True)]

        if narrow:
            inits = [frame.outputs[n] for n in narrow]
            results = e.loop([], inits, store, lambda _: [*self.exists, (self.lane, 0, 0)])
            for n, result in zip(narrow, results, strict=True):
                frame.outputs[n] = result

    def _room(self, i: Instruction) -> SSAValue:
        """An array for a thread's elements of `i`."""
        turns = -(-self.rows.row // (self.plan.vector * self.plan.threads))
        type_ = TensorType(scalar_type(i.shape.element_type), [turns * self.plan.vector])
        return self.frame.e.b.op(tensor.EmptyOp, type=type_)

    def _spread(self, broadcast: Instruction) -> None:
        """Compute a value of the row, once for all its elements."""
        e, i = self.frame.e, broadcast.operands[0]
        somewhere = (Const(0),) * len(self.rows.row_sizes)
        index = e.simplify(operand_index(broadcast, 0, (*self.at, *somewhere)))
        condition = e.holds(self.exists)
        if condition is None:
            e.value(i, index)
            return

        def nothing() -> Value:
            return scalar_constant(e, 0, i.shape.element_type)

        e.provide(i, index, e.if_(condition, scalar(i.shape.element_type), lambda: e.value(i, index), nothing))


def _widest(frame: Frame, rows: RowwiseForm) -> int:
    """Bytes of an element of the widest array that a row is read from or written to."""
    shapes = [p.shape for p in frame.fusion.inputs] + [o.shape for o in frame.fusion.outputs]
    elements = prod(rows.dims)
    return max((s.element_type.byte_size or 1 for s in shapes if s.num_elements == elements), default=4)


def _power(n: int) -> int:
    """The power of two that is no less."""
    return 1 << max(n - 1, 0).bit_length()
