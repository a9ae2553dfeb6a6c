"""Sorting by keys on the CPU: a stable radix sort, least significant byte first; a work item is a row.

An entry of 64 bits holds 32 bits of an element's key and the element's position. Entries go from one half of a scratch
buffer to the other, a byte of the key at a time, each to the place its byte's count says; bytes that all elements have
in common are passed over. Longer keys, and several of them, are 32 bits at a time, the least significant first. In the
end elements are fetched from a copy of the row by the positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Const, Expr
from heron.codegen.heroes.base import Entry
from heron.codegen.heroes.iteration import for_, item_loop
from heron.codegen.heroes.sort import Sort
from heron.codegen.heroes.sort_keys import Key
from heron.codegen.kernel import Kernel, Launch
from heron.codegen.mlir_types import I64, INDEX, scalar_type
from heron.targets import Target

#: elements of a row from which on this is faster than merging: in all, and for each byte of the keys
LEAST, LEAST_PER_BYTE = 24, 10
#: a position has 32 bits
MOST = 1 << 31
_BUCKETS = 256


def is_worth(sort: Sort, keys: Sequence[Key]) -> bool:
    """Whether rows are long enough, and no longer than positions can say."""
    return max(LEAST, LEAST_PER_BYTE * sum(k.bits // 8 for k in keys)) <= sort.length < MOST


@dataclass(frozen=True, slots=True)
class _Word:
    """A part of a key: ``digits`` bytes from bit ``shift`` on."""

    key: Key
    shift: int
    digits: int


def emit(sort: Sort, keys: Sequence[Key], name: str, target: Target) -> Kernel:
    """The kernel."""
    frame = sort.frame_in_place(name, target)
    rows = sort.rows
    frame.outputs = item_loop(frame, rows, 0, rows, frame.outputs, lambda row, t: _Row(sort, keys, frame, row).sort(t))
    bits = " and ".join(str(k.bits) for k in keys)
    return frame.finish(
        Launch(work_items=max(rows, 1)), "sort", {"form": f"radix sort of {sort.length} by {bits} bits"}
    )


class _Row:
    """Sorts one row. ``halves`` is [2, length] entries, ``counts`` [4, 256] of bytes' values."""

    def __init__(self, sort: Sort, keys: Sequence[Key], frame: Entry, row: Expr) -> None:
        self.s, self.frame, self.e, self.row = sort, frame, frame.e, row
        self.n = sort.length
        self.words = [
            _Word(key, shift, min(4, (key.bits - shift) // 8))
            for key in reversed(keys)
            for shift in range(0, key.bits, 32)
        ]

    def sort(self, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """The tensors with the row in order."""
        b = self.e.b
        zero, length = b.integer(0), b.integer(self.n)
        copies = [self._scratch(scalar_type(o.shape.element_type), self.n) for o in self.s.i.operands]
        halves, counts = self._scratch(I64, 2, self.n), self._scratch(I64, 4, _BUCKETS)

        def keep(position: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            p = self._position(position)
            index = self.s.index(self.frame, self.row, p)
            return [self.e.insert(self.e.extract(t, index), c, (p,)) for t, c in zip(tensors, carried, strict=True)]

        copies = for_(self.frame, zero, length, copies, keep)
        half = zero
        for n, word in enumerate(self.words):
            half, halves, counts = self._sort_by(word, n == 0, copies, half, halves, counts)

        def fetch(position: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            p = self._position(position)
            origin = self._element(self._entry(halves, half, p))
            index = self.s.index(self.frame, self.row, p)
            return [self.e.insert(self.e.extract(c, (origin,)), t, index) for t, c in zip(carried, copies, strict=True)]

        return for_(self.frame, zero, length, tensors, fetch)

    def _sort_by(
        self, word: _Word, first: bool, copies: list[SSAValue], half: SSAValue, halves: SSAValue, counts: SSAValue
    ) -> list[SSAValue]:
        """The half the entries are in, the halves and the counts, with the entries in the order of a word."""
        b = self.e.b
        zero, digits = b.integer(0), b.integer(word.digits)
        halves, counts = self._count(word, first, copies, half, halves, self._clear(counts, word.digits))

        def digit(number: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            half, halves, counts = carried
            shift = b.op(arith.AddiOp, b.integer(32), b.op(arith.ShLIOp, number, b.integer(3)))
            shift = b.op(arith.IndexCastOp, shift, type=I64)
            d = self.e.variable(number, 0, 3)
            common = self.e.extract(counts, (d, self._digit(self._entry(halves, half, Const(0)), shift)))
            apart = b.op(arith.ExtUIOp, b.cmpi("ne", common, b.integer(self.n, I64)), type=I64)
            # a loop of one round or none
            times = b.op(arith.IndexCastOp, apart, type=INDEX)
            return for_(self.frame, zero, times, carried, lambda _, c: self._move(d, shift, *c))

        return for_(self.frame, zero, digits, [half, halves, counts], digit)

    def _count(
        self, word: _Word, first: bool, copies: list[SSAValue], half: SSAValue, halves: SSAValue, counts: SSAValue
    ) -> list[SSAValue]:
        """Entries with a word of their elements' keys, and how many have each value of each byte."""
        b = self.e.b

        def count(position: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            halves, counts = carried
            p = self._position(position)
            if first:
                origin, number = p, b.op(arith.IndexCastOp, position, type=I64)
            else:
                number = b.op(arith.AndIOp, self._entry(halves, half, p), b.integer((1 << 32) - 1, I64))
                origin = self._element(number)
            element = [self.e.extract(c, (origin,)) for c in copies]
            key = word.key.emit(self.e, self.s.i.to_apply, element)
            if word.shift:
                key = b.op(arith.ShRUIOp, key, b.integer(word.shift, I64))
            entry = b.op(arith.OrIOp, b.op(arith.ShLIOp, key, b.integer(32, I64)), number)
            halves = self.e.insert(entry, halves, (self._half(half), p))
            for d in range(word.digits):
                at = (Const(d), self._digit(entry, b.integer(32 + 8 * d, I64)))
                more = b.op(arith.AddiOp, self.e.extract(counts, at), b.integer(1, I64))
                counts = self.e.insert(more, counts, at)
            return [halves, counts]

        return for_(self.frame, b.integer(0), b.integer(self.n), [halves, counts], count)

    def _move(self, d: Expr, shift: SSAValue, half: SSAValue, halves: SSAValue, counts: SSAValue) -> list[SSAValue]:
        """The entries in the other half, in the order of byte `d` of their keys."""
        b = self.e.b
        zero, nothing = b.integer(0), b.integer(0, I64)

        def begin(value: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            before, counts = carried
            at = (d, self.e.variable(value, 0, _BUCKETS - 1))
            after = b.op(arith.AddiOp, before, self.e.extract(counts, at))
            return [after, self.e.insert(before, counts, at)]

        _, counts = for_(self.frame, zero, b.integer(_BUCKETS), [nothing, counts], begin)
        other = b.op(arith.XOrIOp, half, b.integer(1))

        def move(position: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            halves, counts = carried
            entry = self._entry(halves, half, self._position(position))
            at = (d, self._digit(entry, shift))
            place = self.e.extract(counts, at)
            counts = self.e.insert(b.op(arith.AddiOp, place, b.integer(1, I64)), counts, at)
            free = self._position(b.op(arith.IndexCastOp, place, type=INDEX))
            return [self.e.insert(entry, halves, (self._half(other), free)), counts]

        return [other, *for_(self.frame, zero, b.integer(self.n), [halves, counts], move)]

    # -- pieces ------------------------------------------------------------------------------------------------------
    def _scratch(self, type_: object, *sizes: int) -> SSAValue:
        return self.e.b.op(tensor.EmptyOp, type=TensorType(type_, list(sizes)))  # type: ignore[type-var]

    def _clear(self, counts: SSAValue, digits: int) -> SSAValue:
        b = self.e.b

        def clear(value: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            at, counts = self.e.variable(value, 0, _BUCKETS - 1), carried[0]
            for d in range(digits):
                counts = self.e.insert(b.integer(0, I64), counts, (Const(d), at))
            return [counts]

        return for_(self.frame, b.integer(0), b.integer(_BUCKETS), [counts], clear)[0]

    def _position(self, value: SSAValue) -> Expr:
        return self.e.variable(value, 0, self.n - 1)

    def _half(self, half: SSAValue) -> Expr:
        return self.e.variable(half, 0, 1)

    def _entry(self, halves: SSAValue, half: SSAValue, position: Expr) -> SSAValue:
        return self.e.extract(halves, (self._half(half), position))

    def _digit(self, entry: SSAValue, shift: SSAValue) -> Expr:
        b = self.e.b
        byte = b.op(arith.AndIOp, b.op(arith.ShRUIOp, entry, shift), b.integer(_BUCKETS - 1, I64))
        return self.e.variable(b.op(arith.IndexCastOp, byte, type=INDEX), 0, _BUCKETS - 1)

    def _element(self, entry: SSAValue) -> Expr:
        b = self.e.b
        number = b.op(arith.AndIOp, entry, b.integer((1 << 32) - 1, I64))
        return self._position(b.op(arith.IndexCastOp, number, type=INDEX))
