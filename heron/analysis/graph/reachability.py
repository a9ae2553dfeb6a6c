"""Reachability: does one instruction of a computation come before another? Rows of bits, one Python int each."""

from __future__ import annotations

from itertools import islice

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction


class Reachability:
    """For each instruction, the set of instructions it depends on (operands and control edges), itself included.

    The table describes the computation as it was when built; `add_edge` and `fuse` keep it true through the two
    changes fusion and copy insertion make. A change is written down, and a row gets the changes it has not seen when
    it is asked for: most rows never are.
    """

    __slots__ = ("_number", "_before", "_order", "_changes", "_changed", "_seen")

    def __init__(self, computation: Computation) -> None:
        self._order = computation.post_order()
        self._number = {i: n for n, i in enumerate(self._order)}
        self._before: list[int] = []
        number, before = self._number, self._before
        for n, i in enumerate(self._order):
            bits = 1 << n
            for operand in i.operands:
                bits |= before[number[operand]]
            for earlier in i.control_predecessors:
                bits |= before[number[earlier]]
            before.append(bits)
        self._changes: list[tuple[int, int]] = []  # (rows with one of these bits, get those bits)
        self._changed = 0  # all bits that changes go by
        self._seen = [0] * len(before)  # how many of the changes a row has

    def __contains__(self, i: Instruction) -> bool:
        return i in self._number

    def reaches(self, a: Instruction, b: Instruction) -> bool:
        """Whether there is a path from `a` to `b` (an instruction reaches itself)."""
        number = self._number
        return bool(self._row(number[b]) >> number[a] & 1)

    def connected(self, a: Instruction, b: Instruction) -> bool:
        """Whether one of the two must come before the other."""
        return self.reaches(a, b) or self.reaches(b, a)

    def add_edge(self, a: Instruction, b: Instruction) -> None:
        """Order `a` before `b`; there must be no path from `b` to `a`."""
        bits, target = self._row(self._number[a]), self._number[b]
        row = self._row(target)
        if row | bits != row:
            self._change(1 << target, bits)

    def fuse(self, kept: Instruction, gone: Instruction) -> None:
        """Record that `gone` became a part of `kept`: all that reached either reaches what follows either."""
        n, m = self._number[kept], self._number[gone]
        self._change(1 << n | 1 << m, self._row(n) | self._row(m))

    def replace(self, old: Instruction, new: Instruction) -> None:
        """Let `new` (not yet in the table) stand for `old`."""
        n = self._number.pop(old)
        self._number[new] = n
        self._order[n] = new

    def _change(self, targets: int, bits: int) -> None:
        self._changes.append((targets, bits))
        self._changed |= targets

    def _row(self, n: int) -> int:
        """The instructions before number `n`, with all changes applied."""
        row, seen = self._before[n], self._seen[n]
        if seen == len(self._changes) or not row & self._changed:
            return row
        for targets, bits in islice(self._changes, seen, None):
            if row & targets:
                row |= bits
        self._before[n], self._seen[n] = row, len(self._changes)
        return row
