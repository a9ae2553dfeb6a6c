"""Reductions on the CPU whose last dimension stays: results lie beside each other, as source elements do.

Columns: a work item is 64 neighbouring results, or a page's worth where the source is large. Neighbouring items that
one thread does are done together: each source row is added to a tile of partial results of up to 16 KB, so that memory
is read in long stretches while the tile stays in the first-level cache. (4096 x 4096 f32 takes 20 ms in stretches of
1 KB, 12 in 2 KB, 9 in 4 KB and 6.5, what reading it takes at all, in 16 KB.)

Short rows of neighbouring results (a sum over the first and last of three dimensions) are columns, too. Each element of
a row has a partial result, and those of a row are combined at the end.

A few columns (vectors of 3): all results of a row are kept in registers while the loop over the reduced elements runs
innermost, and what the columns share is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType, UnitAttr
from xdsl.ir import SSAValue

from heron.analysis.fusion.reduction import Axis
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import for_, item_loop, item_range
from heron.codegen.emitters.partial_sums import Accumulators, reduced, summed
from heron.codegen.emitters.reducers import lose_digits
from heron.codegen.emitters.reduction.code import SMALL, ReductionCode, Walk, is_large, is_small, source_index
from heron.codegen.ir.dialects.xla_gpu import LoopOp
from heron.hlo.facts import calls_function
from heron.records import dataclass

#: results of a work item; of large sources, the bytes of a source row it takes
ITEM = 64
ITEM_BYTES = 4096
#: work items that a few threads can share out evenly
FEWEST_ITEMS = 8
#: bytes of the partial results that are kept at once
TILE_BYTES = 16 << 10
#: columns of a tile whose loop has no rests
MOST_IN_PIECES = 128
#: rows that are added to a partial result one after the other
BLOCK_ROWS = 64


@dataclass(frozen=True, slots=True)
class _Shape:
    """The loops: ``outer`` kept axes, the ``inner`` reduced ones, and the ``last`` one, with ``lanes`` elements of each
    result."""

    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    last: Axis
    lanes: int

    @staticmethod
    def of(walk: Walk) -> _Shape:
        axes = walk.axes
        outer, inner = (tuple(a for a in axes[:-1] if a.reduced == reduced) for reduced in (False, True))
        return _Shape(outer, inner, axes[-1], walk.lanes)

    @property
    def outer_items(self) -> int:
        return prod(a.length for a in self.outer)


def column_items(walk: Walk) -> int:
    """Work items of `columns`."""
    shape = _Shape.of(walk)
    width, _ = _widths(walk.reduction, shape)
    return -(-shape.last.length // width) * shape.outer_items


def columns(frame: Frame, walk: Walk, first: int, total: int) -> str:
    """Emits a reduction along columns, whose work items begin at `first` of `total`; tells its form."""
    reduction, e, shape = walk.reduction, frame.e, _Shape.of(walk)
    length = shape.last.length
    width, tile = _widths(reduction, shape)
    tiles = -(-length // width)
    items = tiles * shape.outer_items
    # whole items are loops of known length, without rests: shorter code than a loop up to a bound. LLVM makes no
    # vectors of such a loop if it reads memory at steps of 5 or 7
    unit = 1 if length % width or walk.across else width
    work = _Columns(frame, walk, shape, min(length, tile), unit)
    inits = [frame.outputs[n] for n in (*reduction.side, *reduction.after)]
    if tiles == 1:

        def whole(item: Expr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return work.emit(work.place(item), Const(0), None, carried)

        results = item_loop(frame, items, first, total, inits, whole)
    else:
        # the items of one outer position at a time; of those, as many as a tile of partial results holds
        from_item, to_item = item_range(frame, items, first, total)

        def position(place: Index, lo: SSAValue, hi: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            ends = e.b.op(arith.MinSIOp, e.b.op(arith.MuliOp, hi, e.b.integer(width)), e.b.integer(length))

            def columns_of(item: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                column = e.b.op(arith.MuliOp, item, e.b.integer(width))
                left = e.b.op(arith.SubiOp, hi, item) if unit > 1 else e.b.op(arith.SubiOp, ends, column)
                count = e.b.op(arith.MinSIOp, left, e.b.integer(work.tile // unit))
                first = e.variable(column, 0, length - 1)
                if shape.lanes > 1:  # told as a multiple: the column of a result is one of its lanes
                    first = e.variable(item, 0, tiles - 1) * width
                return work.emit(place, first, count, carried)

            return for_(frame, lo, hi, carried, columns_of, e.b.integer(tile // width))

        def part_of(outer: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            start = e.b.op(arith.MuliOp, outer, e.b.integer(tiles))
            lo = e.b.op(arith.MaxSIOp, e.b.op(arith.SubiOp, from_item, start), e.b.integer(0))
            hi = e.b.op(arith.MinSIOp, e.b.op(arith.SubiOp, to_item, start), e.b.integer(tiles))
            return position(work.place(e.variable(outer, 0, shape.outer_items - 1)), lo, hi, carried)

        if shape.outer_items == 1:
            results = position(work.place(Const(0)), from_item, to_item, inits)
        else:
            begin, end = _bounds(frame, from_item, to_item, tiles)
            results = for_(frame, begin, end, inits, part_of)
    _store(frame, reduction, results)
    return f"{'rows' if walk.across else 'columns'} of {reduction.row}, up to {work.tile} at a time"


def _widths(reduction: ReductionCode, shape: _Shape) -> tuple[int, int]:
    """Results of a work item, and most that are kept at once: a multiple of it.

    A large source takes long stretches of memory, but each thread of a few should have as many columns as another one.
    """
    kept = sum(t.byte_size for r in reduction.reducers for t in r.types)
    read = max(a.shape.element_type.byte_size or 1 for r in reduction.reducers for a in r.arrays)
    item = -(-ITEM // shape.lanes) * shape.lanes
    width = item
    if is_large(reduction):
        share = -(-shape.last.length * shape.outer_items // (FEWEST_ITEMS * item)) * item
        width = max(item, min(ITEM_BYTES // read // shape.lanes * shape.lanes, share))
    most = TILE_BYTES // max(1, kept)
    if shape.lanes > 1:
        whole = shape.outer_items >= FEWEST_ITEMS and shape.last.length <= most
        width = shape.last.length if whole else _even(shape.last.length, width, shape.lanes)
    return width, max(1, most // width) * width


def _even(length: int, width: int, lanes: int) -> int:
    """Columns of a work item: `width`, or as many down to half of it that leave no rest, if there are such."""
    return next((k for k in range(width, width // 2, -lanes) if length % k == 0), width)


def narrow_items(walk: Walk) -> int:
    """Work items of `narrow_columns`."""
    return _Shape.of(walk).outer_items


def narrow_columns(frame: Frame, walk: Walk, first: int, total: int) -> str:
    """Emits a reduction with a few columns, whose work items begin at `first` of `total`; tells its form."""
    reduction, e, shape = walk.reduction, frame.e, _Shape.of(walk)
    count, n = shape.last.length, reduction.accumulators
    loop = e.loop if walk.cut is None else partial(walk.cut.loop, e)
    sides = len(reduction.side)

    def row(item: Expr, carried: Sequence[SSAValue]) -> list[SSAValue]:
        place = e.simplify(delinearize(item, [a.length for a in shape.outer]))

        def index_at(column: int, reduced: Sequence[Expr]) -> Index:
            axes = [*shape.outer, shape.last, *shape.inner]
            return e.simplify(tuple(source_index(reduction, axes, [*place, Const(column), *reduced])))

        def element(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            sums: list[SSAValue] = []
            side = values[count * n :]
            for column in range(count):
                before = values[column * n : (column + 1) * n]
                results = reduction.element(frame, index_at(column, variables), [*before, *side])
                sums += results[:n]
                side = results[n:]
            return [*sums, *side]

        starts = [v for _ in range(count) for v in reduction.start(frame)]
        lengths = [a.length for a in shape.inner]
        results = reduced(e, reduction.reducers, lengths, [*starts, *carried[:sides]], element, count, loop)
        after = carried[sides:]
        for column in range(count):
            index = index_at(column, [Const(0)] * len(shape.inner))
            kept = tuple(index[d] for d in reduction.kept)
            after = reduction.epilogue(frame, kept, results[column * n : (column + 1) * n], after)
        return [*results[count * n :], *after]

    items = shape.outer_items
    inits = [frame.outputs[k] for k in (*reduction.side, *reduction.after)]
    results = item_loop(frame, items, first, total, inits, row)
    _store(frame, reduction, results)
    return f"{count} columns of {reduction.row} in registers"


class _Columns:
    """Emits the sums of neighbouring columns; ``tile``: most that are kept at once. They come in `unit`s."""

    def __init__(self, frame: Frame, walk: Walk, shape: _Shape, tile: int, unit: int) -> None:
        self.frame, self.reduction, self.cut, self.shape = frame, walk.reduction, walk.cut, shape
        self.tile, self.unit = tile, unit

    def place(self, item: Expr) -> Index:
        """The position along the outer axes."""
        return self.frame.e.simplify(delinearize(item, [a.length for a in self.shape.outer]))

    @property
    def rows_together(self) -> int:
        """Rows added to a partial result at a time, in their order: it is read and written once for all of them."""
        if self.cut is not None or not is_small(self.frame.fusion):
            return 1
        most = (8, 4, 2, 1) if is_large(self.reduction) else (4, 2, 1)
        return next(k for k in most if self.shape.inner[-1].length % k == 0)

    def emit(
        self, place: Index, first: Expr, width: SSAValue | None, carried: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """The columns from `first` on: `width` units, or a whole tile. Carries side outputs, then the others."""
        e, frame, reduction = self.frame.e, self.frame, self.reduction
        types = [t for r in reduction.reducers for t in r.packed_types]
        n, sides = len(types), len(reduction.side)
        axes = [*self.shape.outer, self.shape.last, *self.shape.inner]
        together = self.rows_together

        def index_at(column: Expr, reduced: Sequence[Expr]) -> Index:
            return e.simplify(tuple(source_index(reduction, axes, [*place, first + column, *reduced])))

        along = partial(self._along, width)

        def clear(column: Expr, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return [frame.e.write(v, t, (column,)) for v, t in zip(reduction.start(frame), tensors, strict=True)]

        def start() -> list[SSAValue]:
            return along([e.b.op(tensor.EmptyOp, type=TensorType(t, [self.tile])) for t in types], clear)

        def merge(a: Sequence[SSAValue], b: Sequence[SSAValue]) -> list[SSAValue]:
            def merged(column: Expr, tensors: Sequence[SSAValue]) -> list[SSAValue]:
                both = reduction.merge(frame, *([e.read(t, (column,)) for t in some] for some in (tensors, b)))
                return [e.write(v, t, (column,)) for v, t in zip(both, tensors, strict=True)]

            return along(a, merged)

        def row(reduced: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            return along(values, partial(element, reduced))

        def element(reduced: Index, column: Expr, values: Sequence[SSAValue]) -> list[SSAValue]:
            results = [*(frame.e.read(t, (column,)) for t in values[:n]), *values[n:]]
            for k in range(together):
                at = (*reduced[:-1], reduced[-1] * together + k)
                results = reduction.element(frame, index_at(column, at), results)
            stored = [frame.e.write(v, t, (column,)) for v, t in zip(results, values[:n], strict=False)]
            return [*stored, *results[n:]]

        def finish(column: Expr, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            result = self._result(column, sums)
            index = index_at(column, [Const(0)] * len(self.shape.inner))
            return reduction.epilogue(frame, tuple(index[d] for d in reduction.kept), result, tensors)

        lengths = [a.length for a in self.shape.inner]
        lengths[-1] //= together
        loop = e.loop if self.cut is None else partial(self.cut.loop, e)
        inits = [*start(), *carried[:sides]]
        if lose_digits(reduction.reducers):
            walked = summed(e, lengths, inits, row, Accumulators(n, start, merge), BLOCK_ROWS // together, loop)
        else:
            walked = loop(lengths, inits, row)
        sums = walked[:n]
        return [*walked[n:], *self._along_results(width, carried[sides:], finish)]

    def _result(self, column: Expr, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """The accumulators of the result whose lanes begin at a column."""
        e = self.frame.e

        def joined(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            at = (column + variables[0] + 1,)
            return self.reduction.merge(self.frame, values, [e.read(t, at) for t in sums])

        first = [e.read(t, (column,)) for t in sums]
        return first if self.shape.lanes == 1 else e.loop([self.shape.lanes - 1], first, joined)

    @property
    def pieces(self) -> list[int]:
        """Columns of a tile in loops of 1, 2, 4 and so on: whole vectors, and parts of one, without rests.

        LLVM masks a short loop to its end, and a load cannot have what a masked store before it has just put there:
        each row would wait for the partial results of the one before. Where elements take a function, a mask is less
        time than the function for each part of a vector.
        """
        inside = self.frame.fusion.computation.instructions
        masked = self.cut is not None or len(inside) > SMALL or any(map(calls_function, inside))
        if self.tile > MOST_IN_PIECES or masked:
            return [self.tile]
        return [1 << bit for bit in reversed(range(self.tile.bit_length())) if self.tile >> bit & 1]

    def _piece(
        self,
        first: int,
        length: int,
        inits: Sequence[SSAValue],
        body: Callable[[Expr, Sequence[SSAValue]], list[SSAValue]],
    ) -> list[SSAValue]:
        """A loop over columns from the first on. However short it is, vectors go along it."""

        def at(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            return body(variables[0] + first, values)

        results = self.frame.e.loop([length], inits, at)
        loop = results[0].owner
        if 1 < length < self.tile and isinstance(loop, LoopOp):
            loop.attributes["heron.part"] = UnitAttr()
        return results

    def _along(
        self,
        width: SSAValue | None,
        inits: Sequence[SSAValue],
        body: Callable[[Expr, Sequence[SSAValue]], list[SSAValue]],
    ) -> list[SSAValue]:
        """A loop over the columns. `width` is its bound, no test in each step: LLVM would make masks of that."""
        e = self.frame.e
        if width is None:
            values, done = list(inits), 0
            for length in self.pieces:
                values, done = self._piece(done, length, values, body), done + length
            return values
        most, unit = self.tile // self.unit, self.unit

        def at(n: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            start = e.variable(n, 0, most - 1)
            if unit == 1:
                return body(start, values)
            return e.loop([unit], values, lambda variables, values: body(start * unit + variables[0], values))

        return for_(self.frame, e.b.integer(0), width, inits, at)

    def _along_results(
        self,
        width: SSAValue | None,
        inits: Sequence[SSAValue],
        body: Callable[[Expr, Sequence[SSAValue]], list[SSAValue]],
    ) -> list[SSAValue]:
        """A loop over the first columns of results."""
        lanes, e = self.shape.lanes, self.frame.e
        if lanes == 1:
            return self._along(width, inits, body)

        def of_tile(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            return body(variables[0] * lanes, values)

        if width is None:
            return e.loop([self.tile // lanes], inits, of_tile)
        unit = max(self.unit // lanes, 1)

        def at(n: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            start = e.variable(n, 0, self.tile // lanes // unit - 1)
            return e.loop([unit], values, lambda v, values: body((start * unit + v[0]) * lanes, values))

        count = e.b.op(arith.DivUIOp, width, e.b.integer(lanes)) if self.unit == 1 else width
        return list(for_(self.frame, e.b.integer(0), count, inits, at))


def _bounds(frame: Frame, lo: SSAValue, hi: SSAValue, tiles: int) -> tuple[SSAValue, SSAValue]:
    """The outer positions that the work items `lo` to `hi` touch."""
    b = frame.e.b
    count = b.integer(tiles)
    last = b.op(arith.AddiOp, hi, b.integer(tiles - 1))
    return b.op(arith.DivUIOp, lo, count), b.op(arith.DivUIOp, last, count)


def _store(frame: Frame, reduction: ReductionCode, results: Sequence[SSAValue]) -> None:
    n = len(reduction.side)
    reduction.store(frame, reduction.side, results[:n])
    reduction.store(frame, reduction.after, results[n:])
