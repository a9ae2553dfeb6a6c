"""Rows too long to be held whole: their reductions and the products that need them are loops over parts of a row.

A row that several reductions need is gone through once for each, and what it is computed from is computed again: so a
softmax between two products takes three loops, in each of which the first product is done, and every value is what the
program says. With ``online`` it takes one: a running maximum, and whenever it grows, what was summed so far is scaled.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i1, i32, i64
from xdsl.ir import Block

from heron.analysis.blocks.config import BlockConfig
from heron.analysis.blocks.tiling import factor_index, holds_rows, split
from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.softmax import Softmax, softmax_of
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.ir.dialects.triton import ExternElementwiseOp, PreciseDivOp
from heron.codegen.ir.types import compute_type, scalar_type
from heron.codegen.triton.emitter import BlockEmitter
from heron.codegen.triton.lift import function_of, no_form
from heron.codegen.triton.positions import Guard
from heron.codegen.triton.tiles import Tile
from heron.hlo.facts import combiner
from heron.hlo.ir import types
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass


@dataclass
class _Pass:
    """One pass over the rows of a softmax: where it is, the largest element before and now, the terms of this step,
    and which rows these are."""

    softmax: Softmax
    row: Expr
    before: Tile
    now: Tile | None = None
    terms: Tile | None = None
    index: Index = ()


class RowEmitter(BlockEmitter):
    """Emits kernels whose config gives the part of a row that a step holds."""

    _pass: _Pass | None = None

    def _compute(self, i: Instruction, index: Index, guard: Guard) -> Tile:
        if self._pass is not None and i is self._pass.softmax.quotient:
            # the division is left for the end: here only what is divided
            terms = self._pass.terms = self.value(self._pass.softmax.terms, index, guard)
            return terms
        return super()._compute(i, index, guard)

    # -- reductions ----------------------------------------------------------------------------------------------------
    def _reduce(self, i: Instruction, index: Index, guard: Guard) -> Tile:
        if self._pass is not None and i is self._pass.softmax.largest:
            return self._largest(i, index, guard, self._pass)
        opcode, step = combiner(i.to_apply), self.config.row
        sizes = [i.operands[0].shape.dims[d] for d in i.dimensions]
        if opcode is None or len(i.operands) != 2 or len(sizes) != 1 or sizes[0] <= step or self._held(sizes[0], index):
            return super()._reduce(i, index, guard)
        t = compute_type(i.shape.element_type)
        axes = self._axes(index)
        with self.b.outside(self._level(index)):
            start = self._filled(self._identity(opcode, t), axes)
            body = Block(arg_types=[i32, start.value.type])
            with self.b.inside(body):
                row = self._position(sizes[0], step, 1e3 + len(self.positions), body.args[0], step=1)
                part = self._reduced(self._of_row(i, index, row, guard), row, opcode, t)
                total = self._combined(Tile(body.args[1], axes), part, opcode, t, i)
                self.b.add(scf.YieldOp(self.b.spread(total, axes)))
            (total,) = self._loop(body, sizes[0], step, [start])
        first = self._wide(self.value(i.operands[1], ()), i.shape.element_type, i)
        return self._narrow(self._combined(total, first, opcode, t, i), i.shape.element_type, i)

    def _of_row(self, i: Instruction, index: Index, row: Expr, guard: Guard) -> Tile:
        """The values that a reduction combines, at a place of the row."""
        d = i.dimensions[0]
        return self._wide(self.value(i.operands[0], (*index[:d], row, *index[d:]), guard), i.shape.element_type, i)

    def _held(self, size: int, index: Index) -> bool:
        """Whether the result's own tile has rows of that size whole."""
        return any(p.whole and p.size == size for p in self.positions[: len(self.config.tiles)])

    def _filled(self, scalar: object, axes: tuple[int, ...]) -> Tile:
        return Tile(self.b.spread(Tile(scalar), axes), axes)  # type: ignore[arg-type]

    # -- products ------------------------------------------------------------------------------------------------------
    def _dot(self, i: Instruction, index: Index, guard: Guard) -> Tile:
        size, step = i.operands[0].shape.dims[i.lhs_contracting_dims[0]], self.config.row
        if size <= step or guard or not any(holds_rows(o, self._inside) for o in i.operands):
            return super()._dot(i, index, guard)
        order = self._order_between(i, index)
        with self.b.outside(self._level(index)):
            softmax = softmax_of(i, self._inside) if self.config.online else None
            if softmax is not None:
                return self._online(i, index, softmax, order)
            (total,) = self._steps(i, [index], size, order, guard, step)
            return self._result(total, i)

    def _online(self, i: Instruction, index: Index, softmax: Softmax, order: float) -> Tile:
        """The product of a softmax in one pass over its rows."""
        b, size, step = self.b, i.operands[0].shape.dims[i.lhs_contracting_dims[0]], self.config.row
        batch, *free = split(i, index)
        rows = self._axes(free[softmax.operand])
        least, zero = (b.constant(FloatAttr(v, f32), f32) for v in (float("-inf"), 0.0))
        starts = [self._filled(least, rows), self._filled(zero, rows), self._zeros(i, index)]
        body = Block(arg_types=[i32, *(s.value.type for s in starts)])
        before, sums, product = (Tile(v, s.axes) for v, s in zip(body.args[1:], starts, strict=True))
        with b.inside(body):
            row = self._position(size, step, order, body.args[0], step=1)
            self._pass = now = _Pass(softmax, row, before)
            place = self.simplify(factor_index(i, softmax.operand, batch, row, free[softmax.operand]))
            self.value(i.operands[softmax.operand], place)
            if now.now is None or now.terms is None:
                raise no_form(i, "its softmax is not of the rows it sums over")
            terms = self._wide(now.terms, softmax.total.shape.element_type, softmax.total)
            scale = self._function("exp", b.each(arith.SubfOp, before, self._finite(now.now)))
            sums = b.each(arith.AddfOp, b.each(arith.MulfOp, sums, scale), self._reduced(terms, row, "add", types.F32))
            product = self._product(i, index, row, (), b.each(arith.MulfOp, product, scale))
            b.add(scf.YieldOp(*(b.spread(t, s.axes) for t, s in zip((now.now, sums, product), starts, strict=True))))
        self._pass = None
        largest, sums, product = self._loop(body, size, step, starts)
        self._keep(now, largest, sums)
        return self._result(b.each(PreciseDivOp, product, sums), i)

    def _keep(self, done: _Pass, largest: Tile, sums: Tile) -> None:
        """Keep the results of the rows for other readers."""
        for i, total in ((done.softmax.largest, largest), (done.softmax.total, sums)):
            self._values[i, done.index, ()] = self._narrow(total, i.shape.element_type, i)

    def _largest(self, i: Instruction, index: Index, guard: Guard, now: _Pass) -> Tile:
        """The largest element so far, to take off: 0 while there is none but -inf."""
        t = compute_type(i.shape.element_type)
        part = self._reduced(self._of_row(i, index, now.row, guard), now.row, "maximum", t)
        now.now, now.index = self._combined(now.before, part, "maximum", t, i), index
        return self._narrow(self._finite(now.now), i.shape.element_type, i)

    def _finite(self, x: Tile) -> Tile:
        """`x`, and 0 for -inf."""
        least, zero = (Tile(self.b.constant(FloatAttr(v, f32), f32)) for v in (float("-inf"), 0.0))
        equal = {"predicate": IntegerAttr(1, i64)}
        test = self.b.each(arith.CmpfOp, x, least, element=i1, properties=equal)
        return self.b.each(arith.SelectOp, test, zero, x, element=x.element)

    def _function(self, name: str, x: Tile) -> Tile:
        return self.b.each(ExternElementwiseOp, x, properties=function_of(name, scalar_type(types.F32)))


def emitter_of(fusion: Fusion, config: BlockConfig, name: str) -> BlockEmitter:
    """The emitter for a fusion cut so."""
    return (RowEmitter if config.row else BlockEmitter)(fusion, config, name)
