"""A search for shardings of a program's parameters: what to split when nobody has said it.

Parameters that look alike (the same shape, used by the same ops) are split alike. The search takes one such group after
the other, the largest first, tries every way to split its dimensions by axes of the mesh, propagates, and keeps what
makes the program cheapest: bytes sent, memory traffic and products of a device. Where a limit of memory is given,
what exceeds it is brought down first. Shardings that are given stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import inf, prod

from heron.analysis.graph.call_graph import CallGraph
from heron.analysis.sharding.improve import Search
from heron.analysis.sharding.program import ProgramShardings
from heron.analysis.sharding.propagate import propagate
from heron.analysis.values.trip_count import trip_count
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding import Axis
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding
from heron.records import dataclass

#: programs whose cost is estimated, at most
TRIES = 200
#: times that all groups are gone through
SWEEPS = 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a run in bytes sent, and the bytes of memory, both of one device."""

    cost: float
    memory: float

    def rank(self, limit: float) -> tuple[float, float]:
        """A key by which the better estimate is the less: the memory above the limit, then the cost."""
        return max(0.0, self.memory - limit), self.cost


@dataclass(frozen=True, slots=True)
class Found:
    """Shardings of parameters that had none, and what they gain."""

    shardings: dict[Instruction, TensorSharding]
    before: Estimate
    after: Estimate
    tries: int


def choose_parameters(
    module: Module,
    shardings: ProgramShardings,
    limit: float = inf,
    told: Callable[[int], None] = lambda _: None,
) -> Found:
    """Shardings for the entry's parameters of which `shardings` has none. Nothing is changed.

    Args:
        module: the program on global arrays, without calls.
        shardings: what is given, and the mesh.
        limit: the memory of a device in bytes.
        told: hears the number of each program before it is estimated.
    """
    return _Choice(module, shardings, limit, told).run()


class _Choice:
    def __init__(self, module: Module, shardings: ProgramShardings, limit: float, told: Callable[[int], None]) -> None:
        self.module, self.given, self.limit, self.told = module, shardings, limit, told
        graph = CallGraph(module)
        #: callees first, each with the number of times that it runs, as far as loops are known
        self.order = graph.sequential()[::-1]
        self.runs = _runs(self.order)
        self.tries = 0

    def run(self) -> Found:
        before = self._estimate({})
        groups = self._groups()
        # inputs first is the way to data parallelism, weights first that to tensor parallelism
        ends = [self._descended(order, before) for order in (groups, groups[::-1])]
        after, chosen = min(ends, key=lambda end: end[0].rank(self.limit))
        return Found(chosen, before, after, self.tries)

    def _descended(
        self, groups: list[list[Instruction]], best: Estimate
    ) -> tuple[Estimate, dict[Instruction, TensorSharding]]:
        """The end of a search that goes through the groups in this order, from nothing split."""
        chosen: dict[Instruction, TensorSharding] = {}
        last = self.tries + TRIES // 2
        for _ in range(SWEEPS):
            start = best
            for group in groups:
                for way in splits(group[0].shape, self.given.mesh):
                    trial = {**chosen, **dict.fromkeys(group, way)}
                    if self.tries >= last or trial == chosen:
                        continue
                    found = self._estimate(trial)
                    if found.rank(self.limit) < best.rank(self.limit):
                        best, chosen = found, trial
            if best == start:
                break
        return best, chosen

    def _groups(self) -> list[list[Instruction]]:
        """Parameters without a sharding that are split alike, those with the most bytes first."""
        found: dict[object, list[Instruction]] = {}
        for i in self.module.entry.parameters:
            if i.shape.is_array and i.shape.rank and not self.given.has(i):
                uses = {(u.opcode, u.operands.index(i), str(sorted(map(str, u.attrs.items())))) for u in i.users}
                found.setdefault((i.shape.bare, tuple(sorted(uses))), []).append(i)
        return sorted(found.values(), key=lambda group: -sum(i.shape.byte_size for i in group))

    def _estimate(self, chosen: dict[Instruction, TensorSharding]) -> Estimate:
        self.tries += 1
        self.told(self.tries)
        shardings = self.given.copy()
        for i, s in chosen.items():
            shardings.set(i, (), s)
        propagate(self.module, shardings)
        cost, memory = 0.0, dict[Computation, float]()
        for c in self.order:
            search = Search(c, shardings)
            cost += search.total() * self.runs[c]
            called = {i: max(memory[b] for b in i.called) for i in search.order if i.has(Trait.CONTROL_FLOW)}
            memory[c] = search.memory(called)
        mesh = shardings.mesh
        held = [(s, shardings.of(i, index)) for i in self.module.entry.parameters for index, s in i.shape.leaves()]
        inside = memory[self.module.entry]
        return Estimate(cost, inside + sum(prod(mesh.local_dims(s.dims, t)) * s.element_type.bits / 8 for s, t in held))


def splits(shape: Shape, mesh: AtomicMesh) -> Iterator[TensorSharding]:
    """The ways to split an array by whole axes of a mesh, each on one dimension that it divides, or on none."""
    axes = [mesh.atoms(Axis(n)) for n in range(len(mesh.mesh.axes)) if mesh.mesh.axes[n][1] > 1]
    for places in product(range(-1, shape.rank), repeat=len(axes)):
        dims: list[Axes] = [() for _ in shape.dims]
        for d, atoms in zip(places, axes, strict=True):
            if d >= 0:
                dims[d] += atoms
        if all(size % mesh.size(atoms) == 0 for size, atoms in zip(shape.dims, dims, strict=True)):
            yield TensorSharding.closed(dims)


def _runs(order: Sequence[Computation]) -> dict[Computation, float]:
    """The number of times that each computation runs: callers come last in `order`; unknown loops count once."""
    found = dict.fromkeys(order, 0.0)
    found[order[-1]] = 1.0
    for c in reversed(order):
        for i in c.instructions:
            if i.has(Trait.CONTROL_FLOW):
                rounds = float(trip_count(i) or 1) if i.opcode == "while" else 1.0
                for called in i.called:
                    found[called] += found[c] * rounds
    return found
