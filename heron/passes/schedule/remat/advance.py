"""Advance: what frees at least what it makes runs as soon as it can.

A scheduler looks at the largest peak; with that lowered by recomputing, others are next that an order can lower:
updates of weights that could have been made as soon as their gradients were there.
"""

from __future__ import annotations

from heron.analysis.graph.dataflow import TRANSPARENT, Value
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.schedule.remat.held import Held


def advance(held: Held) -> dict[Computation, list[Instruction]]:
    """The schedule, with such instructions moved up. Control edges are kept."""
    assert held.module.schedule is not None
    return {c: _Order(held, order).moved() for c, order in held.module.schedule.items()}


class _Order:
    """One computation's order, rewritten from its start."""

    def __init__(self, held: Held, order: list[Instruction]) -> None:
        self.held, self.order = held, order
        self.waiting = {i: len(set(i.walk_operands())) for i in order}
        self.reads: dict[Instruction, list[Value]] = {}
        self.readers: dict[Value, set[Instruction]] = {}
        for i in order:
            for v in held.values(i):
                if v.instruction is i and v.kind == "defined" and not any(u.is_result for u in held.stays[v][0].uses):
                    readers = self.readers[v] = {u.reader for u in held.stays[v][0].uses}
                    for r in readers:
                        self.reads.setdefault(r, []).append(v)
        self.done: dict[Instruction, None] = {}

    def moved(self) -> list[Instruction]:
        for start in self.order:
            work = [start]
            while work:
                i = work.pop()
                if i not in self.done and (i is start or self._pays(i)):
                    work += self._run(i)
        return list(self.done)

    def _run(self, i: Instruction) -> list[Instruction]:
        """Put `i` into the new order; gives what may pay now."""
        self.done[i] = None
        after = [*i.users, *(s for s in i.control_successors if s not in i.users)]
        for a in after:
            self.waiting[a] -= 1
        for v in self.reads.get(i, ()):
            left = self.readers[v]
            left.discard(i)
            if len(left) == 1:
                after += left
        return after

    def _pays(self, i: Instruction) -> bool:
        """Whether `i` can run now, and gives back at least the bytes it takes."""
        if self.waiting[i] or i is self.order[-1] or i.opcode == "parameter":
            return False
        if i.opcode in TRANSPARENT:
            return True
        weight = self.held.weight
        freed = sum(weight[v] for v in self.reads.get(i, ()) if len(self.readers[v]) == 1)
        return freed > 0 and freed >= sum(weight[v] for v in self.held.values(i) if v.instruction is i)
