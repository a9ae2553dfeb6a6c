"""Reductions on the CPU along rows: the last dimension is reduced. (`reduction_columns`: it stays.)

A work item is one result. A sum runs in registers, and since it may be reassociated LLVM keeps several vectors of
partial sums. A combination LLVM knows nothing of (the position of a maximum) keeps a tile of partial results instead:
neighbouring elements join neighbouring partial results, which vectorises, and halves of the tile are merged at the end.
Rows of few elements that take long are walked like columns (`analysis.fusion.long_elements`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.fusion.long_elements import FEWEST_RESULTS, has_long_elements
from heron.analysis.fusion.output_boxes import Piece
from heron.analysis.fusion.reduce_order import in_any_order
from heron.analysis.fusion.reduction import Axis, steps_along
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.elemental.reducer import Reducer
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import item_loop
from heron.codegen.emitters.output_boxes import cpu_pieces, plan_piece
from heron.codegen.emitters.partial_sums import BLOCK, COMPLEX_BLOCK, Accumulators, reduced, summed
from heron.codegen.emitters.reducers import lose_digits
from heron.codegen.emitters.reduction.code import ReductionCode, Walk, is_large, is_small, source_index
from heron.codegen.emitters.reduction.cpu_columns import column_items, columns, narrow_columns, narrow_items
from heron.codegen.kernel import Kernel, Launch

#: partial results at most of a row whose combination LLVM cannot reassociate, and the elements for each that make it
#: worth it
LANES = 32
ROUNDS = 4
#: partial results at least: fewer than a vector gain nothing
FEWEST = 8
#: neighbouring results that are kept in registers, not in a tile
NARROW, NARROW_IN_ORDER = 8, 15
#: the longest rows that are columns of partial results, and the rows of a result that make it worth it
LONGEST_LANES, FEWEST_ROWS = 63, 16
#: rows of a large array that are reduced together, at best; the bytes of a row from which on they lie apart
TOGETHER = (8, 7, 6, 5, 4)
ROW_BYTES = 2048
#: work items that are left for the threads of a machine
LEAST_ITEMS = 64


def emit(frame: Frame, walks: Sequence[Walk], pieces: Sequence[Piece]) -> Kernel:
    """The kernel of reductions and pieces, each with separate work items."""
    walks = [_in_columns(frame, _across(walk)) for walk in walks]
    plans = [plan_piece(frame, piece) for piece in pieces]
    counts = [_work_items(frame, walk) for walk in walks]
    total, first = sum(counts) + sum(plan.items for _, plan in plans), 0
    forms: list[str] = []
    for walk, count in zip(walks, counts, strict=True):
        forms.append(_emitted(frame, walk, first, total))
        first += count
    cpu_pieces(frame, pieces, plans, first, total)
    return frame.finish(Launch(work_items=total), "reduce", {"form": " and ".join(forms)})


def _across(walk: Walk) -> Walk:
    """The walk with the results along the last kept axis side by side, where a row is one of few long elements."""
    kept = [a for a in walk.axes if not a.reduced]
    if not walk.along_rows or walk.cut is not None or walk.reduction.side or not kept:
        return walk
    if kept[-1].length < FEWEST_RESULTS or not any(map(has_long_elements, walk.reduction.reduces)):
        return walk
    return replace(walk, axes=(*(a for a in walk.axes if a is not kept[-1]), kept[-1]), across=True)


def _in_columns(frame: Frame, walk: Walk) -> Walk:
    """The walk with short rows in columns: each element of a row has a partial result of its own.

    The rows of a result lie apart. Vectors go along the rows of neighbouring results, however short these are.
    """
    if walk.across or walk.cut is not None or not walk.along_rows or len(walk.axes) < 3:
        return walk
    *outer, last, row = walk.axes
    if row.length > LONGEST_LANES or last.length * row.length <= NARROW_IN_ORDER:
        return walk
    if prod(a.length for a in outer if a.reduced) < FEWEST_ROWS:
        return walk
    fusion, reduction = frame.fusion, walk.reduction
    sources = [*reduction.arrays, *(fusion.outputs[n].instruction for n in reduction.side)]
    if not steps_along(reduction, sources, frame.kernel.partition, (*last.dims, *row.dims)):
        return walk
    both = Axis((*last.dims, *row.dims), last.length * row.length, False)
    return replace(walk, axes=(*outer, both), lanes=row.length)


def _work_items(frame: Frame, walk: Walk) -> int:
    if walk.along_rows:
        return walk.reduction.rows // _rows_together(frame, walk)
    return narrow_items(walk) if _is_narrow(walk) else column_items(walk)


def _emitted(frame: Frame, walk: Walk, first: int, total: int) -> str:
    """Emits a reduction whose work items begin at `first` of `total`; tells its form."""
    if walk.along_rows:
        return _rows(frame, walk, first, total)
    emit_columns = narrow_columns if _is_narrow(walk) else columns
    return emit_columns(frame, walk, first, total)


def _is_narrow(walk: Walk) -> bool:
    """Whether registers keep the results of a row: more of those that are combined in their order, as a row of fewer
    than a vector has no other partial results to fill it with.
    """
    most = NARROW if all(map(in_any_order, walk.reduction.reduces)) else NARROW_IN_ORDER
    return walk.axes[-1].length <= most


def _rows_together(frame: Frame, walk: Walk) -> int:
    """Rows of a work item: several of a large array, whose loops wait for memory. Reads of that many stretches are
    then under way at once.
    """
    reduction = walk.reduction
    read = max(a.shape.element_type.byte_size or 1 for a in reduction.arrays)
    if reduction.side or not all(map(_in_registers, reduction.reducers)) or not is_small(frame.fusion):
        return 1
    if reduction.row * read < ROW_BYTES or not is_large(reduction) or reduction.accumulators > 1:
        return 1
    return next((k for k in TOGETHER if reduction.rows % k == 0 and reduction.rows // k >= LEAST_ITEMS), 1)


def _rows(frame: Frame, walk: Walk, first: int, total: int) -> str:
    e, reduction = frame.e, walk.reduction
    inner = [a for a in walk.axes if a.reduced]
    lengths = [a.length for a in inner]
    loop = e.loop if walk.cut is None else partial(walk.cut.loop, e)
    side = [frame.outputs[n] for n in reduction.side]
    after = [frame.outputs[n] for n in reduction.after]
    together = _rows_together(frame, walk)
    lanes = _lanes(inner[-1].length) if inner and not all(map(_in_registers, reduction.reducers)) else 0
    n = reduction.accumulators

    def item_of(item: Expr, carried: Sequence[SSAValue]) -> list[SSAValue]:
        rows = [e.simplify(delinearize(item * together + k, reduction.kept_sizes)) for k in range(together)]

        def element(kept: Index, variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            index = source_index(reduction, inner, variables)
            for d, part in zip(reduction.kept, kept, strict=True):
                index[d] = part
            return reduction.element(frame, e.simplify(tuple(index)), values)

        def elements(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            sums: list[SSAValue] = []
            others = values[together * n :]
            for k, kept in enumerate(rows):
                found = element(kept, variables, [*values[k * n : (k + 1) * n], *others])
                sums += found[:n]
                others = found[n:]
            return [*sums, *others]

        if lanes:
            results = _in_lanes(frame, reduction, lanes, lengths, carried[: len(side)], partial(element, rows[0]))
        else:
            inits = [v for _ in rows for v in reduction.start(frame)]
            inits += carried[: len(side)]
            results = reduced(e, reduction.reducers, lengths, inits, elements, together, loop, BLOCK)
        stored = carried[len(side) :]
        for k, kept in enumerate(rows):
            stored = reduction.epilogue(frame, kept, results[k * n : (k + 1) * n], stored)
        return [*results[together * n :], *stored]

    results = item_loop(frame, reduction.rows // together, first, total, [*side, *after], item_of)
    reduction.store(frame, reduction.side, results[: len(side)])
    reduction.store(frame, reduction.after, results[len(side) :])
    beside = f", {together} at a time" if together > 1 else ""
    return f"rows of {reduction.row}{beside}" + (f", {lanes} partial results" if lanes else "")


def _in_registers(r: Reducer) -> bool:
    """Whether LLVM makes vectors of partial results of a row by itself: not of complex numbers."""
    return bool(r.opcode) and not any(t.is_complex for t in r.types)


def _lanes(length: int) -> int:
    """The number of partial results of a row of `length`, a power of two; 0: one result at a time."""
    if length < FEWEST * ROUNDS:
        return 0
    return min(LANES, 1 << (length // ROUNDS).bit_length() - 1)


def _in_lanes(
    frame: Frame, reduction: ReductionCode, lanes: int, sizes: Sequence[int], side: Sequence[SSAValue], element
) -> list[SSAValue]:  # noqa: ANN001,E501
    """The results of a row (and `side` after it), combined in a tile of partial results."""
    e = frame.e
    *outer, length = sizes
    types = [t for r in reduction.reducers for t in r.packed_types]
    n = len(types)

    def clear(variables: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        return [frame.e.write(v, t, variables) for v, t in zip(reduction.start(frame), tensors, strict=True)]

    def at(variables: Index, lane: Expr, values: Sequence[SSAValue]) -> list[SSAValue]:
        read = [frame.e.read(t, (lane,)) for t in values[:n]]
        results = element(variables, [*read, *values[n:]])
        return [*(frame.e.write(v, t, (lane,)) for v, t in zip(results, values[:n], strict=False)), *results[n:]]

    def whole(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
        *before, round_, lane = variables
        return at((*before, round_ * lanes + lane), lane, values)

    def rest(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
        *before, lane = variables
        return at((*before, lane + length // lanes * lanes), lane, values)

    def start() -> list[SSAValue]:
        return e.loop([lanes], [e.b.op(tensor.EmptyOp, type=TensorType(t, [lanes])) for t in types], clear)

    def merge(a: Sequence[SSAValue], b: Sequence[SSAValue]) -> list[SSAValue]:
        return e.loop([lanes], a, lambda v, tensors: merged(v[0], tensors, b))

    def merged(lane: Expr, tensors: Sequence[SSAValue], others: Sequence[SSAValue]) -> list[SSAValue]:
        both = reduction.merge(frame, *([e.read(t, (lane,)) for t in some] for some in (tensors, others)))
        return [e.write(v, t, (lane,)) for v, t in zip(both, tensors, strict=True)]

    def rounds(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
        return e.loop([lanes], values, lambda lane, carried: whole((*variables, *lane), carried))

    values = [*start(), *side]
    if lose_digits(reduction.reducers):
        accumulators = Accumulators(n, start, merge)
        values = summed(e, [*outer, length // lanes], values, rounds, accumulators, COMPLEX_BLOCK)
    else:
        values = e.loop([*outer, length // lanes, lanes], values, whole)
    if length % lanes:
        values = e.loop([*outer, length % lanes], values, rest)
    half = lanes // 2
    while half:
        values = [*_merge_halves(frame, reduction, values[:n], half), *values[n:]]
        half //= 2
    return [*(frame.e.read(t, (Const(0),)) for t in values[:n]), *values[n:]]


def _merge_halves(frame: Frame, reduction: ReductionCode, tiles: Sequence[SSAValue], half: int) -> list[SSAValue]:
    """The tiles with their second `half` elements merged into the first."""

    def body(variables: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        (lane,) = variables
        first, second = ([frame.e.read(t, (place,)) for t in tensors] for place in (lane, lane + half))
        merged = reduction.merge(frame, first, second)
        return [frame.e.write(v, t, (lane,)) for v, t in zip(merged, tensors, strict=True)]

    return frame.e.loop([half], tiles, body)
