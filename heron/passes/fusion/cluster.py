"""Clusters: kernels that multi-output-fusion puts together, and the check that this makes no cycle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from heron.analysis.reachability import Reachability
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction


@dataclass(slots=True, eq=False)
class Cluster:
    """Kernels (fusions or single ops) in order of execution."""

    nodes: list[Instruction]
    instructions: int
    inputs: dict[Instruction, None] = field(default_factory=dict)


class Clusters:
    """All kernels of a computation, each at first a cluster of its own; `join` keeps the graph of clusters acyclic."""

    def __init__(self, computation: Computation, nodes: Iterable[Instruction]) -> None:
        self.reach = Reachability(computation)
        self.of: dict[Instruction, Cluster] = {}
        for i in nodes:
            size = len(i.attrs["calls"]) if i.opcode == "fusion" else 1
            self.of[i] = Cluster([i], size, dict.fromkeys(map(source, i.operands)))

    def clusters(self) -> list[Cluster]:
        return list(dict.fromkeys(self.of.values()))

    def makes_cycle(self, a: Instruction, b: Instruction) -> bool:
        """Whether some path between the clusters of `a` and `b` runs through a third instruction."""
        one, two = self.of[a], self.of[b]
        reach = self.reach
        if reach.reaches(b, a):
            one, two, a = two, one, b
        elif not reach.reaches(a, b):
            return False
        inside = {*one.nodes, *two.nodes}
        for node in two.nodes:
            for before in node.walk_operands():
                if source(before) not in inside and reach.reaches(a, before):
                    return True
        return False

    def join(self, a: Instruction, b: Instruction) -> None:
        """Make one cluster of those of `a` and `b`."""
        one, two = self.of[a], self.of[b]
        if self.reach.reaches(b, a):
            one, two = two, one
        self.reach.fuse(a, b)
        one.nodes += two.nodes
        one.instructions += two.instructions
        one.inputs |= two.inputs
        inside = set(one.nodes)
        one.inputs = {i: None for i in one.inputs if i not in inside}
        for node in two.nodes:
            self.of[node] = one


def source(i: Instruction) -> Instruction:
    """The instruction that computes `i`: what a get-tuple-element takes a part of."""
    return i.operands[0] if i.opcode == "get-tuple-element" else i


def uses(i: Instruction) -> list[Instruction]:
    """Instructions that read `i` or parts of it."""
    found: dict[Instruction, None] = {}
    for user in i.users:
        if user.opcode == "get-tuple-element":
            found.update(dict.fromkeys(user.users))
        else:
            found[user] = None
    return list(found)


def bytes_of(instructions: Iterable[Instruction]) -> int:
    """Bytes of all their arrays."""
    return sum(s.byte_size for i in instructions for _, s in i.shape.leaves())
