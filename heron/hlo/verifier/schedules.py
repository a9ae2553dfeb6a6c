"""Schedules: orders that keep dependencies, and after scheduling one for each computation that runs in sequence."""

from __future__ import annotations

from collections.abc import Iterator

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.verifier.rules import Problem, rule


@rule("HLO110")
def schedules_are_orders(module: Module) -> Iterator[Problem]:
    """A schedule names every instruction of its computation once, after all that it depends on."""
    for c, order in (module.schedule or {}).items():
        if c.module is not module:
            yield Problem("HLO110", f"'{c.name}' is scheduled but not in the module", computation=c)
            continue
        if len(order) != len(c) or set(order) != set(c.instructions):
            what = f"the schedule of '{c.name}' does not name each of its instructions once"
            yield Problem("HLO110", what, computation=c, why=f"{len(order)} scheduled, {len(c)} in the computation")
            continue
        done: set[Instruction] = set()
        for i in order:
            for before in (*i.operands, *i.control_predecessors):
                if before not in done:
                    yield Problem("HLO110", f"'{i.name}' is scheduled ahead of '{before.name}', which it needs", i)
            done.add(i)


@rule("HLO119")
def fused_computations_have_no_order(module: Module) -> Iterator[Problem]:
    """The bodies of fusions have no schedule: a kernel computes them in an order of its own."""
    fused = module.fusion_bodies() if module.schedule else ()
    for c in module.schedule or {}:
        if c in fused:
            yield Problem("HLO119", f"'{c.name}' is the body of a fusion and has a schedule", computation=c)


@rule("HLO190", mode="scheduled")
def sequences_are_scheduled(module: Module) -> Iterator[Problem]:
    """The entry, and what loops, branches and calls run, has its order."""
    schedule = module.schedule or {}
    for c in module.non_fusion_computations():
        if c not in schedule:
            yield Problem("HLO190", f"'{c.name}' has no schedule", computation=c)


@rule("HLO191", mode="scheduled")
def sequences_are_not_applied(module: Module) -> Iterator[Problem]:
    """A computation that runs in sequence is not applied to elements as well."""
    sequential = set(module.non_fusion_computations())
    for i in module.instructions():
        if i.has(Trait.CONTROL_FLOW) or i.has(Trait.ASYNC):
            continue
        for c in i.called:
            if c in sequential:
                why = "where it is called, it has a schedule and buffers of its own; where it is applied, it has none"
                yield Problem("HLO191", f"'{c.name}' runs in sequence elsewhere and is applied here", i, why=why)


@rule("HLO192", mode="names_unchanged")
def names_are_as_scheduled(module: Module) -> Iterator[Problem]:
    """An instruction has the name it was scheduled under, unless it is a copy."""
    for i in module.instructions():
        if i.metadata is None or not i.metadata.extra:
            continue
        name = dict(i.metadata.extra).get("scheduling_name", "").strip('"')
        if name and name != i.name and ".remat" not in i.name and ".clone" not in i.name:
            yield Problem("HLO192", f"'{i.name}' was scheduled as '{name}'", i)
