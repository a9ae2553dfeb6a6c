"""In-place updates: where a fusion's outputs are dynamic-update-slices of its inputs, only the updates are written.

The output then shares the input's buffer (`KernelArg.alias`), and a loop over the update replaces one over the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import NamedTuple

from xdsl.ir import SSAValue

from heron.analysis.cost.code_size import code_limit
from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.cuts import joined_at
from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.in_place import updated_by
from heron.analysis.fusion.loop_space import contiguous_runs
from heron.analysis.fusion.partition import partition
from heron.analysis.indexing.expr import Const, dims
from heron.analysis.indexing.hlo_maps import Index, delinearize, linearize
from heron.codegen.elemental.dynamic import update_starts
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.emitters.cpu_plan import plan_cpu
from heron.codegen.emitters.loops import Body, GpuPlan, Part, cpu_loops, gpu_loops, gpu_parts, plan_gpu
from heron.codegen.kernel import Kernel, Launch
from heron.hlo.ir.instruction import Instruction
from heron.targets import Target

#: elements that are worth a loop for each operand of a concatenation
_LONG = 16


class InPlaceUpdateEmitter(Emitter[dict[int, int]]):
    """A loop over each update. The form: the number of the input that each output overwrites."""

    kind = "dus"

    def frame(self, analysis: FusionAnalysis, name: str, target: Target) -> Frame:
        written = [r for u in _updates(analysis.fusion) for r in u.operands[1:]]
        frame = Frame.of(analysis.fusion, partition(written), name, target)
        frame.aliases = analysis.updates
        return frame

    def emit_cpu(self, frame: Frame, form: dict[int, int]) -> list[Kernel]:
        return [_emit_cpu(frame, _updates(frame.fusion))]

    def emit_gpu(self, frame: Frame, form: dict[int, int]) -> list[Kernel]:
        return [_emit_gpu(frame, _updates(frame.fusion))]


def _updates(fusion: Fusion) -> list[Instruction]:
    """The dynamic-update-slice of each output."""
    return [u for o in fusion.outputs if (u := updated_by(o.instruction)) is not None]


class _Box(NamedTuple):
    """A part of update `n` that one operand of a concatenation gives, or all of it: dimensions, and where it begins."""

    n: int
    update: Instruction
    sizes: tuple[int, ...]
    start: tuple[int, ...]

    def at(self, index: Index) -> Index:
        """The update's index of an index into the box."""
        return tuple(i + Const(s) if s else i for i, s in zip(index, self.start, strict=True))


def _emit_cpu(frame: Frame, found: Sequence[Instruction]) -> Kernel:
    plans = []
    for box in (box for n, update in enumerate(found) for box in _boxes(n, update, frame.target)):
        value = box.update.operands[1]
        runs = contiguous_runs([value], box.at(dims(len(box.sizes))), box.sizes, frame.kernel.partition)
        plans.append((box, plan_cpu(box.sizes, _split_where_partial(runs, box))))
    total = sum(plan.items for _, plan in plans)
    first = 0
    for box, plan in plans:
        n = box.n
        if prod(box.sizes):
            body = _body(frame, box.update, n, box.at)
            frame.outputs[n : n + 1] = cpu_loops(frame, plan, first, total, [frame.outputs[n]], body)
        first += plan.items
    return frame.finish(Launch(work_items=total), "dus", {"in place": str(frame.aliases)})


def _boxes(n: int, update: Instruction, target: Target) -> list[_Box]:
    """The parts of an update, each with loops of its own: where operands of a concatenation meet, if these are long."""
    value = update.operands[1]
    sizes = value.shape.dims
    d, borders = joined_at([value], sizes, code_limit(target))
    row = prod(sizes[d + 1 :]) if d >= 0 else 0
    if not row or any((end - start) * row < _LONG for start, end in pairwise(borders)):
        return [_Box(n, update, sizes, (0,) * len(sizes))]
    parts = [(_with(sizes, d, end - start), start) for start, end in pairwise(borders)]
    return [_Box(n, update, part, _with((0,) * len(sizes), d, start)) for part, start in parts]


def _with(sizes: tuple[int, ...], d: int, size: int) -> tuple[int, ...]:
    return (*sizes[:d], size, *sizes[d + 1 :])


def _split_where_partial(runs: Sequence[Sequence[int]], box: _Box) -> list[list[int]]:
    """Cut runs where the box does not span the whole dimension of its target: there writes are not contiguous."""
    whole, part = box.update.operands[0].shape.dims, box.sizes
    result: list[list[int]] = []
    for run in runs:
        current: list[int] = []
        for d in run:
            if whole[d] != part[d] and any(part[k] != 1 for k in current):
                result.append(current)
                current = []
            current.append(d)
        result.append(current)
    return result


def _emit_gpu(frame: Frame, found: Sequence[Instruction]) -> Kernel:
    shapes = [u.operands[1].shape for u in found]
    several = sum(s.num_elements > 0 for s in shapes) > 1
    parts: list[Part] = []
    plans: list[GpuPlan] = []
    for n, (update, shape) in enumerate(zip(found, shapes, strict=True)):
        if shape.num_elements:
            size, bits = shape.num_elements, shape.element_type.bits
            plan = plan_gpu(size, bits, frame.target, whole_blocks=several, room=frame.room)
            plans.append(plan)
            parts.append(Part(plan.grid, (n,), partial(_updated, frame, update, n, plan)))
    if not parts:
        return frame.finish(Launch(), "dus", {"elements": "0"})
    launch = Launch((gpu_parts(frame, parts), 1, 1), (plans[0].block, 1, 1))
    vectors = " + ".join(str(plan.vector) for plan in plans)
    return frame.finish(launch, "dus", {"vector": vectors, "in place": str(frame.aliases)})


def _updated(
    frame: Frame, update: Instruction, n: int, plan: GpuPlan, block: SSAValue, tensors: Sequence[SSAValue]
) -> list[SSAValue]:
    return gpu_loops(frame, update.operands[1].shape.dims, plan, tensors, _body(frame, update, n), block)


def _body(frame: Frame, update: Instruction, n: int, at: Callable[[Index], Index] = tuple) -> Body:
    """Writes one element of the update to output `n`, which may be a view of the updated array. ``at``: the update's
    index of the loop's."""
    whole, seen = update.shape.dims, frame.fusion.outputs[n].shape.dims

    def body(place: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        e = frame.e
        index = e.simplify(at(place))
        value = e.value(update.operands[1], index)
        where = tuple(p + s for p, s in zip(index, update_starts(e, update), strict=True))
        if whole != seen:
            where = delinearize(linearize(where, whole), seen)
        return [e.insert(value, carried[0], e.simplify(where))]

    return body
