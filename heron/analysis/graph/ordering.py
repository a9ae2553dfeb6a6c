"""Ordering: when each instruction runs, on one line of time through all nested computations.

A while is laid out as condition, then body; a conditional as its branches one after the other. Ticks: an instruction
reads and writes at its ``start``; what a computation hands out is read at its ``end`` and written (by copies that
stand for a parallel move) one tick later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heron.analysis.graph.call_graph import CallGraph
from heron.errors import HeronError
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait

Schedule = Mapping[Computation, Sequence[Instruction]]

_STEP = 2


class Timeline:
    """``start[i]``, ``end[i]``: first and last tick of an instruction (equal unless it runs computations).

    ``span[c]``: (first, last) tick of a sequential computation: the last is where its results are read. ``length``:
    the last tick of the entry. Raises BUF003 when the schedule lacks a computation or puts a use before its operand.
    """

    def __init__(self, schedule: Schedule, graph: CallGraph) -> None:
        self.graph = graph
        self.start: dict[Instruction, int] = {}
        self.end: dict[Instruction, int] = {}
        self.span: dict[Computation, tuple[int, int]] = {}
        #: instructions by start, for reports
        self.order: list[Instruction] = []
        self._schedule = schedule
        self.length = self._walk(graph.module.entry, 0)

    def _walk(self, c: Computation, now: int) -> int:
        first = now
        order = self._schedule.get(c)
        if order is None:
            raise HeronError("BUF003", f"the schedule has no order for '{c.name}'", hint="run memory-scheduler first")
        if len(order) != len(c):
            raise HeronError(
                "BUF003",
                f"the schedule of '{c.name}' is out of date",
                why=f"{len(order)} instructions scheduled, {len(c)} in the computation",
                hint="run memory-scheduler again",
            )
        start, end = self.start, self.end
        for i in order:
            for before in i.walk_operands():
                if before not in start:
                    raise HeronError("BUF003", f"'{i.name}' is scheduled before '{before.name}', which it needs")
            start[i] = now
            self.order.append(i)
            if i.has(Trait.CONTROL_FLOW):
                now = self._inside(i, now + _STEP)
            end[i] = now
            now += _STEP
        self.span[c] = (first, now)
        return now

    def _inside(self, i: Instruction, now: int) -> int:
        called = [i.attrs["condition"], i.attrs["body"]] if i.opcode == "while" else i.called
        for c in called:
            now = self._walk(c, now) + _STEP
        return now


def post_order_schedule(
    graph: CallGraph, extra: Mapping[Instruction, Sequence[Instruction]] | None = None
) -> dict[Computation, list[Instruction]]:
    """A simple schedule: operands just before use, parameters and constants first. ``extra[b]`` must come before
    `b`, like control predecessors."""
    return {c: post_order(c, extra or {}) for c in graph.sequential()}


def post_order(c: Computation, extra: Mapping[Instruction, Sequence[Instruction]]) -> list[Instruction]:
    """Depth-first order of all instructions of `c`, honouring control edges and `extra`; the edges are acyclic."""
    done: dict[Instruction, None] = dict.fromkeys(c.parameters)
    order_last = c.root
    for start in [*(i for i in c.instructions if i is not order_last), order_last]:
        stack = [start]
        while stack:
            i = stack[-1]
            if i in done:
                stack.pop()
                continue
            waiting = [b for b in i.operands if b not in done]
            if i.control_predecessors:
                waiting += [b for b in i.control_predecessors if b not in done]
            more = extra.get(i)
            if more:
                waiting += [b for b in more if b not in done]
            if waiting:
                stack.extend(reversed(waiting))
            else:
                stack.pop()
                done[i] = None
    return list(done)
