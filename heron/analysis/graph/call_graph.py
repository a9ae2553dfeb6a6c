"""Call graph: who calls whom, and whether the callee runs as control flow or inside one operation."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from heron.hlo.facts import having
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.records import dataclass

Context = Literal["sequential", "embedded"]

#: ops that run their computations as programs of their own, with buffers of their own
SEQUENTIAL = having(Trait.CONTROL_FLOW)


@dataclass(slots=True)
class Node:
    """One computation: its ``callers`` (instructions), in what ``context`` it runs, and how many loops are around it.

    ``context`` is "both" when it is a reducer or fusion body here and control flow there.
    """

    computation: Computation
    callers: list[Instruction] = field(default_factory=list)
    context: Context | Literal["both"] = "sequential"
    loop_depth: int = 0


class CallGraph:
    """Nodes for all computations the entry reaches; ``order`` has callers before callees."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.order = [c for c in reversed(module.post_order())]
        self.nodes: dict[Computation, Node] = {c: Node(c) for c in self.order}
        seen: dict[Computation, set[Context]] = {module.entry: {"sequential"}}
        for caller in self.order:
            node = self.nodes[caller]
            contexts = seen.get(caller)
            if contexts is None:
                continue  # nobody calls it
            node.context = "both" if len(contexts) == 2 else next(iter(contexts))
            for i in caller.instructions:
                for callee in i.called:
                    below = self.nodes[callee]
                    below.callers.append(i)
                    inner: Context = "sequential" if i.opcode in SEQUENTIAL and "sequential" in contexts else "embedded"
                    seen.setdefault(callee, set()).add(inner)
                    below.loop_depth = max(below.loop_depth, node.loop_depth + (i.opcode == "while"))
        self._reached = seen

    def sequential(self) -> list[Computation]:
        """Computations that are scheduled and get buffers: entry, loop bodies and conditions, branches, calls."""
        return [c for c in self.order if "sequential" in self._reached.get(c, ())]

    def is_flat(self) -> bool:
        """Whether every sequential computation has exactly one caller (the entry none)."""
        return all(len(self.nodes[c].callers) == (c is not self.module.entry) for c in self.sequential())

    def caller(self, c: Computation) -> Instruction | None:
        """The one caller of a sequential computation in a flat graph; None for the entry."""
        callers = self.nodes[c].callers
        return callers[0] if callers else None
