"""The cost of a whole module after fusion: every kernel, library call and copy, as often as it runs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace

from heron.analysis.cost.communication import communicates, copy_seconds, link_seconds
from heron.analysis.cost.estimate import Estimate, estimate
from heron.analysis.cost.kernel import KernelCost, kernel_cost, named_for
from heron.analysis.fusion import radix_plan
from heron.analysis.values.trip_count import counter_of, noted_trips
from heron.hlo.calls import radix_sort
from heron.hlo.calls.declared import declaration
from heron.hlo.facts import is_free
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.records import dataclass
from heron.targets import Target

#: the part of a GPU's memory bandwidth that kernels reach: copies some 0.85, reads alone 0.94. Choices between kernels
#: compare times at the full rate
REACHED = 0.9
#: seconds of work below which one thread of a CPU runs a kernel, and those of its call
_ALONE, _CALL = 20e-6, 4e-9
_NONE: Mapping[Instruction, Hashable] = {}


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction that runs: `runs` times, each at `cost`; ``known`` is false inside a loop whose count is not."""

    instruction: Instruction
    cost: KernelCost
    estimate: Estimate
    runs: float
    known: bool = True

    @property
    def seconds(self) -> float:
        """Of all runs together."""
        return self.runs * self.estimate.seconds


@dataclass(frozen=True, slots=True)
class ProgramCost:
    """All steps in order, and their sums. A loop of unknown length counts once; a conditional's dearest branch."""

    steps: tuple[Step, ...]

    @property
    def seconds(self) -> float:
        return sum(s.seconds for s in self.steps)

    @property
    def computing(self) -> float:
        """Seconds without those in which devices exchange values."""
        return sum(s.seconds for s in self.steps if communicates(s.instruction) is None)

    @property
    def launches(self) -> float:
        return sum(s.runs for s in self.steps)

    @property
    def flops(self) -> float:
        return sum(s.runs * s.cost.flops for s in self.steps)

    @property
    def bytes(self) -> float:
        """Bytes moved, each kernel's operands once."""
        return sum(s.runs * s.cost.distinct for s in self.steps)


def program_cost(module: Module, target: Target, alike: Mapping[Instruction, Hashable] = _NONE) -> ProgramCost:
    """Cost of `module`, fused or not, on `target`. ``alike``: equal keys for fusions that differ in names alone, as far
    as the caller knows them; the cost of such a kernel is computed once."""
    return ProgramCost(tuple(_Walk(module, target, alike).steps(module.entry, 1.0, True)))


def computation_seconds(instructions: Iterable[Instruction], module: Module, target: Target) -> float:
    """Seconds that these instructions of one computation take, one after the other, with all that they run."""
    return sum(s.seconds for s in _Walk(module, target, _NONE).each(instructions, 1.0, True))


def is_open_ended(module: Module) -> bool:
    """Whether a loop of the program may run any number of times: its cost counts one of them."""
    return any(i.opcode == "while" and trips_of(i) is None for i in module.instructions())


class _Walk:
    """Over all that a program runs, in order."""

    def __init__(self, module: Module, target: Target, alike: Mapping[Instruction, Hashable]) -> None:
        self._module, self._target, self._alike = module, target, alike
        self._known: dict[Hashable, tuple[KernelCost, Estimate]] = {}

    def steps(self, c: Computation, runs: float, known: bool) -> Iterator[Step]:
        """The steps of a computation."""
        return self.each((self._module.schedule or {}).get(c) or c.post_order(), runs, known)

    def each(self, instructions: Iterable[Instruction], runs: float, known: bool) -> Iterator[Step]:
        """The steps of these instructions."""
        for i in instructions:
            if is_free(i):
                continue
            if i.opcode == "while":
                trips = trips_of(i)
                times, sure = 1.0 if trips is None else trips, known and trips is not None
                if trips is None or not self._target.is_gpu:  # a GPU's loops of known length are counted by the host
                    yield from self.steps(i.condition, runs * (times + 1), sure)
                yield from self.steps(i.body, runs * times, sure)
            elif i.opcode == "conditional":
                branches = [list(self.steps(b, runs, False)) for b in i.called]
                yield from max(branches, key=lambda steps: sum(s.seconds for s in steps))
            elif i.opcode == "call" or i.opcode == "async-start":
                for called in i.called:
                    yield from self.steps(called, runs, known)
            else:
                yield Step(i, *self._step(i), runs, known)

    def _step(self, i: Instruction) -> tuple[KernelCost, Estimate]:
        key = self._alike.get(i) or _form(i)
        if key is None:
            return self._computed(i)
        if key not in self._known:
            self._known[key] = self._computed(i)
        cost, time = self._known[key]
        return named_for(i, cost), time

    def _computed(self, i: Instruction) -> tuple[KernelCost, Estimate]:
        target = self._target
        cost = kernel_cost(i, target.is_gpu)
        time = estimate(cost, target)
        if target.is_gpu:
            time = replace(time, memory=time.memory / REACHED)
        if _is_call(i, time, target):
            time = Estimate(min(time.launch, _CALL), time.compute, time.memory, time.ideal)
        if communicates(i) is not None:
            link = link_seconds(i, self._module, target)
            time = Estimate(target.launch_seconds, 0.0, link, link)
        elif i.opcode == "copy" and i.shape.is_on_host != i.operands[0].shape.is_on_host:
            link = copy_seconds(i, target)
            time = Estimate(target.launch_seconds, 0.0, link, link)
        elif i.opcode == "sort" and target.is_gpu:
            network = _network(i)
            waiting = network.kernels * target.launch_seconds
            time = Estimate(waiting, 0.0, network.seconds(target) - waiting, time.ideal)
        elif i.opcode == "custom-call" and i.attrs["custom_call_target"] == radix_sort.TARGET:
            plan = radix_plan.called(i)
            time = Estimate(plan.waiting(target), 0.0, plan.moving(target), time.ideal)
        return cost, time


def _form(i: Instruction) -> Hashable | None:
    """All that the cost of a product depends on but its name: programs have many of the same form."""
    if i.opcode != "dot":
        return None
    lhs, rhs = i.operands
    return i.shape, lhs.shape, rhs.shape, lhs is rhs, tuple(i.attrs.items())


def _network(sort: Instruction) -> radix_plan.Network:
    """The kernels of a sort that a GPU does by comparing."""
    first = sort.operands[0].shape
    length = first.dims[sort.dimensions[0]]
    sizes = tuple(o.shape.element_type.byte_size for o in sort.operands)
    return radix_plan.Network(first.num_elements // max(1, length), length, sizes)


def _is_call(i: Instruction, time: Estimate, target: Target) -> bool:
    """Whether a CPU's program calls the kernel, or a routine of LAPACK, as a function, with no other thread woken."""
    if target.is_gpu or max(time.compute, time.memory) >= _ALONE:
        return False
    call = declaration(i.attrs["custom_call_target"]) if i.opcode == "custom-call" else None
    return i.opcode != "custom-call" or call is not None and call.cpu == "lapack"


def trips_of(loop: Instruction) -> float | None:
    """The trip count of a while, from while-loop-trip-count-annotator or from its condition."""
    noted = noted_trips(loop)
    if noted is not None:
        return float(noted)
    counter = counter_of(loop)
    return None if counter is None else float(counter.trips)
