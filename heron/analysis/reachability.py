"""Reachability: does one instruction of a computation come before another? Rows of bits, one Python int each."""

from __future__ import annotations

from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction


class Reachability:
    """For each instruction, the set of instructions it depends on (operands and control edges), itself included.

    The table describes the computation as it was when built; `add_edge` and `fuse` keep it true through the two
    changes fusion and copy insertion make.
    """

    __slots__ = ("_number", "_before", "_order")

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

    def __contains__(self, i: Instruction) -> bool:
        return i in self._number

    def reaches(self, a: Instruction, b: Instruction) -> bool:
        """Whether there is a path from `a` to `b` (an instruction reaches itself)."""
        return bool(self._before[self._number[b]] >> self._number[a] & 1)

    def connected(self, a: Instruction, b: Instruction) -> bool:
        """Whether one of the two must come before the other."""
        return self.reaches(a, b) or self.reaches(b, a)

    def add_edge(self, a: Instruction, b: Instruction) -> None:
        """Order `a` before `b`; there must be no path from `b` to `a`."""
        before, number = self._before, self._number
        bits, target = before[number[a]], number[b]
        if before[target] | bits == before[target]:
            return
        self._spread(bits, 1 << target)

    def fuse(self, kept: Instruction, gone: Instruction) -> None:
        """Record that `gone` became a part of `kept`: all that reached either reaches what follows either."""
        n, m = self._number[kept], self._number[gone]
        self._spread(self._before[n] | self._before[m], 1 << n | 1 << m)

    def replace(self, old: Instruction, new: Instruction) -> None:
        """Let `new` (not yet in the table) stand for `old`."""
        n = self._number.pop(old)
        self._number[new] = n
        self._order[n] = new

    def _spread(self, bits: int, targets: int) -> None:
        before = self._before
        for n, row in enumerate(before):
            if row & targets:
                before[n] = row | bits
