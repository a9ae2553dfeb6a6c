"""The loop emitter: every element of every output computed by itself, whatever the fusion holds.

Outputs of equal dimensions share a loop, and with it all common subexpressions; other outputs have loops of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.heroes.base import Entry, Fusion, entry, hero
from heron.codegen.heroes.iteration import (
    Body,
    CpuPlan,
    contiguous_runs,
    cpu_loops,
    gpu_loops,
    plan_cpu,
    plan_gpu,
)
from heron.codegen.kernel import Kernel, Launch
from heron.codegen.partition import partition
from heron.targets import Target


@hero("loop")
class LoopEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        frame = entry(fusion, partition(fusion.roots), name, target)
        groups = _groups(fusion)
        if frame.is_gpu:
            return _emit_gpu(frame, groups)
        return _emit_cpu(frame, groups)


def _groups(fusion: Fusion) -> dict[tuple[int, ...], list[int]]:
    """Numbers of the outputs that share a loop, by their dimensions; empty outputs need none."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for n, output in enumerate(fusion.outputs):
        if output.shape.num_elements:
            groups.setdefault(output.shape.dims, []).append(n)
    return groups


def _emit_cpu(frame: Entry, groups: dict[tuple[int, ...], list[int]]) -> Kernel:
    plans: list[CpuPlan] = []
    for sizes, members in groups.items():
        roots = [frame.fusion.outputs[n].instruction for n in members]
        plans.append(plan_cpu(sizes, contiguous_runs(roots, sizes, frame.kernel.partition)))
    total = sum(plan.items for plan in plans)
    first = 0
    for plan, members in zip(plans, groups.values(), strict=True):
        inits = [frame.outputs[n] for n in members]
        _store(frame, members, cpu_loops(frame, plan, first, total, inits, _body(frame, members)))
        first += plan.items
    loops = " + ".join("x".join(str(len(run)) for run in plan.runs) or "scalar" for plan in plans)
    return frame.finish(Launch(work_items=max(total, 1)), "loop", {"loops": loops})


def _emit_gpu(frame: Entry, groups: dict[tuple[int, ...], list[int]]) -> Kernel:
    if not groups:
        return frame.finish(Launch(), "loop", {"elements": "0"})
    widest = max(o.shape.element_type.bits for o in frame.fusion.outputs)
    counts = [frame.fusion.outputs[members[0]].shape.num_elements for members in groups.values()]
    plan = plan_gpu(max(counts), widest, frame.target)
    for sizes, members in groups.items():
        inits = [frame.outputs[n] for n in members]
        _store(frame, members, gpu_loops(frame, sizes, plan, inits, _body(frame, members)))
    return frame.finish(plan.launch, "loop", {"vector": str(plan.vector)})


def _body(frame: Entry, members: Sequence[int]) -> Body:
    def body(index: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        outputs = [frame.fusion.outputs[n] for n in members]
        # all values first: an output may share its buffer with an input
        values = [o.of(frame.e.value(o.instruction, index)) for o in outputs]
        return [frame.e.insert(v, tensor, index) for v, tensor in zip(values, carried, strict=True)]

    return body


def _store(frame: Entry, members: Sequence[int], results: Sequence[SSAValue]) -> None:
    for n, result in zip(members, results, strict=True):
        frame.outputs[n] = result
