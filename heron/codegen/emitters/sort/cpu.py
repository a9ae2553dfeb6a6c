"""Sorting on the CPU: a stable bottom-up merge sort with the comparator in line; a work item is a row.

Runs of 16 are made by insertion where the row lies. Each pass merges pairs of neighbouring runs without branches: the
left one is copied to scratch memory, which is as large as the row, and both go where they were. A row whose elements do
not follow each other in memory is sorted in scratch memory of its own and written back at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Region, SSAValue

from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental import Value
from heron.codegen.elemental.logic import select
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import for_
from heron.codegen.emitters.sort.code import SortCode
from heron.codegen.ir.types import I64, INDEX
from heron.codegen.kernel import Kernel, Launch

RUN = 16

#: gives the index of a position
_At = Callable[[SSAValue], Index]


def emit(frame: Frame, sort: SortCode) -> Kernel:
    """The kernel. A work item is a row."""
    if sort.rows and sort.length > 1:
        sort.each_row(frame, lambda row, t, scratch: MergedRow(sort, frame, row, scratch).sort(t))
    return frame.finish(Launch(work_items=sort.rows), "sort", {"form": f"merge sort of {sort.length}"})


class MergedRow:
    """Sorts one row. ``scratch``: arrays for its elements, made where there are runs to merge unless given."""

    def __init__(self, sort: SortCode, frame: Frame, row: Expr, scratch: Sequence[SSAValue]) -> None:
        self.scratch = scratch
        self.s, self.frame, self.e = sort, frame, frame.e
        self.n = sort.length
        self.row = row
        self.is_apart = prod(sort.sizes[sort.d + 1 :]) > 1  # elements of other rows lie in between
        self.passes = 0
        while RUN << self.passes < self.n:
            self.passes += 1

    def sort(self, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """The tensors with the row in order."""
        b = self.e.b
        zero, length = b.integer(0), b.integer(self.n)
        given = tensors if self.is_apart else None
        row = self.s.scratch(self.frame) if self.is_apart else list(tensors)
        row = for_(self.frame, zero, length, row, lambda start, t: self._run(given, start, t), b.integer(RUN))
        if self.passes:
            left = self.scratch or self.s.scratch(self.frame)
            row = for_(self.frame, zero, b.integer(self.passes), [*row, *left], self._pass)[: len(row)]
        if not self.is_apart:
            return row
        return for_(self.frame, zero, length, tensors, lambda p, t: self._copy(row, self._place, t, self._home, p))

    def _position(self, value: SSAValue) -> Expr:
        return self.e.variable(value, 0, self.n - 1)

    def _home(self, value: SSAValue) -> Index:
        """The index of a position of the row where the row was given."""
        return self.s.index(self.frame, self.row, self._position(value))

    def _scratch(self, value: SSAValue) -> Index:
        """The index of a position of the row in scratch memory."""
        return self.s.scratch_index(self._position(value))

    def _place(self, value: SSAValue) -> Index:
        """The index of a position of the row where it is sorted."""
        return self._scratch(value) if self.is_apart else self._home(value)

    def _read(self, tensors: Sequence[SSAValue], index: Index) -> list[Value]:
        return [self.e.extract(t, index) for t in tensors]

    def _write(self, values: Sequence[Value], tensors: Sequence[SSAValue], index: Index) -> list[SSAValue]:
        return [self.e.insert(v, t, index) for v, t in zip(values, tensors, strict=True)]

    def _copy(
        self, source: Sequence[SSAValue], read: _At, target: Sequence[SSAValue], written: _At, position: SSAValue
    ) -> list[SSAValue]:
        return self._write(self._read(source, read(position)), target, written(position))

    # -- insertion

    def _run(self, given: Sequence[SSAValue] | None, start: SSAValue, row: Sequence[SSAValue]) -> list[SSAValue]:
        """Elements `start` to `start + RUN` of the row, put in order; they come from ``given`` if they lie there."""
        b = self.e.b
        end = b.op(arith.MinSIOp, b.op(arith.AddiOp, start, b.integer(RUN)), b.integer(self.n))

        def insert(position: SSAValue, row: Sequence[SSAValue]) -> list[SSAValue]:
            values = self._read(row if given is None else given, self._home(position))
            place, moved = self._make_room(values, start, position, row)
            return self._write(values, moved, self._place(place))

        return for_(self.frame, start, end, row, insert)

    def _make_room(
        self, values: Sequence[Value], start: SSAValue, position: SSAValue, row: Sequence[SSAValue]
    ) -> tuple[SSAValue, Sequence[SSAValue]]:
        """Moves elements after `values` up by one; the place that is free, and the row."""
        b = self.e.b
        types = [INDEX, *(t.type for t in row)]
        test, shift = Block(arg_types=types), Block(arg_types=types)
        with self.e.region(test):
            below = b.op(arith.MaxSIOp, b.op(arith.SubiOp, test.args[0], b.integer(1)), b.integer(0))
            before = self.s.before(self.frame, values, self._read(test.args[1:], self._place(below)))
            more = b.op(arith.AndIOp, b.cmpi("sgt", test.args[0], start), before)
            b.terminate(scf.ConditionOp, [more, *test.args])
        with self.e.region(shift):
            below = b.op(arith.SubiOp, shift.args[0], b.integer(1))
            lower = self._read(shift.args[1:], self._place(below))
            moved = self._write(lower, shift.args[1:], self._place(shift.args[0]))
            b.terminate(scf.YieldOp, [below, *moved])
        op = scf.WhileOp.create(operands=[position, *row], result_types=types, regions=[Region(test), Region(shift)])
        results = b.add(op).results
        return results[0], results[1:]

    # -- merging

    def _pass(self, number: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """Merges neighbouring runs of length RUN << number; of the row and scratch tensors."""
        b = self.e.b
        width = b.op(arith.ShLIOp, b.integer(RUN), number)
        length = b.integer(self.n)

        def merge(start: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            row, left = self._parts(carried)
            middle = b.op(arith.MinSIOp, b.op(arith.AddiOp, start, width), length)
            end = b.op(arith.MinSIOp, b.op(arith.AddiOp, middle, width), length)
            stop = b.op(arith.SelectOp, b.cmpi("slt", middle, end), end, start, type=INDEX)  # a run alone stays
            left = for_(
                self.frame, start, b.op(arith.MinSIOp, middle, stop), left,
                lambda p, t: self._copy(row, self._place, t, self._scratch, p),
            )  # fmt: skip

            def element(position: SSAValue, state: Sequence[SSAValue]) -> list[SSAValue]:
                return self._merge_one(position, state, middle, end, left)

            return [*for_(self.frame, start, stop, [start, middle, *row], element)[2:], *left]

        return for_(self.frame, b.integer(0), length, carried, merge, b.op(arith.AddiOp, width, width))

    def _parts(self, carried: Sequence[SSAValue]) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        """The row, and scratch."""
        return carried[: len(carried) // 2], carried[len(carried) // 2 :]

    def _merge_one(
        self, position: SSAValue, state: Sequence[SSAValue], middle: SSAValue, end: SSAValue, left: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The smaller of the two runs' first elements goes to `position`; of equals the left one, which keeps order.

        No element of the right run is overwritten before it is read: `other` is never below `position`.
        """
        b, (one, other, *row) = self.e.b, state
        last = b.integer(self.n - 1)
        a = self._read(left, self._scratch(b.op(arith.MinSIOp, one, last)))
        c = self._read(row, self._place(b.op(arith.MinSIOp, other, last)))
        none_left = b.cmpi("sge", one, middle)
        smaller = b.op(arith.OrIOp, none_left, self.s.before(self.frame, c, a))
        take_right = b.op(arith.AndIOp, b.cmpi("slt", other, end), smaller)
        taken = [select(self.e, take_right, x, y) for x, y in zip(c, a, strict=True)]
        stored = self._write(taken, row, self._place(position))
        step = b.op(arith.ExtUIOp, take_right, type=I64)
        step = b.op(arith.IndexCastOp, step, type=INDEX)
        other = b.op(arith.AddiOp, other, step)
        one = b.op(arith.AddiOp, one, b.op(arith.SubiOp, b.integer(1), step))
        return [one, other, *stored]
