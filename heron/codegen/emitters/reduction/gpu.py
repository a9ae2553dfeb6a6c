"""Reductions on the GPU: threads sum strided parts, warps by shuffles, blocks through shared memory. No atomics.

Rows (the last dimension is reduced): up to 1024 threads share a row, several rows share a block when rows are short;
each thread reads vectors. Columns (the last dimension stays): a block takes up to 32 neighbouring columns, and reads as
many source rows at once as it has threads for; partial sums go through shared memory so that each warp sums a column.
Different reductions of one fusion have ranges of blocks of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.fusion.output_boxes import Piece
from heron.analysis.fusion.reduction import Axis
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.analysis.indexing.map import Constraint
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.gpu_sums import PartialSums, accumulator_bytes, rounds, sync
from heron.codegen.emitters.loops import WARPS_PER_BLOCK, Part, gpu_parts
from heron.codegen.emitters.output_boxes import gpu_piece
from heron.codegen.emitters.reduction.code import ReductionCode, Walk
from heron.codegen.ir.dialects.xla_gpu import AllocateSharedOp
from heron.codegen.kernel import Kernel, Launch
from heron.records import dataclass
from heron.targets import WARP

#: bytes a thread reads of a row at once where columns are summed, if that leaves blocks enough
WORD = 4
#: bytes of a row that a block reads at least: one access of memory
LEAST_BYTES = 64
#: bytes of shared memory left to reductions along rows, which take at most 32 partial results a block
ROWS_SHARED = 8 << 10
#: elements a thread should sum before it pays to have more threads on a row
WANTED_ELEMENTS = 4


def emit(frame: Frame, walks: Sequence[Walk], pieces: Sequence[Piece]) -> Kernel:
    """The kernel of reductions and pieces, each with separate blocks."""
    rows = [not walk.axes or walk.axes[-1].reduced for walk in walks]
    room = (frame.target.static_shared_bytes - ROWS_SHARED) // max(1, len(rows) - sum(rows))
    plans = [
        Rows.of(frame, walk) if is_row else Columns.of(frame, walk, room)
        for walk, is_row in zip(walks, rows, strict=True)
    ]
    several = len(plans) + len(pieces) > 1
    block = max(plan.block for plan in plans)
    if several:
        plans = [plan.in_blocks_of(block) for plan in plans]
    parts = [Part(plan.grid, plan.members, partial(_part, frame, plan)) for plan in plans]
    parts += [gpu_piece(frame, piece, several=True, block=block)[1] for piece in pieces]
    grid = gpu_parts(frame, parts)
    notes: dict[str, str] = {"form": " and ".join(plan.form for plan in plans)}
    for plan in plans[: 1 if not several else 0]:
        notes |= plan.notes
    shared = sum(plan.shared_bytes for plan in plans)
    frame.bound_copies()
    return frame.finish(Launch((grid, 1, 1), (block, 1, 1), shared), "reduce", notes)


def _part(frame: Frame, plan: Rows | Columns, block: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """The work of the blocks of one reduction: `block` counts them."""
    before = list(frame.outputs)
    plan.emit(frame, frame.e.variable(block, 0, plan.grid - 1))
    results = [frame.outputs[n] for n in plan.members]
    frame.outputs[:] = before
    return results


@dataclass(frozen=True, slots=True)
class Rows:
    """``threads`` share a row, each reads ``vector`` neighbours at once; ``per_block`` rows share a block."""

    reduction: ReductionCode
    vector: int
    threads: int
    per_block: int
    block: int

    @staticmethod
    def of(frame: Frame, walk: Walk) -> Rows:
        reduction = walk.reduction
        vector = _vector(reduction, walk.axes, frame.room)
        threads = _threads(reduction.row // vector, reduction.rows, frame)
        per_block = max(1, min(WARPS_PER_BLOCK * WARP // threads, reduction.rows))
        block = threads * per_block
        if block < WARP:  # shuffles want whole warps
            block, per_block = WARP, WARP // threads
        return Rows(reduction, vector, threads, per_block, block)

    def in_blocks_of(self, block: int) -> Rows:
        return replace(self, block=block, per_block=block // self.threads)

    @property
    def grid(self) -> int:
        return -(-self.reduction.rows // self.per_block)

    @property
    def members(self) -> tuple[int, ...]:
        return (*self.reduction.side, *self.reduction.after)

    @property
    def form(self) -> str:
        return f"rows of {self.reduction.row}"

    @property
    def notes(self) -> dict[str, str]:
        return {"threads": str(self.threads), "vector": str(self.vector)}

    @property
    def shared_bytes(self) -> int:
        if self.threads <= WARP:
            return 0
        return self.per_block * (self.threads // WARP) * accumulator_bytes(self.reduction.reducers)

    def emit(self, frame: Frame, number: Expr) -> None:
        e, reduction, threads, vector = frame.e, self.reduction, self.threads, self.vector
        thread = e.variable(frame.thread_id(), 0, self.block - 1)
        row = e.simplify((number * self.per_block + thread // threads,))[0]
        lane = e.simplify((thread % threads,))[0]
        exists: list[Constraint] = [(row, 0, reduction.rows - 1)]
        kept = e.simplify(delinearize(row, reduction.kept_sizes))
        reduced_sizes = [reduction.sizes[d] for d in reduction.reduced]

        def element(round_: Expr, v: Expr, values: Sequence[SSAValue]) -> list[SSAValue]:
            at = ((round_ * threads + lane) * vector) + v
            return reduction.element(frame, _index(frame, reduction, kept, delinearize(at, reduced_sizes)), values)

        side = [frame.outputs[n] for n in reduction.side]
        inits = [*reduction.start(frame), *side]
        results = rounds(frame, reduction.row // vector, threads, lane, vector, exists, inits, element)
        n = reduction.accumulators
        reduction.store(frame, reduction.side, results[n:])
        partial_sums = PartialSums.of(frame, reduction.reducers, min((*reduction.after, *reduction.side)))
        sums = partial_sums.in_warp(results[:n], min(threads, WARP))
        if threads > WARP:
            sums = partial_sums.in_block(sums, thread, threads, self.per_block)
        _write(frame, reduction, kept, sums, [*exists, (lane, 0, 0)])


@dataclass(frozen=True, slots=True)
class Columns:
    """A block takes ``width`` neighbouring columns, of which a thread takes ``vector``.

    ``rows`` of its threads stand below each other.
    """

    reduction: ReductionCode
    last: Axis
    vector: int
    width: int
    rows: int
    block: int

    @staticmethod
    def of(frame: Frame, walk: Walk, room: int) -> Columns:
        """As many threads as there are, unless their partial results need more than `room` bytes.

        A block has fewer columns where they would not go round the device's cores, but reads `LEAST_BYTES` of a row.
        """
        reduction, last = walk.reduction, walk.axes[-1]
        widest = max(a.shape.element_type.byte_size or 1 for r in reduction.reducers for a in r.arrays)
        vector, enough = max(1, WORD // widest), frame.target.cores * WARP
        while vector > 1 and (2 * vector > frame.room or last.length % vector or reduction.rows // vector < enough):
            vector //= 2
        limit = min(WARP * WARP, frame.target.threads_per_block)
        while True:
            across = min(limit // WARP, last.length // vector)
            if reduction.rows // (across * vector) < frame.target.cores:
                across = min(across, max(1, LEAST_BYTES // (widest * vector)))
            rows = limit // across // WARP * WARP
            block = 1 << (rows * across - 1).bit_length()
            found = Columns(reduction, last, vector, across * vector, rows, block)
            if found.shared_bytes <= room or limit == WARP:
                return found
            if vector > 1:
                vector //= 2
            else:
                limit //= 2

    def in_blocks_of(self, block: int) -> Columns:
        return replace(self, block=block)

    @property
    def tiles(self) -> int:
        return -(-self.last.length // self.width)

    @property
    def grid(self) -> int:
        return self.tiles * (self.reduction.rows // self.last.length)

    @property
    def members(self) -> tuple[int, ...]:
        return (*self.reduction.side, *self.reduction.after)

    @property
    def form(self) -> str:
        return f"columns of {self.reduction.row}"

    @property
    def notes(self) -> dict[str, str]:
        return {"tile": f"{self.rows}x{self.width}", "vector": str(self.vector)}

    @property
    def shared_bytes(self) -> int:
        return self.rows * self._stride * accumulator_bytes(self.reduction.reducers)

    @property
    def _stride(self) -> int:
        """Elements of a row in shared memory: odd, so that a warp reads a column without bank conflicts."""
        return self.width | 1

    def emit(self, frame: Frame, number: Expr) -> None:
        e, reduction, rows, vector = frame.e, self.reduction, self.rows, self.vector
        across, n = self.width // vector, reduction.accumulators
        thread = e.variable(frame.thread_id(), 0, self.block - 1)
        column, line = e.simplify((thread % across * vector, thread // across))
        mine = [self._kept(frame, number, column + k) for k in range(vector)]
        places, exists = [kept for kept, _ in mine], mine[0][1]  # the other columns exist when the first does
        idle: list[Constraint] = [(line, 0, rows - 1)] if rows * across < self.block else []
        reduced_sizes = [reduction.sizes[d] for d in reduction.reduced]

        def element(round_: Expr, _: Expr, values: Sequence[SSAValue]) -> list[SSAValue]:
            reduced = delinearize(round_ * rows + line, reduced_sizes)
            sums: list[SSAValue] = []
            side = values[n * vector :]
            for k, kept in enumerate(places):
                index = _index(frame, reduction, kept, reduced)
                results = reduction.element(frame, index, [*values[k * n : (k + 1) * n], *side])
                sums, side = [*sums, *results[:n]], results[n:]
            return [*sums, *side]

        side = [frame.outputs[k] for k in reduction.side]
        inits = [*(v for _ in range(vector) for v in reduction.start(frame)), *side]
        results = rounds(frame, reduction.row, rows, line, 1, [*exists, *idle], inits, element)
        reduction.store(frame, reduction.side, results[n * vector :])
        types = [t for r in reduction.reducers for t in r.packed_types]
        shared = [e.b.op(AllocateSharedOp, type=TensorType(t, [rows, self._stride])) for t in types]

        def save(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            for k in range(vector):
                values = zip(results[k * n : (k + 1) * n], tensors, strict=True)
                tensors = [frame.e.write(v, t, (line, column + k)) for v, t in values]
            return list(tensors)

        ready = sync(frame, e.loop([], shared, save, lambda _: idle))
        self._sum_columns(frame, number, thread, ready)

    def _sum_columns(self, frame: Frame, number: Expr, thread: Expr, ready: Sequence[SSAValue]) -> None:
        """Each warp sums the partial results of `vector` columns and stores the epilogue of them."""
        e, reduction = frame.e, self.reduction
        lane, warp = e.simplify((thread % WARP, thread // WARP))
        summing: list[Constraint] = [(warp, 0, self.width // self.vector - 1)]
        partial_sums = PartialSums.of(frame, reduction.reducers, min((*reduction.after, *reduction.side)))
        for k in range(self.vector):
            column = warp * self.vector + k

            def gather(variables: Index, values: Sequence[SSAValue], column: Expr = column) -> list[SSAValue]:
                read = [frame.e.read(t, (variables[0] * WARP + lane, column)) for t in ready]
                parts = zip(reduction.reducers, reduction.split(values), reduction.split(read), strict=True)
                return [v for r, a, b in parts for v in r.merge(e, a, b)]

            if self.rows == WARP and self.block == WARP * WARP == WARP * self.width // self.vector:
                partials = [frame.e.read(t, (lane, column)) for t in ready]
            else:
                partials = e.loop([self.rows // WARP], reduction.start(frame), gather, lambda _: summing)
            sums = partial_sums.in_warp(partials, WARP)
            kept, exists = self._kept(frame, number, column)
            _write(frame, reduction, kept, sums, [*exists, *summing, (lane, 0, 0)])

    def _kept(self, frame: Frame, number: Expr, within: Expr) -> tuple[Index, list[Constraint]]:
        """The kept dimensions at a column of the block, and what must hold for it to exist."""
        e, reduction, last = frame.e, self.reduction, self.last
        outer = [d for d in reduction.kept if d not in last.dims]
        at = number % self.tiles * self.width + within
        parts = dict(zip(outer, delinearize(number // self.tiles, [reduction.sizes[d] for d in outer]), strict=True))
        parts |= zip(last.dims, delinearize(at, [reduction.sizes[d] for d in last.dims]), strict=True)
        index = e.simplify(tuple(parts.get(d, Const(0)) for d in reduction.kept))
        return index, [(e.simplify((at,))[0], 0, last.length - 1)]


# -- pieces ------------------------------------------------------------------------------------------------------------


def _vector(reduction: ReductionCode, axes: Sequence[Axis], room: float) -> int:
    """The number of neighbouring elements a thread reads at once: up to 128 bits of the widest array, and ``room``
    copies of the code, which stands in a loop and behind it, for the rest."""
    if not axes:
        return 1
    widest = max(a.shape.element_type.byte_size for r in reduction.reducers for a in r.arrays)
    vector = max(1, 16 // widest)
    while vector > 1 and (2 * vector > room or axes[-1].length % vector or reduction.row < vector * WARP):
        vector //= 2
    return vector


def _threads(parts: int, rows: int, frame: Frame) -> int:
    """Threads on a row of `parts` vectors: a power of two that leaves each some work; few when there are many rows."""
    limit = min(1024, frame.target.threads_per_block)
    if rows >= 4 * frame.target.cores:
        limit = min(limit, 256)
    threads = 1
    while threads < limit and threads * 2 * WANTED_ELEMENTS <= parts:
        threads *= 2
    return max(threads, min(WARP, 1 << max(parts - 1, 0).bit_length()))


def _index(frame: Frame, reduction: ReductionCode, kept: Sequence[Expr], reduced: Sequence[Expr]) -> Index:
    parts = dict(zip(reduction.kept, kept, strict=True)) | dict(zip(reduction.reduced, reduced, strict=True))
    return frame.e.simplify(tuple(parts[d] for d in range(len(reduction.sizes))))


def _write(
    frame: Frame,
    reduction: ReductionCode,
    kept: Index,
    sums: Sequence[SSAValue],
    where: Sequence[Constraint],
) -> None:
    """The epilogue, in the threads that hold whole results."""

    def body(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        return reduction.epilogue(frame, kept, sums, tensors)

    outputs = [frame.outputs[n] for n in reduction.after]
    reduction.store(frame, reduction.after, frame.e.loop([], outputs, body, lambda _: where))
