"""The topk emitter: the k best elements of a row, in order, in one pass over the row; a work item is a row.

An element is a 64-bit number: a key that orders as the element does, then its position, of which the smaller is
better. The best so far are a sorted list. Elements are looked at in blocks: the largest key of a block, which vectors
find, says whether any of its elements comes into the list. In a row in random order few blocks have one.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.partition import partition
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import delinearize
from heron.codegen.elemental.logic import total_key
from heron.codegen.elemental.registry import require
from heron.codegen.elemental.values import scalar_of
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.emitters.loops import for_, item_loop
from heron.codegen.ir.types import I32, I64, INDEX
from heron.codegen.kernel import Kernel, Launch
from heron.hlo.ir import types
from heron.hlo.ir.instruction import Instruction
from heron.targets import Target

_BLOCK = 64
_POSITION = (1 << 32) - 1


class TopkEmitter(Emitter[None]):
    """One kernel on the CPU; on a GPU there are sorts only."""

    kind = "topk"

    def frame(self, analysis: FusionAnalysis, name: str, target: Target) -> Frame:
        return Frame.of(analysis.fusion, partition([]), name, target)

    def emit_cpu(self, frame: Frame, form: None) -> list[Kernel]:
        topk = frame.fusion.computation.root
        rows = topk.operands[0].shape.num_elements // topk.operands[0].shape.dims[-1]
        frame.outputs = item_loop(
            frame, rows, 0, rows, frame.outputs, lambda row, outputs: _Row(frame, topk, row).select(outputs)
        )
        k = topk.shape.at((0,)).dims[-1]
        return [frame.finish(Launch(work_items=rows), self.kind, {"form": f"the best {k} in one pass"})]

    def emit_gpu(self, frame: Frame, form: None) -> list[Kernel]:
        """None: raises GEN001. topk-decomposer leaves no topk there."""
        require(frame.fusion.computation.root, frame.target.name)
        return []


class _Row:
    """Selects from one row. The list is an i64[k + 1], the worst first, and after the best one a number above all."""

    def __init__(self, frame: Frame, topk: Instruction, row: Expr) -> None:
        self.frame, self.e, self.b = frame, frame.e, frame.e.b
        self.x, self.largest = topk.operands[0], bool(topk.attrs.get("largest", True))
        self.n, self.k = self.x.shape.dims[-1], topk.shape.at((0,)).dims[-1]
        self.outer = delinearize(row, self.x.shape.dims[:-1])
        self.block = min(_BLOCK, self.n)

    def select(self, outputs: Sequence[SSAValue]) -> list[SSAValue]:
        """The outputs with the best of the row."""
        b, e, zero, k = self.b, self.e, self.b.integer(0), self.b.integer(self.k)
        # no element has the number 0: all are better
        (best,) = for_(
            self.frame, zero, k, [self.frame.scratch(I64, self.k + 1)],
            lambda j, c: [e.insert(b.integer(0, I64), c[0], (self._place(j),))],
        )  # fmt: skip
        best = e.insert(b.integer(-1, I64), best, (Const(self.k),))
        (best,) = for_(self.frame, zero, b.integer(self.n), [best], self._block, b.integer(self.block))

        def store(j: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            number = e.read(best, e.simplify((Const(self.k - 1) - self._place(j),)))
            low = b.op(arith.AndIOp, number, b.integer(_POSITION, I64))
            position = b.op(arith.SubiOp, b.integer(_POSITION, I64), low)
            where = e.variable(b.op(arith.IndexCastOp, position, type=INDEX), 0, self.n - 1)
            value = e.value(self.x, e.simplify((*self.outer, where)))
            place = b.op(arith.TruncIOp, position, type=I32)
            values, places = carried
            index = e.simplify((*self.outer, self._place(j)))
            return [e.insert(value, values, index), e.insert(place, places, index)]

        return for_(self.frame, zero, k, outputs, store)

    def _block(self, start: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """The list after the elements of a block. The last block is looked at as part of one that is whole."""
        b = self.b
        first = start
        if self.n % self.block:
            first = b.op(arith.MinSIOp, start, b.integer(self.n - self.block))
        end = b.op(arith.AddiOp, first, b.integer(self.block))

        def larger(j: SSAValue, c: Sequence[SSAValue]) -> list[SSAValue]:
            return [b.op(arith.MaxUIOp, c[0], self._key(b.op(arith.AddiOp, first, j)))]

        highest = for_(self.frame, b.integer(0), b.integer(self.block), [b.integer(0, I32)], larger)[0]
        some = self._is_better(self._number(highest, start), carried[0])
        return self.e.guarded(some, carried, lambda: for_(self.frame, start, end, carried, self._one))

    def _one(self, p: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """The list after one element."""
        number = self._number(self._key(p), p)
        better = self._is_better(number, carried[0])
        return self.e.guarded(better, carried, lambda: [self._inserted(number, carried[0])])

    def _inserted(self, number: SSAValue, best: SSAValue) -> SSAValue:
        """The list with a number in its place, the worst one dropped: each is the old one, the new one or the next."""
        b, e = self.b, self.e

        def shift(j: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            at = self._place(j)
            old, following = (e.read(carried[0], e.simplify((place,))) for place in (at, at + 1))
            new = b.op(arith.MaxUIOp, b.op(arith.MinUIOp, following, number), old)
            return [e.insert(new, carried[0], (at,))]

        return for_(self.frame, b.integer(0), b.integer(self.k), [best], shift)[0]

    def _is_better(self, number: SSAValue, best: SSAValue) -> SSAValue:
        """Whether a number comes into the list."""
        return self.b.cmpi("ugt", number, self.e.read(best, (Const(0),)))

    def _number(self, key: SSAValue, position: SSAValue) -> SSAValue:
        """The number of an element with that key. Of equal keys the one that comes later is worse."""
        b = self.b
        high = b.op(arith.ShLIOp, b.op(arith.ExtUIOp, key, type=I64), b.integer(32, I64))
        low = b.op(arith.SubiOp, b.integer(_POSITION, I64), b.op(arith.IndexCastOp, position, type=I64))
        return b.op(arith.OrIOp, high, low)

    def _key(self, p: SSAValue) -> SSAValue:
        """An `i32` that orders as element `p` does, as an unsigned number, the best largest."""
        b, t = self.b, self.x.shape.element_type
        value = scalar_of(self.e.value(self.x, self.e.simplify((*self.outer, self.e.variable(p, 0, self.n - 1)))))
        if t is types.PRED:
            word = b.op(arith.ExtUIOp, value, type=IntegerType(8))
        else:
            word = total_key(self.e, value, t) if t.is_float else value
        if t.is_signed or (t.is_float and t is not types.F8E8M0FNU):
            word = b.op(arith.XOrIOp, word, b.integer(-(1 << (t.bits - 1)), word.type))
        if not self.largest:
            word = b.op(arith.XOrIOp, word, b.integer(-1, word.type))
        return word if word.type == I32 else b.op(arith.ExtUIOp, word, type=I32)

    def _place(self, j: SSAValue) -> Expr:
        return self.e.variable(j, 0, self.k - 1)
