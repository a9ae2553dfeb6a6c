"""The loop emitter: every element of every output computed by itself, whatever the fusion holds.

Outputs of equal dimensions share a loop, and with it all common subexpressions; other outputs have loops of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from xdsl.ir import SSAValue

from heron.analysis.indexing.hlo_maps import Index, from_memory, memory_sizes, to_memory
from heron.codegen.heroes.base import Entry, Fusion, entry, hero
from heron.codegen.heroes.iteration import (
    Body,
    CpuPlan,
    cpu_loops,
    gpu_loops,
    plan_cpu,
    plan_gpu,
)
from heron.codegen.heroes.space import Space, output_space
from heron.codegen.heroes.vectors import reads, vector_loops
from heron.codegen.kernel import Kernel, Launch
from heron.codegen.partition import partition
from heron.hlo.shape import Shape
from heron.targets import Target


@hero("loop")
class LoopEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        frame = entry(fusion, partition(fusion.roots), name, target, any_layout=True)
        groups = groups_of(fusion)
        if frame.is_gpu:
            return _emit_gpu(frame, groups)
        return _emit_cpu(frame, groups)


Groups: TypeAlias = dict[Shape, list[int]]


def groups_of(fusion: Fusion) -> Groups:
    """Numbers of the outputs that share a loop, by the first one's shape; empty outputs need none."""
    groups: Groups = {}
    leaders: dict[tuple[int, ...], Shape] = {}
    for n, output in enumerate(fusion.outputs):
        if output.shape.num_elements:
            leader = leaders.setdefault(output.shape.dims, output.shape)
            groups.setdefault(leader, []).append(n)
    return groups


def _emit_cpu(frame: Entry, groups: Groups) -> Kernel:
    plans: list[CpuPlan] = []
    spaces: list[Space] = []
    for shape, members in groups.items():
        outputs = [frame.fusion.outputs[n] for n in members]
        spaces.append(output_space(outputs, shape, frame.kernel.partition))
        plans.append(plan_cpu(spaces[-1].sizes, spaces[-1].runs))
    total = sum(plan.items for plan in plans)
    first = 0
    for space, plan, members in zip(spaces, plans, groups.values(), strict=True):
        inits = [frame.outputs[n] for n in members]
        store(frame, members, cpu_loops(frame, plan, first, total, inits, elements(frame, members, space.at)))
        first += plan.items
    loops = " + ".join("x".join(str(len(run)) for run in plan.runs) or "scalar" for plan in plans)
    return frame.finish(Launch(work_items=max(total, 1)), "loop", {"loops": loops})


def _emit_gpu(frame: Entry, groups: Groups) -> Kernel:
    if not groups:
        return frame.finish(Launch(), "loop", {"elements": "0"})
    widest = max(o.shape.element_type.bits for o in frame.fusion.outputs)
    counts = [frame.fusion.outputs[members[0]].shape.num_elements for members in groups.values()]
    plan = plan_gpu(max(counts), widest, frame.target)
    for shape, members in groups.items():
        outputs = [frame.fusion.outputs[n] for n in members]
        wanted = reads(outputs, shape, frame.kernel.partition) if plan.vector > 1 else None
        if wanted is not None:
            store(frame, members, vector_loops(frame, shape, plan, members, wanted))
            continue
        inits = [frame.outputs[n] for n in members]
        body = elements(frame, members, partial(from_memory, shape))
        store(frame, members, gpu_loops(frame, memory_sizes(shape), plan, inits, body))
    return frame.finish(plan.launch, "loop", {"vector": str(plan.vector)})


def elements(frame: Entry, members: Sequence[int], at: Callable[[Index], Index]) -> Body:
    """Computes and stores one element of outputs `members`; `at` makes the loop's place their index."""

    def body(place: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        index = frame.e.simplify(at(place))
        outputs = [frame.fusion.outputs[n] for n in members]
        # all values first: an output may share its buffer with an input
        values = [o.of(frame.e.value(o.instruction, index)) for o in outputs]
        stores = zip(values, carried, outputs, strict=True)
        return [frame.e.insert(v, tensor, to_memory(o.shape, index)) for v, tensor, o in stores]

    return body


def store(frame: Entry, members: Sequence[int], results: Sequence[SSAValue]) -> None:
    """`results` are what outputs `members` now are."""
    for n, result in zip(members, results, strict=True):
        frame.outputs[n] = result
