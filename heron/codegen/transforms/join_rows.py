"""Short rows are joined to one loop over several of them, which vectors fill.

    scf.for %i = %lo to %hi { scf.for %j = 0 to 5 { %x = in[%i * 5 + %j]; %s = scale[%j]; out[%i * 5 + %j] = %x * %s } }
    ->
    scf.for %t = 0 to 160 { tile[%t] = scale[columns[%t]] }                             columns: 0 1 2 3 4 0 1 2 3 4 0 …
    scf.for %i = %lo to %hi step 32 {
      scf.for %t = 0 to min(32, %hi - %i) * 5 { %x = in[%i * 5 + %t]; %s = tile[%t]; out[%i * 5 + %t] = %x * %s }
    }

An index that grows by as much from row to row as along a row is the same in the joined loop. A tile holds the numbers
that depend on the column alone. Others take the row and the column from tables.

LLVM makes vectors along the inner loop, and does the steps that are left over one by one: half the time or more of a
row of 5 or 9 floats. Measurements that have a number for each of a few quantities are such rows.

CPU kernels only, on machines that have no instructions for a part of a vector (`TransformOptions.vector_bits`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import NamedTuple

from xdsl.dialects import arith, math, scf, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, Float64Type, IndexType, IntegerType, ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from heron.analysis.indexing import Dim
from heron.analysis.indexing.linear import linear_terms
from heron.analysis.indexing.map import Var
from heron.codegen.ir.builder import Builder, Constants, int_attr
from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp
from heron.codegen.ir.editing import (
    apply_indexing,
    constant_value,
    functions,
    ops_of,
    overwritten_inputs,
    replace,
    walk_blocks,
    yield_,
)
from heron.codegen.ir.types import INDEX
from heron.codegen.llvm.inline import has, lines_of
from heron.codegen.llvm.loop_hints import FEW_STEPS, MOST_WRITTEN_OUT
from heron.codegen.transforms.lib.buffers import byte_size
from heron.codegen.transforms.lib.math_names import FUNCTIONS
from heron.codegen.transforms.options import TransformOptions

#: vectors at a time; vectors of a row that is so long that what is left over is little of its time
AT_A_TIME, LONG = 2, 4
#: columns that LLVM shuffles in the loop over rows, without functions
PAIRS = 2
#: elements of joined rows that are enough, and the most; joined rows that are worth a tile
ENOUGH, MOST, FEWEST = 128, 1024, 4
#: bytes of all tiles, which stay in the nearest cache
TILES = 1 << 14
#: work in simple instructions: of a division or root, a look-up, and an access that is shuffled
SLOW, LOOK_UP, SHUFFLE = 8, 20, 3
#: the part of the work that is left where joining is worth its tables
WORTH = 0.95
_I32 = IntegerType(32)


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Joins the rows of every such loop of a CPU kernel."""
    if options.is_gpu or not options.vector_bits:
        return
    for function in functions(module):
        overwritten, constants = overwritten_inputs(function), Constants(function.body.block)
        for block in walk_blocks(function.body.block):
            for op in ops_of(block):
                nest = _nest(op) if type(op) is scf.ForOp else None
                rows = _rows(nest, overwritten, options.vector_bits // 8) if nest is not None else 0
                if nest is not None and rows:
                    _Joined(nest, rows, constants).build(block)


class _Nest(NamedTuple):
    """A loop over rows around one along a row of so many columns.

    ``ops``: those of a step, but the ends of loops. ``of_row``, ``of_column``: what is computed from a loop's variable.
    """

    outer: scf.ForOp
    inner: scf.ForOp
    columns: int
    ops: Sequence[Operation]
    of_row: set[SSAValue]
    of_column: set[SSAValue]

    @property
    def row(self) -> SSAValue:
        return self.outer.body.block.args[0]

    @property
    def column(self) -> SSAValue:
        return self.inner.body.block.args[0]

    @property
    def last(self) -> Operation:
        """The end of a step."""
        assert (op := self.inner.body.block.last_op) is not None
        return op

    @property
    def functions(self) -> int:
        return sum(type(op) in FUNCTIONS for op in self.ops)


def _nest(outer: scf.ForOp) -> _Nest | None:
    """The loop and the one that is all there is in it, but for what that needs."""
    if len(outside := ops_of(outer.body.block)) < 2 or constant_value(outer.step) != 1:
        return None
    *before, inner, last = outside
    if not isinstance(inner, scf.ForOp) or outer.attributes or inner.attributes.keys() - {"heron.short"}:
        return None
    columns = constant_value(inner.ub)
    if columns is None or constant_value(inner.lb) != 0 or constant_value(inner.step) != 1:
        return None
    ops = [*before, *ops_of(inner.body.block)[:-1]]
    is_chain = [*inner.iter_args] == [*outer.body.block.args[1:]] and [*last.operands] == [*inner.results]
    if not is_chain or not all(map(_is_simple, ops)):
        return None
    of_row, of_column = (_dependents(ops, loop.body.block.args[0]) for loop in (outer, inner))
    return _Nest(outer, inner, columns, ops, of_row, of_column)


def _rows(nest: _Nest, overwritten: set[SSAValue], vector_bytes: int) -> int:
    """The number of rows to join; 0 where that does not pay, or would change what is computed."""
    lanes = vector_bytes // max((_bytes(op) for op in nest.ops if _tensor(op) is not None), default=vector_bytes)
    if lanes < 2 or nest.columns < 2 or nest.columns % lanes == 0 or nest.columns >= LONG * lanes:
        return 0
    if not _pays(nest, lanes):
        return 0
    count = _count(nest, {*overwritten, *nest.inner.body.block.args[1:]})
    whole = AT_A_TIME * lanes
    rows = whole // gcd(nest.columns, whole)
    while rows * nest.columns < ENOUGH and 2 * rows * FEWEST <= count:
        rows *= 2
    size = rows * nest.columns
    if size > MOST or count < rows * (1 if nest.functions else FEWEST):
        return 0
    return rows if len([*_tiles(nest)]) * size * vector_bytes // lanes <= TILES else 0


def _count(nest: _Nest, written: set[SSAValue]) -> int:
    """The number of rows; 0 where an array that is written is read or written at another place than the step's own."""
    count = 0
    for op in nest.ops:
        target = _tensor(op)
        if isinstance(op, tensor.InsertOp) or target in written:
            found = _steps(op.operands[-1], nest)
            if found is None or found[0] != 1:
                return 0
            count = found[1]
    return count


def _pays(nest: _Nest, lanes: int) -> bool:
    """Whether a row is less work in the joined loop, which looks up what tiles do not hold."""
    if nest.columns <= PAIRS and not nest.functions:
        return False
    work = sum(map(_work, nest.ops))
    joined = nest.columns / lanes * (work + LOOK_UP * _look_ups(nest))
    return joined < WORTH * _apart(nest, work, lanes)


def _work(op: Operation) -> int:
    """The work of an op on a vector, or on a number, in simple instructions."""
    if type(op) in FUNCTIONS:
        name = f"heron.{FUNCTIONS[type(op)]}.{'f64' if isinstance(op.results[0].type, Float64Type) else 'f32'}"
        return lines_of(name) if has(name) else SLOW
    return SLOW if isinstance(op, arith.DivfOp | math.SqrtOp) else 0 if isinstance(op, ApplyIndexingOp) else 1


def _apart(nest: _Nest, work: int, lanes: int) -> float:
    """The work of a row that is not joined: written out in the loop over rows, in vectors that overlap, or in a vector
    for each power of two."""
    if nest.columns <= FEW_STEPS and nest.columns * work <= MOST_WRITTEN_OUT:
        accesses = sum(_tensor(op) is not None for op in nest.ops)
        return nest.columns / lanes * (work + SHUFFLE * accesses)
    return work * (-(-nest.columns // lanes) if nest.columns > lanes else nest.columns.bit_count())


def _look_ups(nest: _Nest) -> int:
    """The numbers that a step of the joined loop looks up: those of its row, or of another place."""
    read = {(op.tensor, op.operands[-1]) for op in nest.ops if isinstance(op, tensor.ExtractOp)}
    return sum(index in nest.of_row and _steps(index, nest) is None for _, index in read)


def _is_simple(op: Operation) -> bool:
    """Whether an op is an access, or computes without effects and loops."""
    accesses = tensor.ExtractOp | tensor.InsertOp | ApplyIndexingOp
    return isinstance(op, accesses) or not op.regions and op.name.startswith(("arith.", "math.", "complex."))


def _tensor(op: Operation) -> SSAValue | None:
    """The tensor that an access reads or writes."""
    return op.tensor if isinstance(op, tensor.ExtractOp) else op.dest if isinstance(op, tensor.InsertOp) else None


def _bytes(op: Operation) -> int:
    """The bytes of an element that an access reads or writes."""
    return byte_size(op.operands[0].type if isinstance(op, tensor.InsertOp) else op.results[0].type)


def _dependents(ops: Sequence[Operation], on: SSAValue) -> set[SSAValue]:
    """A loop's variable, and the values of the loop that are computed with it. Tensors are none of these."""
    found = {on}
    for op in ops:
        if not isinstance(op, tensor.InsertOp) and any(v in found for v in op.operands):
            found.update(op.results)
    return found


def _steps(index: SSAValue, nest: _Nest) -> tuple[int, int] | None:
    """The step along a row of an index that is the same in the joined loop, and the number of rows; None of others."""
    made = index.owner
    if not isinstance(made, ApplyIndexingOp) or len(made.results) != 1 or made.map.constraints or made.map.syms:
        return None
    operands = list(made.operands)
    moving = [v for v in operands if v in nest.of_row or v in nest.of_column]
    if len(moving) != 2 or nest.row not in moving or nest.column not in moving:
        return None
    row, column = Dim(operands.index(nest.row)), Dim(operands.index(nest.column))
    terms, _ = linear_terms(made.map.results[0])
    if any(not isinstance(atom, Dim) and atom.variables() & {row, column} for atom in terms):
        return None
    step = terms.get(column, 0)
    is_same = step and terms.get(row, 0) == step * nest.columns
    return (step, made.map.dims[row.index].hi + 1) if is_same else None


def _tiles(nest: _Nest) -> Iterator[SSAValue]:
    """Numbers that depend on the column alone, and that something else than their like needs."""
    of_column = nest.of_column - nest.of_row
    for op in nest.ops:
        for value in op.results:
            if value in of_column and _is_number(value):
                users = [use.operation for use in value.uses]
                if any(not user.results or user.results[0] not in of_column for user in users):
                    yield value


def _is_number(value: SSAValue) -> bool:
    """Whether a value can be kept in an array as it is."""
    type_ = value.type
    return not isinstance(type_, IndexType) and not (isinstance(type_, IntegerType) and type_.width.data < 8)


class _Joined:
    """Builds the joined loops of a nest in its place."""

    def __init__(self, nest: _Nest, rows: int, constants: Constants) -> None:
        self.nest, self.rows, self.constants = nest, rows, constants
        self.size = rows * nest.columns
        self.tiled = [*_tiles(nest)]
        #: the tile of each of these, once they are filled
        self.tiles: dict[SSAValue, SSAValue] = {}

    def build(self, block: Block) -> None:
        nest = self.nest
        builder = Builder(block, self.constants, before=nest.outer)
        self._fill(builder)
        outer = Block(arg_types=[a.type for a in nest.outer.body.block.args])
        inner = Block(arg_types=[a.type for a in nest.inner.body.block.args])
        copies: dict[SSAValue, SSAValue] = {}
        copies.update(zip(nest.inner.body.block.args[1:], inner.args[1:], strict=True))
        self._copy(nest.ops, inner, copies, outer.args[0])
        inner.add_op(yield_([copies.get(v, v) for v in nest.last.operands]))
        b = Builder(outer, self.constants)
        left = b.op(arith.SubiOp, nest.outer.ub, outer.args[0])
        rows = b.op(arith.MinSIOp, left, b.integer(self.rows))
        loop = self._for(b, b.op(arith.MuliOp, rows, b.integer(nest.columns)), 1, outer.args[1:], inner)
        loop.attributes["heron.interleave"] = int_attr(AT_A_TIME)
        outer.add_op(yield_(loop.results))
        done = self._for(builder, nest.outer.ub, self.rows, nest.outer.iter_args, outer, nest.outer.lb)
        replace(nest.outer, list(done.results))

    def _for(
        self,
        b: Builder,
        end: SSAValue,
        step: int,
        carried: Sequence[SSAValue],
        body: Block,
        start: SSAValue | None = None,
    ) -> Operation:
        bounds = [b.integer(0) if start is None else start, end, b.integer(step)]
        types = [v.type for v in carried]
        return b.add(scf.ForOp.create(operands=[*bounds, *carried], result_types=types, regions=[Region(body)]))

    def _fill(self, builder: Builder) -> None:
        """The tiles, each filled by the one loop in front of the rows."""
        values = self.tiled
        if not values:
            return
        empty = [builder.op(tensor.EmptyOp, type=TensorType(v.type, [self.size])) for v in values]
        body, copies = Block(arg_types=[INDEX, *(e.type for e in empty)]), dict[SSAValue, SSAValue]()
        self._copy(self.nest.ops, body, copies, None)
        filled = [
            tensor.InsertOp.create(operands=[copies[v], into, body.args[0]], result_types=[into.type])
            for v, into in zip(values, body.args[1:], strict=True)
        ]
        body.add_ops([*filled, yield_([op.results[0] for op in filled])])
        loop = self._for(builder, builder.integer(self.size), 1, empty, body)
        self.tiles = dict(zip(values, loop.results, strict=True))

    def _copy(
        self, ops: Sequence[Operation], body: Block, copies: dict[SSAValue, SSAValue], first: SSAValue | None
    ) -> None:
        """Copies to a joined loop the ops it needs; ``first``: the first row, None for the tiles."""
        nest, b, t = self.nest, Builder(body, self.constants), body.args[0]
        needed = self._needed(first is None)
        for value, tile in self.tiles.items():
            copies[value] = b.add(tensor.ExtractOp.create(operands=[tile, t], result_types=[value.type])).results[0]
        for op in ops:
            if op not in needed:
                continue
            if isinstance(op, ApplyIndexingOp) and first is not None and _steps(op.results[0], nest):
                copies[op.results[0]] = b.add(self._joint(op, first, t, copies)).results[0]
                continue
            if nest.column in op.operands and nest.column not in copies:
                copies[nest.column] = self._look_up(b, [c for _ in range(self.rows) for c in range(nest.columns)], t)
            if nest.row in op.operands and nest.row not in copies and first is not None:
                row = self._look_up(b, [r for r in range(self.rows) for _ in range(nest.columns)], t)
                copies[nest.row] = b.op(arith.AddiOp, first, row)
            b.add(op.clone(copies))

    def _needed(self, of_tiles: bool) -> set[Operation]:
        """The ops that compute what tiles hold, or, but for these, what is written."""
        nest, found = self.nest, set[Operation]()
        inside = set(nest.ops)
        left = list(self.tiled if of_tiles else nest.last.operands)
        while left:
            value = left.pop()
            made = value.owner
            if not isinstance(made, Operation) or made not in inside or made in found:
                continue
            if of_tiles or value not in self.tiles:
                found.add(made)
                left += made.operands
        return found

    def _joint(
        self, op: ApplyIndexingOp, first: SSAValue, t: SSAValue, copies: dict[SSAValue, SSAValue]
    ) -> ApplyIndexingOp:
        """The same index with the first row and the joined loop's variable."""
        nest, m = self.nest, op.map
        at = list(op.operands).index(nest.column)
        dims = [Var(0, self.size - 1, v.name) if n == at else v for n, v in enumerate(m.dims)]
        places = {nest.row: first, nest.column: t}
        return apply_indexing(m.replace(dims=dims), [places.get(v, copies.get(v, v)) for v in op.operands])

    def _look_up(self, b: Builder, table: list[int], t: SSAValue) -> SSAValue:
        """The row or the column of an element of the joined loop."""
        type_ = TensorType(_I32, [self.size])
        values = self.constants.dense(DenseIntOrFPElementsAttr.from_list(type_, table), type_)
        found = b.add(tensor.ExtractOp.create(operands=[values, t], result_types=[_I32])).results[0]
        return b.op(arith.IndexCastOp, found, type=INDEX)
