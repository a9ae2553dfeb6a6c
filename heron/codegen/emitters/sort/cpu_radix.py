"""Sorting by keys on the CPU: a stable radix sort, least significant byte first; a work item is a row.

For each byte of the keys, the elements of a row go to scratch memory, each to the place its byte's count says, and back
in that order. All counts are made in one reading of the row, and bytes that all its elements have in common are passed
over. The scratch is as large as the row.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from heron.analysis.fusion.sort_keys import Key
from heron.analysis.indexing.expr import Const, Expr
from heron.codegen.elemental import Value
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import for_
from heron.codegen.emitters.sort.code import SortCode
from heron.codegen.emitters.sort.keys import emit_key
from heron.codegen.ir.types import I64, INDEX
from heron.codegen.kernel import Kernel, Launch
from heron.records import dataclass

#: elements of a row from which on this is faster than merging: in all, and for each byte of the keys
LEAST, LEAST_PER_BYTE = 24, 10
_BUCKETS = 256


def is_worth(sort: SortCode, keys: Sequence[Key]) -> bool:
    """Whether rows are long enough."""
    return sort.length >= max(LEAST, LEAST_PER_BYTE * sum(k.bits // 8 for k in keys))


def emit(frame: Frame, sort: SortCode, keys: Sequence[Key]) -> Kernel:
    """The kernel. A work item is a row."""
    sort.each_row(frame, lambda row, t, scratch: RadixRow(sort, keys, frame, row, scratch).sort(t))
    bits = " and ".join(str(k.bits) for k in keys)
    return frame.finish(Launch(work_items=sort.rows), "sort", {"form": f"radix sort of {sort.length} by {bits} bits"})


@dataclass(frozen=True, slots=True)
class _Digits:
    """The bytes of a key; the least significant one has row ``first`` of the counts."""

    key: Key
    first: int

    @property
    def count(self) -> int:
        return self.key.bits // 8


class RadixRow:
    """Sorts one row. The counts are [digits, 256]: how many elements have which value of which byte.

    ``scratch``: arrays for the row's elements; made unless given.
    """

    def __init__(
        self, sort: SortCode, keys: Sequence[Key], frame: Frame, row: Expr, scratch: Sequence[SSAValue]
    ) -> None:
        self.scratch = scratch or sort.scratch(frame)
        self.s, self.frame, self.e, self.row = sort, frame, frame.e, row
        self.n = sort.length
        self.keys: list[_Digits] = []
        self.digits = 0
        for key in reversed(keys):
            self.keys.append(_Digits(key, self.digits))
            self.digits += self.keys[-1].count

    def sort(self, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """The tensors with the row in order."""
        counts = self._count(tensors, self._clear(self.frame.scratch(I64, self.digits, _BUCKETS)))
        carried = [counts, *tensors, *self.scratch]
        for digits in self.keys:
            carried = self._sort_by(digits, carried)
        return carried[1 : 1 + len(tensors)]

    def _clear(self, counts: SSAValue) -> SSAValue:
        b = self.e.b

        def clear(value: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            at, counts = self._value(value), carried[0]
            for d in range(self.digits):
                counts = self.e.insert(b.integer(0, I64), counts, (Const(d), at))
            return [counts]

        return for_(self.frame, b.integer(0), b.integer(_BUCKETS), [counts], clear)[0]

    def _count(self, tensors: Sequence[SSAValue], counts: SSAValue) -> SSAValue:
        b = self.e.b

        def count(position: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            counts = carried[0]
            element = self._element(tensors, self._position(position))
            for digits in self.keys:
                key = self._key(digits, element)
                for d in range(digits.count):
                    at = (Const(digits.first + d), self._digit(key, b.integer(8 * d, I64)))
                    more = b.op(arith.AddiOp, self.e.read(counts, at), b.integer(1, I64))
                    counts = self.e.insert(more, counts, at)
            return [counts]

        return for_(self.frame, b.integer(0), b.integer(self.n), [counts], count)[0]

    def _sort_by(self, digits: _Digits, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """Counts, tensors and scratch with the elements in the order of a key."""
        b = self.e.b

        def digit(number: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            counts, tensors, _ = self._parts(carried)
            shift = b.op(arith.IndexCastOp, b.op(arith.ShLIOp, number, b.integer(3)), type=I64)
            d = self.e.simplify((self.e.variable(number, 0, digits.count - 1) + Const(digits.first),))[0]
            key = self._key(digits, self._element(tensors, Const(0)))
            common = self.e.read(counts, (d, self._digit(key, shift)))
            apart = b.op(arith.ExtUIOp, b.cmpi("ne", common, b.integer(self.n, I64)), type=I64)
            # a loop of one round or none
            times = b.op(arith.IndexCastOp, apart, type=INDEX)
            return for_(self.frame, b.integer(0), times, carried, lambda _, c: self._move(digits, d, shift, c))

        return for_(self.frame, b.integer(0), b.integer(digits.count), carried, digit)

    def _move(self, digits: _Digits, d: Expr, shift: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """Counts, tensors and scratch with the elements in the order of byte `d`."""
        b = self.e.b
        zero, length = b.integer(0), b.integer(self.n)
        counts, tensors, scratch = self._parts(carried)

        def begin(value: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            before, counts = carried
            at = (d, self._value(value))
            after = b.op(arith.AddiOp, before, self.e.read(counts, at))
            return [after, self.e.insert(before, counts, at)]

        _, counts = for_(self.frame, zero, b.integer(_BUCKETS), [b.integer(0, I64), counts], begin)

        def out(position: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            counts, *scratch = carried
            element = self._element(tensors, self._position(position))
            at = (d, self._digit(self._key(digits, element), shift))
            place = self.e.read(counts, at)
            counts = self.e.insert(b.op(arith.AddiOp, place, b.integer(1, I64)), counts, at)
            free = self._position(b.op(arith.IndexCastOp, place, type=INDEX))
            there = self.s.scratch_index(free)
            return [counts, *(self.e.insert(v, s, there) for v, s in zip(element, scratch, strict=True))]

        counts, *scratch = for_(self.frame, zero, length, [counts, *scratch], out)

        def back(position: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            p = self._position(position)
            index, there = self.s.index(self.frame, self.row, p), self.s.scratch_index(p)
            return [self.e.insert(self.e.extract(s, there), t, index) for t, s in zip(carried, scratch, strict=True)]

        return [counts, *for_(self.frame, zero, length, tensors, back), *scratch]

    # -- pieces ------------------------------------------------------------------------------------------------------
    def _parts(self, carried: Sequence[SSAValue]) -> tuple[SSAValue, Sequence[SSAValue], Sequence[SSAValue]]:
        """Counts, tensors, scratch."""
        middle = 1 + len(carried) // 2
        return carried[0], carried[1:middle], carried[middle:]

    def _position(self, value: SSAValue) -> Expr:
        return self.e.variable(value, 0, self.n - 1)

    def _value(self, value: SSAValue) -> Expr:
        return self.e.variable(value, 0, _BUCKETS - 1)

    def _element(self, tensors: Sequence[SSAValue], position: Expr) -> list[Value]:
        index = self.s.index(self.frame, self.row, position)
        return [self.e.extract(t, index) for t in tensors]

    def _key(self, digits: _Digits, element: Sequence[Value]) -> SSAValue:
        return emit_key(digits.key, self.e, self.s.i.to_apply, element)

    def _digit(self, key: SSAValue, shift: SSAValue) -> Expr:
        b = self.e.b
        byte = b.op(arith.AndIOp, b.op(arith.ShRUIOp, key, shift), b.integer(_BUCKETS - 1, I64))
        return self._value(b.op(arith.IndexCastOp, byte, type=INDEX))
