"""Reductions on the GPU: threads sum strided parts, warps by shuffles, blocks through shared memory. No atomics.

Rows (the last dimension is reduced): 32 to 1024 threads share a row, several rows share a block when rows are short;
each thread reads vectors. Columns (the last dimension stays): a block of 32 x 32 threads takes 32 neighbouring
columns; each warp reads along a source row, and the tile of partial sums is turned in shared memory so that each
warp sums a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.analysis.indexing.map import Constraint
from heron.codegen.dialects.xla_gpu import AllocateSharedOp, ShuffleReduceOp, SyncThreadsOp
from heron.codegen.heroes.base import Entry
from heron.codegen.heroes.reduction_form import Axis, Reduction
from heron.codegen.heroes.reduction_tiles import get, put
from heron.codegen.kernel import Kernel, Launch

WARP = 32
#: elements a thread should sum before it pays to have more threads on a row
WANTED_ELEMENTS = 4
#: loops with at least this many whole rounds keep their bounds check out of the loop
MIN_ROUNDS = 2


def emit(frame: Entry, reduction: Reduction, axes: Sequence[Axis]) -> Kernel:
    """The kernel; `axes` are the loops over the source, outermost first."""
    if not axes or axes[-1].reduced:
        return _rows(frame, reduction, axes)
    return _columns(frame, reduction, axes[-1])


def _rows(frame: Entry, reduction: Reduction, axes: Sequence[Axis]) -> Kernel:
    e, rows, row = frame.e, reduction.rows, reduction.row
    vector = _vector(reduction, axes)
    threads = _threads(row // vector, rows, frame)
    per_block = max(1, min(128 // threads, rows))
    block = threads * per_block
    if block < WARP:  # shuffles want whole warps
        block, per_block = WARP, WARP // threads
    grid = -(-rows // per_block)
    thread = e.variable(frame.thread_id(), 0, block - 1)
    number = e.simplify((e.variable(frame.block_id(), 0, grid - 1) * per_block + thread // threads,))[0]
    lane = e.simplify((thread % threads,))[0]
    exists: list[Constraint] = [(number, 0, rows - 1)]
    kept = e.simplify(delinearize(number, reduction.kept_sizes))
    reduced_sizes = [reduction.sizes[d] for d in reduction.reduced]

    def element(round_: Expr, v: Expr, values: Sequence[SSAValue]) -> list[SSAValue]:
        at = ((round_ * threads + lane) * vector) + v
        return reduction.element(frame, _index(frame, reduction, kept, delinearize(at, reduced_sizes)), values)

    side = [frame.outputs[n] for n in reduction.side]
    inits = [*reduction.start(frame), *side]
    results = _rounds(frame, row // vector, threads, lane, vector, exists, inits, element)
    n = reduction.accumulators
    reduction.store(frame, reduction.side, results[n:])
    combiners = _combiners(frame, reduction)
    sums = _warp_sum(frame, reduction, combiners, results[:n], min(threads, WARP))
    if threads > WARP:
        sums = _block_sum(frame, reduction, combiners, sums, thread, threads, per_block)
    _write(frame, reduction, kept, sums, [*exists, (lane, 0, 0)])
    notes = {"form": f"rows of {row}", "threads": str(threads), "vector": str(vector)}
    shared = 0 if threads <= WARP else per_block * (threads // WARP) * _accumulator_bytes(reduction)
    return frame.finish(Launch((grid, 1, 1), (block, 1, 1), shared), "reduce", notes)


def _columns(frame: Entry, reduction: Reduction, last: Axis) -> Kernel:
    e, row, columns = frame.e, reduction.row, last.length
    tiles = -(-columns // WARP)
    block, grid = WARP * WARP, tiles * (reduction.rows // columns)
    thread = e.variable(frame.thread_id(), 0, block - 1)
    number = e.variable(frame.block_id(), 0, grid - 1)
    lane, warp = e.simplify((thread % WARP, thread // WARP))
    outer = [d for d in reduction.kept if d not in last.dims]
    reduced_sizes = [reduction.sizes[d] for d in reduction.reduced]

    def kept_at(within: Expr) -> tuple[Index, list[Constraint]]:
        column = number % tiles * WARP + within
        place = delinearize(number // tiles, [reduction.sizes[d] for d in outer])
        parts = dict(zip(outer, place, strict=True))
        parts |= zip(last.dims, delinearize(column, [reduction.sizes[d] for d in last.dims]), strict=True)
        index = e.simplify(tuple(parts.get(d, Const(0)) for d in reduction.kept))
        return index, [(e.simplify((column,))[0], 0, columns - 1)]

    kept, exists = kept_at(lane)

    def element(round_: Expr, v: Expr, values: Sequence[SSAValue]) -> list[SSAValue]:
        reduced = delinearize(round_ * WARP + warp, reduced_sizes)
        return reduction.element(frame, _index(frame, reduction, kept, reduced), values)

    side = [frame.outputs[n] for n in reduction.side]
    results = _rounds(frame, row, WARP, warp, 1, exists, [*reduction.start(frame), *side], element)
    n = reduction.accumulators
    reduction.store(frame, reduction.side, results[n:])
    types = [t for r in reduction.reducers for t in r.packed_types]
    # rows of 33 elements: a warp reads a column of the tile without bank conflicts
    shared = [e.b.op(AllocateSharedOp, type=TensorType(t, [WARP, WARP + 1])) for t in types]
    stored = [put(frame, v, t, (warp, lane)) for v, t in zip(results[:n], shared, strict=True)]
    ready = _sync(frame, stored)
    turned = [get(frame, t, (lane, warp)) for t in ready]
    sums = _warp_sum(frame, reduction, _combiners(frame, reduction), turned, WARP)
    kept, exists = kept_at(warp)
    _write(frame, reduction, kept, sums, [*exists, (lane, 0, 0)])
    bytes_ = WARP * (WARP + 1) * _accumulator_bytes(reduction)
    return frame.finish(Launch((grid, 1, 1), (block, 1, 1), bytes_), "reduce", {"form": f"columns of {row}"})


# -- pieces ------------------------------------------------------------------------------------------------------------


def _vector(reduction: Reduction, axes: Sequence[Axis]) -> int:
    """How many neighbouring elements a thread reads at once: up to 128 bits of the widest array."""
    if not axes:
        return 1
    widest = max(a.shape.element_type.byte_size for r in reduction.reducers for a in r.arrays)
    vector = max(1, 16 // widest)
    while vector > 1 and (axes[-1].length % vector or reduction.row < vector * WARP):
        vector //= 2
    return vector


def _threads(parts: int, rows: int, frame: Entry) -> int:
    """Threads on a row of `parts` vectors: a power of two that leaves each some work; few when there are many rows."""
    limit = min(1024, frame.target.threads_per_block)
    if rows >= 4 * frame.target.cores:
        limit = min(limit, 256)
    threads = 1
    while threads < limit and threads * 2 * WANTED_ELEMENTS <= parts:
        threads *= 2
    return max(threads, min(WARP, 1 << max(parts - 1, 0).bit_length()))


def _rounds(
    frame: Entry,
    parts: int,
    threads: int,
    lane: Expr,
    vector: int,
    exists: Sequence[Constraint],
    inits: Sequence[SSAValue],
    element: Callable[[Expr, Expr, Sequence[SSAValue]], Sequence[SSAValue]],
) -> list[SSAValue]:
    """The threads' walk over `parts` vectors of a row: whole rounds without bounds check, then the rest."""
    whole, rest = divmod(parts, threads)
    rounds = [(0, whole, False)] if whole >= MIN_ROUNDS or not rest else []
    if not rounds:
        rounds = [(0, whole + 1, True)]
    elif rest:
        rounds.append((whole, 1, True))
    values = list(inits)
    for first, count, bounded in rounds:

        def body(variables: Index, carried: Sequence[SSAValue], first: int = first) -> Sequence[SSAValue]:
            return element(variables[0] + first, variables[1], carried)

        def inside(variables: Index, first: int = first, bounded: bool = bounded) -> list[Constraint]:
            at = (variables[0] + first) * threads + lane
            return [*exists, *([(at, 0, parts - 1)] if bounded else [])]

        values = frame.e.loop([count, vector], values, body, inside)
    return values


def _index(frame: Entry, reduction: Reduction, kept: Sequence[Expr], reduced: Sequence[Expr]) -> Index:
    parts = dict(zip(reduction.kept, kept, strict=True)) | dict(zip(reduction.reduced, reduced, strict=True))
    return frame.e.simplify(tuple(parts[d] for d in range(len(reduction.sizes))))


def _combiners(frame: Entry, reduction: Reduction) -> list[str]:
    return [r.combiner(frame.e, f"{frame.name}_combine_{n}") for n, r in enumerate(reduction.reducers)]


def _warp_sum(
    frame: Entry, reduction: Reduction, combiners: Sequence[str], values: Sequence[SSAValue], lanes: int
) -> list[SSAValue]:
    """Partial results of `lanes` neighbouring threads combined; the first of them has the whole."""
    if lanes == 1:
        return list(values)
    sums: list[SSAValue] = []
    for symbol, part in zip(combiners, reduction.split(values), strict=True):
        sums += frame.e.b.add(ShuffleReduceOp(symbol, part, lanes // 2)).results
    return sums


def _block_sum(
    frame: Entry,
    reduction: Reduction,
    combiners: Sequence[str],
    values: Sequence[SSAValue],
    thread: Expr,
    threads: int,
    rows: int,
) -> list[SSAValue]:
    """The sums of the warps of a row combined; the row's first thread has the whole."""
    e, warps = frame.e, threads // WARP
    row, warp, lane, in_row = e.simplify((thread // threads, thread % threads // WARP, thread % WARP, thread % threads))
    types = [v.type for v in values]
    shared = [e.b.op(AllocateSharedOp, type=TensorType(t, [rows, warps])) for t in types]

    def save(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        return [put(frame, v, t, (row, warp)) for v, t in zip(values, tensors, strict=True)]

    ready = _sync(frame, e.loop([], shared, save, lambda _: [(lane, 0, 0)]))

    def read(_: Index, __: Sequence[SSAValue]) -> list[SSAValue]:
        return [get(frame, t, (row, in_row)) for t in ready]

    partial = e.loop([], reduction.start(frame), read, lambda _: [(in_row, 0, warps - 1)])
    return _warp_sum(frame, reduction, combiners, partial, warps)


def _sync(frame: Entry, tensors: Sequence[SSAValue]) -> list[SSAValue]:
    return list(frame.e.b.add(SyncThreadsOp(tensors)).results)


def _write(
    frame: Entry,
    reduction: Reduction,
    kept: Index,
    sums: Sequence[SSAValue],
    where: Sequence[Constraint],
) -> None:
    """The epilogue, in the threads that hold whole results."""

    def body(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        return reduction.epilogue(frame, kept, sums, tensors)

    outputs = [frame.outputs[n] for n in reduction.after]
    reduction.store(frame, reduction.after, frame.e.loop([], outputs, body, lambda _: where))


def _accumulator_bytes(reduction: Reduction) -> int:
    return sum(t.byte_size for r in reduction.reducers for t in r.types)
