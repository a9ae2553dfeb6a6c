"""Loops over pieces of outputs: what the loop, concatenate and slices emitters share.

A piece is a box of the index space of outputs of equal dimensions: all of it, or the part where one operand of a
concatenation lies. Each piece has loops of its own (CPU) or blocks of its own (GPU), so that code for one piece never
branches over the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import TypeAlias

from xdsl.ir import SSAValue

from heron.analysis.fusion.sharing import loop_groups
from heron.analysis.indexing.expr import Const
from heron.analysis.indexing.hlo_maps import Index, from_memory, memory_order, memory_sizes, to_memory
from heron.codegen.emitters.base import Entry, Fusion
from heron.codegen.emitters.loop_space import Space, output_space
from heron.codegen.emitters.loops import (
    Body,
    CpuPlan,
    GpuPlan,
    Part,
    cpu_loops,
    gpu_loops,
    gpu_parts,
    plan_cpu,
    plan_gpu,
)
from heron.codegen.kernel import Kernel, Launch
from heron.hlo.ir.shape import Shape


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of the index space of outputs `members`: as large as ``shape``, beginning at ``start``.

    ``whole``: the outputs' own shape.
    """

    shape: Shape
    members: tuple[int, ...]
    whole: Shape
    start: tuple[int, ...]

    def index(self, inside: Index) -> Index:
        """The outputs' index of an index into the box."""
        return tuple(i + Const(s) if s else i for i, s in zip(inside, self.start, strict=True))

    def at(self, place: Index) -> Index:
        """The outputs' index of a place of the box in memory order."""
        return self.index(from_memory(self.shape, place))

    @property
    def row(self) -> int:
        """A number of elements that divides each stretch of the box that lies in one piece in memory, and its place."""
        if self.shape.dims == self.whole.dims:
            return self.shape.num_elements
        part, whole = memory_sizes(self.shape), memory_sizes(self.whole)
        first = [self.start[d] for d in memory_order(self.shape)]
        cut = max(k for k, (a, b) in enumerate(zip(part, whole, strict=True)) if a != b)
        return gcd(prod(part[cut:]), prod(whole[cut:]), first[cut] * prod(whole[cut + 1 :]))


def whole_pieces(fusion: Fusion) -> list[Piece]:
    """A piece for all outputs of equal dimensions that have something in common; empty outputs need none."""
    loops: dict[int, list[int]] = {}
    for n, loop in enumerate(loop_groups([o.instruction for o in fusion.outputs])):
        if fusion.outputs[n].shape.num_elements:
            loops.setdefault(loop, []).append(n)
    return [piece_of(fusion, members) for members in loops.values()]


def piece_of(fusion: Fusion, members: Sequence[int]) -> Piece:
    """All of outputs `members`, in the order the first lies in memory."""
    shape = fusion.outputs[members[0]].shape
    return Piece(shape, tuple(members), shape, (0,) * shape.rank)


def emit_pieces(frame: Entry, pieces: Sequence[Piece], emitter: str, notes: dict[str, str] | None = None) -> Kernel:
    """The kernel that does these pieces."""
    if frame.is_gpu:
        return _emit_gpu(frame, pieces, emitter, notes or {})
    return _emit_cpu(frame, pieces, emitter, notes or {})


def _emit_cpu(frame: Entry, pieces: Sequence[Piece], emitter: str, notes: dict[str, str]) -> Kernel:
    plans = [plan_piece(frame, piece) for piece in pieces]
    total = sum(plan.items for _, plan in plans)
    cpu_pieces(frame, pieces, plans, 0, total)
    loops = " + ".join("x".join(str(len(run)) for run in plan.runs) or "scalar" for _, plan in plans)
    return frame.finish(Launch(work_items=max(total, 1)), emitter, {"loops": loops, **notes})


def plan_piece(frame: Entry, piece: Piece) -> tuple[Space, CpuPlan]:
    """The loops of a piece on the CPU."""
    outputs = [frame.fusion.outputs[n] for n in piece.members]
    space = output_space(outputs, piece.shape, frame.kernel.partition, piece.start)
    return space, plan_cpu(space.sizes, space.runs, frame.fusion.parts)


def cpu_pieces(
    frame: Entry, pieces: Sequence[Piece], plans: Sequence[tuple[Space, CpuPlan]], first: int, total: int
) -> None:
    """The loops of pieces whose work items begin at `first` of `total`."""
    for (space, plan), piece in zip(plans, pieces, strict=True):
        inits = [frame.outputs[n] for n in piece.members]
        body = elements(frame, piece.members, space.at)
        store(frame, piece.members, cpu_loops(frame, plan, first, total, inits, body))
        first += plan.items


def _emit_gpu(frame: Entry, pieces: Sequence[Piece], emitter: str, notes: dict[str, str]) -> Kernel:
    if not pieces:
        return frame.finish(Launch(), emitter, {"elements": "0", **notes})
    parts = [gpu_piece(frame, piece, several=len(pieces) > 1) for piece in pieces]
    plans = [plan for plan, _ in parts]
    grid = gpu_parts(frame, [part for _, part in parts])
    vectors = " + ".join(str(plan.vector) for plan in plans)
    return frame.finish(Launch((grid, 1, 1), (plans[0].block, 1, 1)), emitter, {"vector": vectors, **notes})


def gpu_piece(frame: Entry, piece: Piece, *, several: bool, block: int = 0) -> tuple[GpuPlan, Part]:
    """The blocks of a piece; ``several``: they share the launch with others; of `block` threads each, unless 0."""
    outputs = [frame.fusion.outputs[n] for n in piece.members]
    widest = max(o.shape.element_type.bits for o in outputs)
    plan = plan_gpu(piece.shape.num_elements, widest, frame.target, row=piece.row, whole_blocks=several, block=block)

    def emit(block: SSAValue, tensors: Sequence[SSAValue]) -> Sequence[SSAValue]:
        body = elements(frame, piece.members, piece.at)
        return gpu_loops(frame, memory_sizes(piece.shape), plan, tensors, body, block)

    return plan, Part(plan.grid, piece.members, emit)


# -- outputs that share a loop -----------------------------------------------------------------------------------------

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
