"""Clusters: kernels that multi-output-fusion puts together, and the check that this makes no cycle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from math import prod

from heron.analysis.cost.code_size import CodeLimit, fusion_code
from heron.analysis.fusion.iteration_space import IterationSpace, reads_at_own_index, source
from heron.analysis.graph.reachability import Reachability
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass


@dataclass(slots=True, eq=False)
class Cluster:
    """Kernels (fusions or single ops) in order of execution, what they read that none of them computes, and the bytes
    of both."""

    nodes: list[Instruction]
    instructions: int
    limit: CodeLimit
    inputs: dict[Instruction, None] = field(default_factory=dict)
    bytes: int = 0
    _code: float | None = None

    @property
    def code(self) -> float:
        """The LLVM instructions they become together, counted when asked for: most kernels come to no such question."""
        if self._code is None:
            self._code = sum(fusion_code(i, self.limit) for i in self.nodes)
        return self._code

    def take(self, other: Cluster) -> None:
        """Join the kernels of `other`, which run later."""
        self._code = self.code + other.code
        self.nodes += other.nodes
        self.instructions += other.instructions
        self.inputs |= other.inputs
        inside = set(self.nodes)
        self.inputs = {i: None for i in self.inputs if i not in inside}
        self.bytes = bytes_of(self.nodes) + bytes_of(self.inputs)


class Clusters:
    """Kernels of a computation, without control edges, each at first a cluster of its own; `join` keeps the graph of
    clusters acyclic."""

    def __init__(self, computation: Computation, nodes: Iterable[Instruction], limit: CodeLimit) -> None:
        self.reach, self.limit = Reachability(computation), limit
        self.of: dict[Instruction, Cluster] = {}
        for i in nodes:
            size = len(i.attrs["calls"]) if i.opcode == "fusion" else 1
            inputs = dict.fromkeys(map(source, i.operands))
            self.of[i] = Cluster([i], size, limit, inputs, bytes_of((i, *inputs)))

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
        return any(self.of.get(i) is not one and reach.reaches(a, i) for i in two.inputs)

    def join(self, a: Instruction, b: Instruction) -> None:
        """Make one cluster of those of `a` and `b`."""
        one, two = self.of[a], self.of[b]
        if self.reach.reaches(b, a):
            one, two = two, one
        self.reach.fuse(a, b)
        one.take(two)
        for node in two.nodes:
            self.of[node] = one


def bytes_of(instructions: Iterable[Instruction]) -> int:
    """Bytes of all their arrays."""
    return sum(i.shape.total_bytes for i in instructions)


def computed_again(one: Cluster, two: Cluster, spaces: dict[Instruction, IterationSpace]) -> Instruction | None:
    """A kernel of one cluster that a kernel of the other reads otherwise than each element once, where it is made."""
    for readers, read in ((one, two), (two, one)):
        if readers.inputs.keys().isdisjoint(read.nodes):
            continue
        for reader in readers.nodes:
            for o in reader.operands:
                made = source(o)
                if made in read.nodes and not _in_step(reader, made, spaces):
                    return made
    return None


def _in_step(reader: Instruction, made: Instruction, spaces: dict[Instruction, IterationSpace]) -> bool:
    first, then = spaces[made], spaces[reader]
    if first.reduced and then.reduced:
        return False
    if then.reduced:
        return prod(first.dims) == prod(then.dims) and reads_at_own_index(reader, made)
    return reads_at_own_index(reader, made)
