"""Reductions on the CPU: loops ordered so that the innermost one walks memory contiguously and vectorises.

Rows (the last dimension is reduced): a work item is one result; the sum runs in registers, and since it may be
reassociated LLVM keeps several vectors of partial sums. Columns (the last dimension stays): a work item is a tile of
neighbouring results; each source row is added to the tile, which lives on the stack or, when short, in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Region, SSAValue

from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.heroes.base import Entry
from heron.codegen.heroes.reduction_form import Axis, Reduction
from heron.codegen.kernel import Kernel, Launch
from heron.codegen.mlir_types import INDEX

#: results of a tile that LLVM keeps in registers, and of one that streams long source rows
REGISTER_TILE = 64
STREAM_TILE = 512
#: bytes of source above which reading long stretches of memory matters more than registers
STREAM_BYTES = 1 << 20
#: work items a large reduction should have at least
MIN_ITEMS = 16


def emit(frame: Entry, reduction: Reduction, axes: Sequence[Axis]) -> Kernel:
    """The kernel; `axes` are the loops over the source, outermost first."""
    if not axes or axes[-1].reduced:
        return _rows(frame, reduction, axes)
    return _columns(frame, reduction, axes)


def _source_index(reduction: Reduction, axes: Sequence[Axis], variables: Sequence[Expr]) -> list[Expr]:
    """The index into the source when each axis stands at its variable."""
    index: list[Expr] = [Const(0)] * len(reduction.sizes)
    for axis, variable in zip(axes, variables, strict=True):
        parts = delinearize(variable, [reduction.sizes[d] for d in axis.dims])
        for d, part in zip(axis.dims, parts, strict=True):
            index[d] = part
    return index


def _items(frame: Entry, count: int, body, inits: Sequence[SSAValue]) -> list[SSAValue]:  # noqa: ANN001
    """The loop over the kernel's work items; `body(item, carried) -> carried`."""
    e = frame.e
    assert frame.lo is not None and frame.hi is not None
    block = Block(arg_types=[INDEX, *(v.type for v in inits)])
    item = e.variable(block.args[0], 0, count - 1)
    with e.region(block):
        e.b.terminate(scf.YieldOp, body(item, block.args[1:]))
    op = scf.ForOp.create(
        operands=[frame.lo, frame.hi, e.b.integer(1), *inits],
        result_types=[v.type for v in inits],
        regions=[Region(block)],
    )
    return list(e.b.add(op).results)


def _rows(frame: Entry, reduction: Reduction, axes: Sequence[Axis]) -> Kernel:
    e = frame.e
    inner = [a for a in axes if a.reduced]
    side = [frame.outputs[n] for n in reduction.side]
    after = [frame.outputs[n] for n in reduction.after]

    def row(item: Expr, carried: Sequence[SSAValue]) -> list[SSAValue]:
        kept = e.simplify(delinearize(item, reduction.kept_sizes))
        fixed = dict(zip(reduction.kept, kept, strict=True))

        def element(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            index = _source_index(reduction, inner, variables)
            for d, part in fixed.items():
                index[d] = part
            return reduction.element(frame, e.simplify(tuple(index)), values)

        inits = [*reduction.start(frame), *carried[: len(side)]]
        results = e.loop([a.length for a in inner], inits, element)
        n = reduction.accumulators
        return [*results[n:], *reduction.epilogue(frame, kept, results[:n], carried[len(side) :])]

    results = _items(frame, reduction.rows, row, [*side, *after])
    reduction.store(frame, reduction.side, results[: len(side)])
    reduction.store(frame, reduction.after, results[len(side) :])
    return frame.finish(Launch(work_items=reduction.rows), "reduce", {"form": f"rows of {reduction.row}"})


def _columns(frame: Entry, reduction: Reduction, axes: Sequence[Axis]) -> Kernel:
    e = frame.e
    last, outer = axes[-1], [a for a in axes[:-1] if not a.reduced]
    inner = [a for a in axes if a.reduced]
    tile = _tile(reduction, last.length)
    tiles = -(-last.length // tile)
    items = tiles * prod(a.length for a in outer)
    side = [frame.outputs[n] for n in reduction.side]
    after = [frame.outputs[n] for n in reduction.after]
    types = [t for r in reduction.reducers for t in r.packed_types]

    def work(item: Expr, carried: Sequence[SSAValue]) -> list[SSAValue]:
        first = _first_column(frame, item, tile, tiles, last.length)
        place = e.simplify(delinearize(item // tiles, [a.length for a in outer])) if outer else ()
        sums = [e.b.op(tensor.EmptyOp, type=TensorType(t, [tile])) for t in types]

        def index_at(column: Expr, reduced: Sequence[Expr]) -> Index:
            index = _source_index(reduction, [*outer, last, *inner], [*place, first + column, *reduced])
            return e.simplify(tuple(index))

        def clear(variables: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return [put(frame, v, t, variables) for v, t in zip(reduction.start(frame), tensors, strict=True)]

        def element(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            tensors = values[: len(sums)]
            read = [get(frame, t, variables[-1:]) for t in tensors]
            index = index_at(variables[-1], variables[:-1])
            results = reduction.element(frame, index, [*read, *values[len(sums) :]])
            stored = [put(frame, v, t, variables[-1:]) for v, t in zip(results, tensors, strict=False)]
            return [*stored, *results[len(sums) :]]

        def finish(variables: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            read = [get(frame, t, variables) for t in sums]
            index = index_at(variables[0], [Const(0)] * len(inner))
            return reduction.epilogue(frame, tuple(index[d] for d in reduction.kept), read, tensors)

        sums = e.loop([tile], sums, clear)
        walked = e.loop([*(a.length for a in inner), tile], [*sums, *carried[: len(side)]], element)
        sums = walked[: len(sums)]
        return [*walked[len(sums) :], *e.loop([tile], carried[len(side) :], finish)]

    results = _items(frame, items, work, [*side, *after])
    reduction.store(frame, reduction.side, results[: len(side)])
    reduction.store(frame, reduction.after, results[len(side) :])
    form = f"columns of {reduction.row}, {tile} at a time"
    return frame.finish(Launch(work_items=items), "reduce", {"form": form})


def _tile(reduction: Reduction, columns: int) -> int:
    """Results of one work item: long stretches for large sources, as long as there are items for all threads."""
    bytes_ = prod(reduction.sizes) * reduction.reducers[0].types[0].byte_size
    tile = STREAM_TILE if bytes_ > STREAM_BYTES else REGISTER_TILE
    while tile > REGISTER_TILE and reduction.rows < tile * MIN_ITEMS:
        tile //= 2
    return min(columns, tile)


def _first_column(frame: Entry, item: Expr, tile: int, tiles: int, columns: int) -> Expr:
    """Where the item's tile starts. The last tile overlaps the one before, so that all have one constant length."""
    e = frame.e
    start = e.simplify((item % tiles * tile,))[0]
    if tiles * tile == columns:
        return start
    value = e.b.op(arith.MinSIOp, e.index_value(start), e.b.integer(columns - tile))
    return e.variable(value, 0, columns - tile)


def get(frame: Entry, source: SSAValue, index: Index) -> SSAValue:
    """An element of a tile, as it is stored."""
    e = frame.e
    element = source.type.element_type  # type: ignore[attr-defined]
    return e.b.op(tensor.ExtractOp, source, *e.index_values(index), type=element)


def put(frame: Entry, value: SSAValue, target: SSAValue, index: Index) -> SSAValue:
    """The tile with `value` at `index`."""
    e = frame.e
    return e.b.op(tensor.InsertOp, value, target, *e.index_values(index), type=target.type)
