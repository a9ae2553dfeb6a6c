"""In-place dynamic-update-slice: when a fusion's outputs are updates of its own inputs, only the updates are written.

The output then shares the input's buffer (`KernelArg.alias`), and a loop over the update replaces one over the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.ir import SSAValue

from heron.analysis.indexing.hlo_maps import Index, delinearize, linearize
from heron.codegen.elemental.dynamic import update_starts
from heron.codegen.elemental.registry import Support
from heron.codegen.emitters.base import Entry, Fusion, as_fusion, entry, hero, row_major
from heron.codegen.emitters.loop_space import contiguous_runs
from heron.codegen.emitters.loops import Body, GpuPlan, Part, cpu_loops, gpu_loops, gpu_parts, plan_cpu, plan_gpu
from heron.codegen.kernel import Kernel, Launch
from heron.codegen.partition import partition
from heron.hlo.ir.instruction import Instruction
from heron.targets import Target


def can_update_in_place(i: Instruction) -> Support:
    """Whether a kernel of `i` (a fusion, or a bare dynamic-update-slice) can write into its operands' buffers.

    `in_place_operands` says which; the buffer assigner must give output and operand one buffer, else use another
    emitter.
    """
    if i.opcode not in ("fusion", "dynamic-update-slice"):
        return Support(False, f"'{i.opcode}' is no update")
    return updates(as_fusion(i))[1]


def in_place_operands(i: Instruction) -> dict[int, int]:
    """Flat output number -> kernel input number whose buffer it must have; empty when `can_update_in_place` says no."""
    if not can_update_in_place(i):
        return {}
    return updates(as_fusion(i))[0]


def updates(fusion: Fusion) -> tuple[dict[int, int], Support]:
    """Output number -> input number of an in-place update, and whether every output is one."""
    found: dict[int, int] = {}
    if not row_major(fusion):
        return {}, Support(False, "inputs or outputs are not row-major")
    for n, output in enumerate(fusion.outputs):
        update = _update(output.instruction)
        if update is None or output.part is not None:
            return {}, Support(False, f"output {n} is no dynamic-update-slice")
        target = _target(update)
        if target.opcode != "parameter":
            return {}, Support(False, f"'{update.name}' updates a computed value")
        reason = _other_reads(fusion, update, target)
        if reason:
            return {}, Support(False, reason)
        if target.number in found.values():
            return {}, Support(False, f"parameter {target.number} is updated twice")
        found[n] = target.number
    return found, Support(bool(found), "" if found else "no output")


def _is_view(i: Instruction) -> bool:
    """Whether each element of `i` is its operand's at the same place in memory."""
    if i.opcode not in ("bitcast", "reshape", "copy"):
        return False
    shapes = (i.shape, i.operands[0].shape)
    return shapes[0].element_type is shapes[1].element_type and all(
        s.layout is None or s.layout.is_default for s in shapes
    )


def _source(i: Instruction) -> Instruction:
    while _is_view(i):
        i = i.operands[0]
    return i


def _target(update: Instruction) -> Instruction:
    """The array whose memory an update changes; a copy is one of its own."""
    i = update.operands[0]
    while i.opcode != "copy" and _is_view(i):
        i = i.operands[0]
    return i


def _update(i: Instruction) -> Instruction | None:
    i = _source(i)
    return i if i.opcode == "dynamic-update-slice" else None


def _other_reads(fusion: Fusion, update: Instruction, target: Instruction) -> str:
    """Why the target must keep its old elements during the update; '' when it need not.

    Reading the very elements that are written, each before it is written, is allowed: a dynamic-slice at the same
    place that reaches the update through elementwise ops only.
    """
    same_place = _elementwise_below(update.operands[1])
    pending = [target]
    while pending:
        i = pending.pop()
        for user, uses in i.users.items():
            if user is update and uses == 1 and _target(update) is target:
                continue
            if _is_view(user):
                pending.append(user)
                continue
            slices = user.opcode == "dynamic-slice" and user.operands[1:] == update.operands[2:]
            if slices and user.shape.dims == update.operands[1].shape.dims:
                if user in same_place and all(u in same_place or u is update for u in user.users):
                    continue
            return f"'{user.name}' reads parameter {target.number} elsewhere"
    if len(fusion.outputs) > 1 and len(target.users) > 1:
        return f"parameter {target.number} is read by several outputs"
    return ""


def _elementwise_below(i: Instruction) -> set[Instruction]:
    """What is computed at the update's own index: elementwise ops and the leaves they end in."""
    found: set[Instruction] = set()
    stack = [i]
    while stack:
        at = stack.pop()
        if at in found or at.shape.dims != i.shape.dims:
            continue
        found.add(at)
        if at.op.is_elementwise:
            stack.extend(at.operands)
    return found


@hero("dus")
class InPlaceUpdateEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        aliases, decision = updates(fusion)
        assert decision, decision.reason
        found = [u for o in fusion.outputs if (u := _update(o.instruction)) is not None]
        frame = entry(fusion, partition([r for u in found for r in u.operands[1:]]), name, target)
        frame.aliases = {n: number for n, number in aliases.items()}
        if frame.is_gpu:
            return _emit_gpu(frame, found)
        return _emit_cpu(frame, found)


def _emit_cpu(frame: Entry, found: Sequence[Instruction]) -> Kernel:
    plans = []
    for update in found:
        value = update.operands[1]
        runs = contiguous_runs([value], value.shape.dims, frame.kernel.partition)
        runs = _split_where_partial(runs, update)
        plans.append(plan_cpu(value.shape.dims, runs))
    total = sum(plan.items for plan in plans)
    first = 0
    for n, (plan, update) in enumerate(zip(plans, found, strict=True)):
        if update.operands[1].shape.num_elements:
            frame.outputs[n : n + 1] = cpu_loops(frame, plan, first, total, [frame.outputs[n]], _body(frame, update, n))
        first += plan.items
    return frame.finish(Launch(work_items=max(total, 1)), "dus", {"in place": str(frame.aliases)})


def _split_where_partial(runs: Sequence[Sequence[int]], update: Instruction) -> list[list[int]]:
    """Cut runs where the update does not span the whole dimension of its target: there writes are not contiguous."""
    whole, part = update.operands[0].shape.dims, update.operands[1].shape.dims
    result: list[list[int]] = []
    for run in runs:
        current: list[int] = []
        for d in run:
            if current and whole[d] != part[d]:
                result.append(current)
                current = []
            current.append(d)
        result.append(current)
    return result


def _emit_gpu(frame: Entry, found: Sequence[Instruction]) -> Kernel:
    shapes = [u.operands[1].shape for u in found]
    several = sum(s.num_elements > 0 for s in shapes) > 1
    parts: list[Part] = []
    plans: list[GpuPlan] = []
    for n, (update, shape) in enumerate(zip(found, shapes, strict=True)):
        if shape.num_elements:
            plan = plan_gpu(shape.num_elements, shape.element_type.bits, frame.target, whole_blocks=several)
            plans.append(plan)
            parts.append(Part(plan.grid, (n,), partial(_updated, frame, update, n, plan)))
    if not parts:
        return frame.finish(Launch(), "dus", {"elements": "0"})
    launch = Launch((gpu_parts(frame, parts), 1, 1), (plans[0].block, 1, 1))
    vectors = " + ".join(str(plan.vector) for plan in plans)
    return frame.finish(launch, "dus", {"vector": vectors, "in place": str(frame.aliases)})


def _updated(
    frame: Entry, update: Instruction, n: int, plan: GpuPlan, block: SSAValue, tensors: Sequence[SSAValue]
) -> list[SSAValue]:
    return gpu_loops(frame, update.operands[1].shape.dims, plan, tensors, _body(frame, update, n), block)


def _body(frame: Entry, update: Instruction, n: int) -> Body:
    """Writes one element of the update to output `n`, which may be a view of the updated array."""
    whole, seen = update.shape.dims, frame.fusion.outputs[n].shape.dims

    def body(index: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        e = frame.e
        value = e.value(update.operands[1], index)
        where = tuple(p + s for p, s in zip(index, update_starts(e, update), strict=True))
        if whole != seen:
            where = delinearize(linearize(where, whole), seen)
        return [e.insert(value, carried[0], e.simplify(where))]

    return body
