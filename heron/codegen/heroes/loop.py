"""The loop emitter: every element of every output computed by itself, whatever the fusion holds.

Outputs of equal dimensions share a loop, and with it all common subexpressions; other outputs have loops of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

from heron.analysis.indexing.hlo_maps import Index, from_memory, memory_sizes, to_memory
from heron.codegen.heroes.base import Entry, Fusion, entry, hero
from heron.codegen.heroes.iteration import (
    Body,
    CpuPlan,
    cpu_loops,
    gpu_loops,
    output_runs,
    plan_cpu,
    plan_gpu,
)
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
        groups = _groups(fusion)
        if frame.is_gpu:
            return _emit_gpu(frame, groups)
        return _emit_cpu(frame, groups)


Groups: TypeAlias = dict[Shape, list[int]]


def _groups(fusion: Fusion) -> Groups:
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
    for shape, members in groups.items():
        outputs = [frame.fusion.outputs[n] for n in members]
        plans.append(plan_cpu(memory_sizes(shape), output_runs(outputs, shape, frame.kernel.partition)))
    total = sum(plan.items for plan in plans)
    first = 0
    for plan, (shape, members) in zip(plans, groups.items(), strict=True):
        inits = [frame.outputs[n] for n in members]
        _store(frame, members, cpu_loops(frame, plan, first, total, inits, _body(frame, members, shape)))
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
            _store(frame, members, vector_loops(frame, shape, plan, members, wanted))
            continue
        inits = [frame.outputs[n] for n in members]
        _store(frame, members, gpu_loops(frame, memory_sizes(shape), plan, inits, _body(frame, members, shape)))
    return frame.finish(plan.launch, "loop", {"vector": str(plan.vector)})


def _body(frame: Entry, members: Sequence[int], shape: Shape) -> Body:
    def body(place: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        index = from_memory(shape, place)
        outputs = [frame.fusion.outputs[n] for n in members]
        # all values first: an output may share its buffer with an input
        values = [o.of(frame.e.value(o.instruction, index)) for o in outputs]
        stores = zip(values, carried, outputs, strict=True)
        return [frame.e.insert(v, tensor, to_memory(o.shape, index)) for v, tensor, o in stores]

    return body


def _store(frame: Entry, members: Sequence[int], results: Sequence[SSAValue]) -> None:
    for n, result in zip(members, results, strict=True):
        frame.outputs[n] = result
