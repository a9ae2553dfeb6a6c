"""Sorting on the CPU: a stable bottom-up merge sort with the comparator in line; a work item is a row.

Runs of 16 are made by insertion into one half of a scratch buffer of two rows; each pass merges pairs of runs from one
half into the other without branches; the row is written back at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Region, SSAValue

from heron.analysis.indexing.expr import Const, Expr
from heron.codegen.elemental import Value
from heron.codegen.elemental.logic import select
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import for_, item_loop
from heron.codegen.emitters.sort.code import SortCode
from heron.codegen.ir.types import I64, INDEX, scalar_type
from heron.codegen.kernel import Kernel, Launch

RUN = 16


def emit(frame: Frame, sort: SortCode) -> Kernel:
    """The kernel. A work item is a row."""
    if sort.rows and sort.length > 1:
        rows = sort.rows
        frame.outputs = item_loop(
            frame, rows, 0, rows, frame.outputs, lambda row, t: MergedRow(sort, frame, row).sort(t)
        )
    return frame.finish(Launch(work_items=sort.rows), "sort", {"form": f"merge sort of {sort.length}"})


def scratch_of(sort: SortCode, frame: Frame, halves: int) -> list[SSAValue]:
    """An array for each operand, for the elements of `halves` rows."""
    return [frame.scratch(scalar_type(o.shape.element_type), halves, sort.length) for o in sort.i.operands]


class MergedRow:
    """Sorts one row. Scratch tensors are [2, length], one an operand; made unless given."""

    def __init__(self, sort: SortCode, frame: Frame, row: Expr, scratch: Sequence[SSAValue] | None = None) -> None:
        self.scratch = scratch
        self.s, self.frame, self.e = sort, frame, frame.e
        self.n = sort.length
        self.row = row
        self.passes = 0
        while RUN << self.passes < self.n:
            self.passes += 1

    def sort(self, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """The tensors with the row in order."""
        b = self.e.b
        scratch = self.scratch or scratch_of(self.s, self.frame, 2 if self.passes else 1)
        zero, length = b.integer(0), b.integer(self.n)
        scratch = for_(self.frame, zero, length, scratch, lambda start, t: self._run(tensors, start, t), b.integer(RUN))
        if self.passes:
            scratch = for_(self.frame, zero, b.integer(self.passes), scratch, self._pass)
        half = Const(self.passes % 2)

        def back(position: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            p = self._position(position)
            values = self._read(scratch, half, p)
            index = self.s.index(self.frame, self.row, p)
            return [self.e.insert(v, t, index) for v, t in zip(values, carried, strict=True)]

        return for_(self.frame, zero, length, tensors, back)

    def _position(self, value: SSAValue) -> Expr:
        return self.e.variable(value, 0, self.n - 1)

    def _read(self, scratch: Sequence[SSAValue], half: Expr, position: Expr) -> list[Value]:
        return [self.e.extract(t, (half, position)) for t in scratch]

    def _write(
        self, values: Sequence[Value], scratch: Sequence[SSAValue], half: Expr, position: Expr
    ) -> list[SSAValue]:
        return [self.e.insert(v, t, (half, position)) for v, t in zip(values, scratch, strict=True)]

    # -- insertion

    def _run(self, tensors: Sequence[SSAValue], start: SSAValue, scratch: Sequence[SSAValue]) -> list[SSAValue]:
        """Elements `start` to `start + RUN` of the row, put in order in half 0."""
        b = self.e.b
        end = b.op(arith.MinSIOp, b.op(arith.AddiOp, start, b.integer(RUN)), b.integer(self.n))

        def insert(position: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            index = self.s.index(self.frame, self.row, self._position(position))
            values = [self.e.extract(t, index) for t in tensors]
            place, moved = self._make_room(values, start, position, carried)
            return self._write(values, moved, Const(0), self._position(place))

        return for_(self.frame, start, end, scratch, insert)

    def _make_room(
        self, values: Sequence[Value], start: SSAValue, position: SSAValue, scratch: Sequence[SSAValue]
    ) -> tuple[SSAValue, Sequence[SSAValue]]:
        """Moves elements after `values` up by one; the place that is free, and the scratch."""
        b = self.e.b
        types = [INDEX, *(t.type for t in scratch)]
        test, shift = Block(arg_types=types), Block(arg_types=types)
        with self.e.region(test):
            below = b.op(arith.MaxSIOp, b.op(arith.SubiOp, test.args[0], b.integer(1)), b.integer(0))
            before = self.s.before(self.frame, values, self._read(test.args[1:], Const(0), self._position(below)))
            more = b.op(arith.AndIOp, b.cmpi("sgt", test.args[0], start), before)
            b.terminate(scf.ConditionOp, [more, *test.args])
        with self.e.region(shift):
            below = b.op(arith.SubiOp, shift.args[0], b.integer(1))
            lower = self._read(shift.args[1:], Const(0), self._position(below))
            moved = self._write(lower, shift.args[1:], Const(0), self._position(shift.args[0]))
            b.terminate(scf.YieldOp, [below, *moved])
        op = scf.WhileOp.create(
            operands=[position, *scratch], result_types=types, regions=[Region(test), Region(shift)]
        )
        results = b.add(op).results
        return results[0], results[1:]

    # -- merging

    def _pass(self, number: SSAValue, scratch: Sequence[SSAValue]) -> list[SSAValue]:
        """Merges neighbouring runs of length RUN << number from one half into the other."""
        b = self.e.b
        half = b.op(arith.AndIOp, number, b.integer(1))
        source = self.e.variable(half, 0, 1)
        target = self.e.variable(b.op(arith.XOrIOp, half, b.integer(1)), 0, 1)
        width = b.op(arith.ShLIOp, b.integer(RUN), number)
        length = b.integer(self.n)

        def merge(start: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            middle = b.op(arith.MinSIOp, b.op(arith.AddiOp, start, width), length)
            end = b.op(arith.MinSIOp, b.op(arith.AddiOp, middle, width), length)

            def element(position: SSAValue, state: Sequence[SSAValue]) -> list[SSAValue]:
                return self._merge_one(position, state, middle, end, source, target)

            return for_(self.frame, start, end, [start, middle, *carried], element)[2:]

        return for_(self.frame, b.integer(0), length, scratch, merge, b.op(arith.AddiOp, width, width))

    def _merge_one(
        self,
        position: SSAValue,
        state: Sequence[SSAValue],
        middle: SSAValue,
        end: SSAValue,
        source: Expr,
        target: Expr,
    ) -> list[SSAValue]:
        """The smaller of the two runs' first elements goes to `position`; of equals the left one, which keeps order."""
        b, (left, right, *scratch) = self.e.b, state
        last = b.integer(self.n - 1)
        a = self._read(scratch, source, self._position(b.op(arith.MinSIOp, left, last)))
        c = self._read(scratch, source, self._position(b.op(arith.MinSIOp, right, last)))
        none_left = b.cmpi("sge", left, middle)
        smaller = b.op(arith.OrIOp, none_left, self.s.before(self.frame, c, a))
        take_right = b.op(arith.AndIOp, b.cmpi("slt", right, end), smaller)
        taken = [select(self.e, take_right, x, y) for x, y in zip(c, a, strict=True)]
        stored = self._write(taken, scratch, target, self._position(position))
        step = b.op(arith.ExtUIOp, take_right, type=I64)
        step = b.op(arith.IndexCastOp, step, type=INDEX)
        right = b.op(arith.AddiOp, right, step)
        left = b.op(arith.AddiOp, left, b.op(arith.SubiOp, b.integer(1), step))
        return [left, right, *stored]
