"""Transposes on the CPU: square blocks are turned in vector registers, tiles of them stay in the first-level cache.

A work item is a tile. Each staged parameter is read in blocks of n x n elements, rows of one cache line, and written
turned to a tile on the stack; the loop body then runs along the tile's columns, which LLVM vectorises like any loop. A
lone transpose has its blocks written straight to the output. A loop that walks along what lies across memory has its
values in tiles, too, which are turned on their way to the outputs. The last tile of a row or column starts early enough
to be whole; the loop body skips the elements it shares with the tile before.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from heron.analysis.fusion.fusion import Output
from heron.analysis.fusion.loop_space import Space, output_space
from heron.analysis.fusion.transpose import Staged, Tiling, TransposeForm, is_turn, turned_types
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, to_memory
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental.values import Value
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.cpu_plan import CpuPlan, plan_space
from heron.codegen.emitters.loops import cpu_loops, item_loop
from heron.codegen.emitters.output_boxes import elements, store
from heron.codegen.ir.dialects.xla_gpu import TransposeBlockOp
from heron.codegen.ir.types import scalar_type
from heron.codegen.kernel import Kernel, Launch
from heron.hlo.ir.types import ElementType

#: bytes of a tile's row and column: a few cache lines, while all tiles stay in the first-level cache
TILE_BYTES = 128


def emit(frame: Frame, form: TransposeForm) -> Kernel:
    """The kernel: loops with tiles, and others."""
    plans: list[_Tiles | tuple[Space, CpuPlan]] = []
    for shape, members in form.groups.items():
        outputs = [frame.fusion.outputs[n] for n in members]
        if shape in form.tilings:
            plans.append(_Tiles(frame, form.tilings[shape], outputs))
        else:
            space = output_space(outputs, shape, form.partition)
            plans.append((space, plan_space(space)))
    tiled = [plan for plan in plans if isinstance(plan, _Tiles)]
    total = sum(plan.items if isinstance(plan, _Tiles) else plan[1].items for plan in plans)
    first = 0
    for plan, members in zip(plans, form.groups.values(), strict=True):
        inits = [frame.outputs[n] for n in members]
        if isinstance(plan, _Tiles):
            store(frame, members, item_loop(frame, plan.items, first, total, inits, plan.work))
            first += plan.items
        else:
            space, loops = plan
            store(frame, members, cpu_loops(frame, loops, first, total, inits, elements(frame, members, space.at)))
            first += loops.items
    notes = {"tile": " + ".join(str(plan) for plan in tiled)}
    return frame.finish(Launch(work_items=total), "transpose", notes)


class _Tiles:
    """The tiles of one loop.

    ``block``: side of the blocks turned in registers; ``rows``/``columns`` of a tile.
    """

    def __init__(self, frame: Frame, tiling: Tiling, outputs: Sequence[Output]) -> None:
        self.frame, self.tiling, self.outputs = frame, tiling, outputs
        widest = max(map(_bytes, turned_types(tiling, outputs)))
        self.block = min(16, 64 // widest)
        self.direct = is_turn(outputs, tiling)
        side = max(self.block, TILE_BYTES // widest)
        self.rows, self.columns = (_side(n, side, self.block) for n in (tiling.rows, tiling.columns))
        self.counts = tiling.tiles(self.rows, self.columns)
        self.items = self.counts[0] * self.counts[1] * self.counts[2]

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns} in {self.block}x{self.block} blocks"

    def work(self, item: Expr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """One tile."""
        e, tiling = self.frame.e, self.tiling
        _, row_tiles, column_tiles = self.counts
        outer, row_tile, column_tile = e.simplify(
            (item // (row_tiles * column_tiles), item // column_tiles % row_tiles, item % column_tiles)
        )
        row, skipped_rows = self._start(row_tile, self.rows, tiling.rows)
        column, skipped_columns = self._start(column_tile, self.columns, tiling.columns)
        if self.direct:
            return self._turn(tiling.staged[0], outer, row, column, carried[0])
        tiles = [self._stage(s, outer, row, column) for s in tiling.staged]

        def at(variables: Index) -> tuple[Index, Index]:
            """The place in the tile, and in the space."""
            r, c = e.simplify((variables[0] + skipped_rows, variables[1] + skipped_columns))
            return (r, c), self._fresh(tiling.place(outer, row + r, column + c))

        def element(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            inside, place = at(variables)
            for staged, tile in zip(tiling.staged, tiles, strict=True):
                e.provide(staged.instruction, self._at(staged, place), e.extract(tile, inside))
            index = e.simplify(tiling.space.at(place))
            computed = [o.of(e.value(o.instruction, index)) for o in self.outputs]
            if tiling.is_turned:
                return [e.insert(v, t, inside) for v, t in zip(computed, values, strict=True)]
            return put(computed, values, index)

        def put(computed: Sequence[Value], values: Sequence[SSAValue], index: Index) -> list[SSAValue]:
            stores = zip(computed, values, self.outputs, strict=True)
            return [e.insert(v, t, to_memory(o.shape, index)) for v, t, o in stores]

        def whole(variables: Index) -> list[Constraint]:
            ends = ((skipped_rows, self.rows), (skipped_columns, self.columns))
            return [
                (v + skipped, 0, n - 1)
                for v, (skipped, n) in zip(variables, ends, strict=True)
                if not isinstance(skipped, Const)
            ]

        if not tiling.is_turned:
            return e.loop([self.rows, self.columns], carried, element, whole)
        types = [scalar_type(o.shape.element_type) for o in self.outputs]
        room = [self._tile(t, self.rows, self.columns) for t in types]
        straight = e.loop([self.rows, self.columns], room, element, whole)
        made = [self._turned(tile, t, self.columns, self.rows) for tile, t in zip(straight, types, strict=True)]

        def copied(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            (r, c), place = at(variables[::-1])
            computed = [e.extract(tile, (c, r)) for tile in made]
            return put(computed, values, e.simplify(tiling.space.at(place)))

        return e.loop([self.columns, self.rows], carried, copied, lambda variables: whole(variables[::-1]))

    def _start(self, tile: Expr, side: int, length: int) -> tuple[Expr, Expr]:
        """The start of the tile such that it is whole, and the number of its elements that the tile before has done."""
        e = self.frame.e
        start = e.simplify((tile * side,))[0]
        if length % side == 0:
            return start, Const(0)
        wanted = e.index_value(start)
        value = e.b.op(arith.MinSIOp, wanted, e.b.integer(length - side))
        skipped = e.b.op(arith.SubiOp, wanted, value)
        return e.variable(value, 0, length - side), e.variable(skipped, 0, side - 1)

    def _fresh(self, place: Index) -> Index:
        """The place as variables of their own, so that an index made of them looks as it did in the analysis."""
        e = self.frame.e
        values = e.index_values(e.simplify(place))
        return tuple(e.variable(v, 0, n - 1) for v, n in zip(values, self.tiling.space.sizes, strict=True))

    def _at(self, staged: Staged, place: Index) -> Index:
        """The staged instruction's index at a point of the space."""
        return self.frame.e.simplify(tuple(x.substitute(place) for x in staged.index))

    def _stage(self, staged: Staged, outer: Expr, row: Expr, column: Expr) -> SSAValue:
        """The tile of a staged value, turned."""
        e = self.frame.e
        element = scalar_type(staged.instruction.shape.element_type)
        if staged.instruction.opcode == "parameter":
            return self._turn(staged, outer, row, column, self._tile(element, self.rows, self.columns))[0]
        straight = self._tile(element, self.columns, self.rows)

        def compute(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            place = self._fresh(self.tiling.place(outer, row + variables[1], column + variables[0]))
            return [e.insert(e.value(staged.instruction, self._at(staged, place)), values[0], variables)]

        return self._turned(e.loop([self.columns, self.rows], [straight], compute)[0], element, self.rows, self.columns)

    def _tile(self, element: Attribute, rows: int, columns: int) -> SSAValue:
        """Room for a tile on the stack."""
        return self.frame.e.b.op(tensor.EmptyOp, type=TensorType(element, [rows, columns]))

    def _turned(self, straight: SSAValue, element: Attribute, rows: int, columns: int) -> SSAValue:
        """A tile of so many rows and columns from one with as many columns and rows."""

        def turn(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            r, c = (v * self.block for v in variables)
            return [self._block(straight, (c, r), values[0], (r, c), rows, columns)]

        counts = [rows // self.block, columns // self.block]
        return self.frame.e.loop(counts, [self._tile(element, rows, columns)], turn)[0]

    def _turn(self, staged: Staged, outer: Expr, row: Expr, column: Expr, target: SSAValue) -> list[SSAValue]:
        """The tile of a staged parameter written turned: to a tile, or to the output itself."""
        e, tiling = self.frame.e, self.tiling
        source, output = staged.instruction, self.outputs[0]

        def block(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            r, c = e.simplify(tuple(v * self.block for v in variables))
            place = e.simplify(tiling.place(outer, row + r, column + c))
            start = to_memory(source.shape, self._at(staged, place))
            where, step = (r, c), self.columns
            if self.direct:
                where = e.simplify(to_memory(output.shape, tiling.space.at(place)))
                step = tiling.row_step(output)
            return [self._block(e.tensors[source], start, values[0], where, staged.column_step, step)]

        return e.loop([self.rows // self.block, self.columns // self.block], [target], block)

    def _block(
        self, source: SSAValue, start: Index, target: SSAValue, where: Index, source_step: int, target_step: int
    ) -> SSAValue:
        e = self.frame.e
        at, to = e.index_values(e.simplify(start)), e.index_values(e.simplify(where))
        op = TransposeBlockOp(source, at, target, to, self.block, source_step, target_step)
        return e.b.add(op).results[0]


def _bytes(t: ElementType) -> int:
    return max(1, t.byte_size)


def _side(length: int, wanted: int, block: int) -> int:
    """The side of a tile: whole blocks, no more than there are elements, an even share of them if that fits."""
    side = min(wanted, length // block * block)
    for candidate in range(side, block - 1, -block):
        if length % candidate == 0:
            return candidate if candidate * 2 >= side else side
    return side
