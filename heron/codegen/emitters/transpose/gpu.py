"""Transposes on the GPU: tiles are read along their rows into shared memory and used along their columns.

A block of 32 x 8 threads takes a tile of 32 x 32 elements, or of 64 x 64 and 128 x 128 where elements of two bytes or
one let a thread move two or four at once. The tile's rows in shared memory are one word longer than the tile, and every
32nd row starts one word later still: a warp then finds the elements of a column in different banks. The staged value is
the one that the transpose sees, its prologue computed while the tile is read; outputs of the same shape as a staged
value are stored on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.fusion.fusion import Output
from heron.analysis.fusion.output_boxes import piece_of
from heron.analysis.fusion.transpose import SharedTiles, Staged, TransposeForm
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index, to_memory
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental import Value
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import Part, gpu_parts
from heron.codegen.emitters.output_boxes import gpu_piece, store
from heron.codegen.ir.dialects.xla_gpu import AllocateSharedOp, SyncThreadsOp
from heron.codegen.ir.types import scalar_type
from heron.codegen.kernel import Kernel, Launch
from heron.targets import WARP

WARPS = 8


def emit(frame: Frame, form: TransposeForm) -> Kernel:
    """The kernel. Outputs that need no tiles have separate blocks."""
    plans = form.plans
    parts = [Part(plan.grid, plan.outputs, partial(_part, frame, plan)) for plan in plans]
    pieces = [piece_of(frame.fusion, members) for members in form.untiled]
    parts += [gpu_piece(frame, piece, several=True, block=WARP * WARPS)[1] for piece in pieces]
    grid = gpu_parts(frame, parts)
    notes = {
        "tile": " + ".join(f"{plan.tile}x{plan.tile}" for plan in plans),
        "vector": " + ".join(str(plan.vector) for plan in plans),
        "staged": " + ".join(str(len(plan.tiling.staged)) for plan in plans),
    }
    shared = sum(plan.shared_bytes for plan in plans)
    return frame.finish(Launch((grid, 1, 1), (WARP * WARPS, 1, 1), shared), "transpose", notes)


def _part(frame: Frame, plan: SharedTiles, block: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """The work of the blocks of one plan: `block` counts them."""
    before = list(frame.outputs)
    threads = _Threads(frame, plan, frame.e.variable(block, 0, plan.grid - 1))
    ready = list(frame.e.b.add(SyncThreadsOp(threads.stage())).results)
    threads.use(ready)
    results = [frame.outputs[n] for n in plan.outputs]
    frame.outputs[:] = before
    return results


class _Threads:
    """The work of a thread."""

    def __init__(self, frame: Frame, plan: SharedTiles, block: Expr) -> None:
        self.frame, self.plan, self.e = frame, plan, frame.e
        _, rows, columns = plan.tiling.tiles(plan.tile, plan.tile)
        thread = self.e.variable(frame.thread_id(), 0, WARP * WARPS - 1)
        self.lane, self.warp = self.e.simplify((thread % WARP, thread // WARP))
        self.outer, row, column = self.e.simplify(
            (block // (rows * columns), block // columns % rows * plan.tile, block % columns * plan.tile)
        )
        self.first = (row, column)
        self.loop = [plan.tile // WARPS, plan.vector]

    def stage(self) -> list[SSAValue]:
        """Tiles of shared memory, filled; side outputs stored."""
        e, plan, tiling = self.e, self.plan, self.plan.tiling
        types = [scalar_type(s.instruction.shape.element_type) for s in tiling.staged]
        shared = [e.b.op(AllocateSharedOp, type=TensorType(t, [plan.words])) for t in types]
        side = [n for outputs in plan.side.values() for n in outputs]

        def element(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            row, column = self._along_rows(variables)
            place = e.simplify(self._place(row, column))
            index = [_at(e, s, place) for s in tiling.staged]
            # all values first: a side output may share its buffer with an input
            computed = [e.value(s.instruction, at) for s, at in zip(tiling.staged, index, strict=True)]
            stored: list[tuple[Value, Output, Index]] = []
            for n, outputs in plan.side.items():
                for output in (self.frame.fusion.outputs[k] for k in outputs):
                    stored.append((output.of(e.value(output.instruction, index[n])), output, index[n]))
            slot = e.simplify((plan.slot(column, row),))
            tiles = [e.insert(v, t, slot) for v, t in zip(computed, values, strict=False)]
            rest = values[len(tiles) :]
            return [
                *tiles,
                *(e.insert(v, t, to_memory(o.shape, at)) for (v, o, at), t in zip(stored, rest, strict=True)),
            ]

        inits = [*shared, *(self.frame.outputs[n] for n in side)]
        results = e.loop(self.loop, inits, element, lambda v: self._inside(*self._along_rows(v)))
        store(self.frame, side, results[len(shared) :])
        return results[: len(shared)]

    def use(self, tiles: Sequence[SSAValue]) -> None:
        """The outputs along the columns."""
        e, tiling = self.e, self.plan.tiling
        members = self.plan.members
        outputs = [self.frame.fusion.outputs[n] for n in members]

        def element(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            row, column = self._along_columns(variables)
            place = self._fresh(self._place(row, column))
            slot = e.simplify((self.plan.slot(column, row),))
            for staged, tile in zip(tiling.staged, tiles, strict=True):
                e.provide(staged.instruction, _at(e, staged, place), e.extract(tile, slot))
            index = e.simplify(tiling.space.at(place))
            computed = [o.of(e.value(o.instruction, index)) for o in outputs]
            stores = zip(computed, values, outputs, strict=True)
            return [e.insert(v, t, to_memory(o.shape, index)) for v, t, o in stores]

        inits = [self.frame.outputs[n] for n in members]
        inside = e.loop(self.loop, inits, element, lambda v: self._inside(*self._along_columns(v)))
        store(self.frame, members, inside)

    def _along_rows(self, variables: Index) -> tuple[Expr, Expr]:
        """Row and column in the tile of a thread's element when a warp reads along a row of the operand."""
        step, k = variables
        return self.lane * self.plan.vector + k, step * WARPS + self.warp

    def _along_columns(self, variables: Index) -> tuple[Expr, Expr]:
        """Row and column in the tile when a warp stores along the columns."""
        column, row = self._along_rows(variables)
        return row, column

    def _place(self, row: Expr, column: Expr) -> Index:
        return self.plan.tiling.place(self.outer, self.first[0] + row, self.first[1] + column)

    def _inside(self, row: Expr, column: Expr) -> list[Constraint]:
        """The condition that the tile's element is inside the array."""
        tiling, side = self.plan.tiling, self.plan.tile
        ends = ((self.first[0] + row, tiling.rows), (self.first[1] + column, tiling.columns))
        return [(e, 0, n - 1) for e, n in ends if n % side]

    def _fresh(self, place: Index) -> Index:
        """The place as variables of their own, so that an index made of them looks as it did in the analysis."""
        e = self.e
        values = e.index_values(e.simplify(place))
        sizes = self.plan.tiling.space.sizes
        return tuple(e.variable(v, 0, n - 1) for v, n in zip(values, sizes, strict=True))


def _at(e, staged: Staged, place: Index) -> Index:  # noqa: ANN001
    """The staged instruction's index at a point of the space."""
    return e.simplify(tuple(x.substitute(place) for x in staged.index))
