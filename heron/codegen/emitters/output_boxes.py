"""Loops over pieces of outputs: what the loop, concatenate and slices emitters share.

A piece is a box of the index space of outputs of equal dimensions: all of it, or the part where one operand of a
concatenation lies. Each piece has separate loops (CPU) or separate blocks (GPU), so that the code of one piece never
branches over the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from xdsl.ir import SSAValue

from heron.analysis.fusion.loop_space import Space, output_space
from heron.analysis.fusion.output_boxes import Piece
from heron.analysis.indexing.expr import Const
from heron.analysis.indexing.hlo_maps import Index, memory_sizes, to_memory
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.cpu_plan import CpuPlan, plan_space
from heron.codegen.emitters.loops import (
    Body,
    GpuPlan,
    Part,
    cpu_loops,
    gpu_loops,
    gpu_parts,
    plan_gpu,
)
from heron.codegen.kernel import Kernel, Launch

NO_NOTES: Mapping[str, str] = {}


def emit_cpu(frame: Frame, pieces: Sequence[Piece], emitter: str, notes: Mapping[str, str] = NO_NOTES) -> Kernel:
    """The kernel that does these pieces, one after the other."""
    plans = [plan_piece(frame, piece) for piece in pieces]
    total = sum(plan.items for _, plan in plans)
    cpu_pieces(frame, pieces, plans, 0, total)
    loops = " + ".join("x".join(str(len(run)) for run in plan.runs) or "scalar" for _, plan in plans)
    return frame.finish(Launch(work_items=total), emitter, {"loops": loops, **notes})


def plan_piece(frame: Frame, piece: Piece, *beside: Piece) -> tuple[Space, CpuPlan]:
    """The loops of a piece on the CPU, and of those `beside` it."""
    outputs = [frame.fusion.outputs[n] for n in piece.members]
    space = output_space(outputs, piece.shape, frame.kernel.partition, piece.index, *(p.index for p in beside))
    return space, plan_space(space, frame.fusion.parts)


def emit_beside(frame: Frame, pieces: Sequence[Piece], emitter: str, notes: Mapping[str, str] = NO_NOTES) -> Kernel:
    """The CPU kernel of equal boxes whose elements lie beside each other: one loop stores an element of each."""
    first = pieces[0]
    space, plan = plan_piece(frame, *pieces)
    steps = [[Const(b - a) for a, b in zip(first.start, piece.start, strict=True)] for piece in pieces]

    def at(place: Index, step: Sequence[Const]) -> Index:
        return tuple(i + s if s.value else i for i, s in zip(space.at(place), step, strict=True))

    places = [partial(at, step=step) for step in steps]
    body = elements(frame, first.members, *places)
    inits = [frame.outputs[n] for n in first.members]
    store(frame, first.members, cpu_loops(frame, plan, 0, plan.items, inits, body))
    loops = "x".join(str(len(run)) for run in plan.runs) or "scalar"
    return frame.finish(Launch(work_items=max(plan.items, 1)), emitter, {"loops": loops, **notes})


def cpu_pieces(
    frame: Frame, pieces: Sequence[Piece], plans: Sequence[tuple[Space, CpuPlan]], first: int, total: int
) -> None:
    """The loops of pieces whose work items begin at `first` of `total`."""
    for (space, plan), piece in zip(plans, pieces, strict=True):
        inits = [frame.outputs[n] for n in piece.members]
        body = elements(frame, piece.members, space.at)
        straight, frame.kernel.straight = frame.kernel.straight, frame.kernel.straight and not piece.is_edge
        store(frame, piece.members, cpu_loops(frame, plan, first, total, inits, body))
        frame.kernel.straight = straight
        first += plan.items


def emit_gpu(frame: Frame, pieces: Sequence[Piece], emitter: str, notes: Mapping[str, str] = NO_NOTES) -> Kernel:
    """The kernel that does these pieces, each by separate blocks."""
    if not pieces:
        return frame.finish(Launch(), emitter, {"elements": "0", **notes})
    parts = [gpu_piece(frame, piece, several=len(pieces) > 1) for piece in pieces]
    plans = [plan for plan, _ in parts]
    grid = gpu_parts(frame, [part for _, part in parts])
    vectors = " + ".join(str(plan.vector) for plan in plans)
    return frame.finish(Launch((grid, 1, 1), (plans[0].block, 1, 1)), emitter, {"vector": vectors, **notes})


def gpu_piece(frame: Frame, piece: Piece, *, several: bool, block: int = 0) -> tuple[GpuPlan, Part]:
    """The blocks of a piece; ``several``: they share the launch with others; of `block` threads each, unless 0."""
    outputs = [frame.fusion.outputs[n] for n in piece.members]
    widest = max(o.shape.element_type.bits for o in outputs)
    size, target = piece.shape.num_elements, frame.target
    plan = plan_gpu(size, widest, target, row=piece.row, whole_blocks=several, block=block, room=frame.room)

    def emit(block: SSAValue, tensors: Sequence[SSAValue]) -> Sequence[SSAValue]:
        body = elements(frame, piece.members, piece.at)
        return gpu_loops(frame, memory_sizes(piece.shape), plan, tensors, body, block)

    return plan, Part(plan.grid, piece.members, emit)


# -- outputs that share a loop -----------------------------------------------------------------------------------------


def elements(frame: Frame, members: Sequence[int], *places: Callable[[Index], Index]) -> Body:
    """Computes and stores elements of outputs `members`: each of `places` makes the loop's place an index of theirs."""

    def body(place: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        outputs = [frame.fusion.outputs[n] for n in members]
        at = [frame.e.simplify(index(place)) for index in places]
        # all values first: an output may share its buffer with an input
        values = [[o.of(frame.e.value(o.instruction, index)) for o in outputs] for index in at]
        tensors = list(carried)
        for index, found in zip(at, values, strict=True):
            stores = zip(found, tensors, outputs, strict=True)
            tensors = [frame.e.insert(v, tensor, to_memory(o.shape, index)) for v, tensor, o in stores]
        return tensors

    return body


def store(frame: Frame, members: Sequence[int], results: Sequence[SSAValue]) -> None:
    """`results` are what outputs `members` now are."""
    for n, result in zip(members, results, strict=True):
        frame.outputs[n] = result
