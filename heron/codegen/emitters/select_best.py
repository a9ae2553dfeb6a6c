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
    """Selects from one row. The list is an i64[k], the best first."""

    def __init__(self, frame: Frame, topk: Instruction, row: Expr) -> None:
        self.frame, self.e, self.b = frame, frame.e, frame.e.b
        self.x, self.largest = topk.operands[0], bool(topk.attrs.get("largest", True))
        self.n, self.k = self.x.shape.dims[-1], topk.shape.at((0,)).dims[-1]
        self.outer = delinearize(row, self.x.shape.dims[:-1])

    def select(self, outputs: Sequence[SSAValue]) -> list[SSAValue]:
        """The outputs with the best of the row."""
        zero = self.b.integer(0)
        best = self.frame.scratch(I64, self.k)
        best = for_(
            self.frame, zero, self.b.integer(self.k), [best],
            lambda j, c: [self.e.insert(self.b.integer(0, I64), c[0], (self._place(j),))],
        )[0]  # fmt: skip
        # the first k come in without a question: any key is as good as none
        best = for_(self.frame, zero, self.b.integer(self.k), [best], lambda p, c: [self._inserted(p, c[0])])[0]
        whole = self.k + (self.n - self.k) // _BLOCK * _BLOCK
        if whole > self.k:
            best = for_(
                self.frame, self.b.integer(self.k), self.b.integer(whole), [best], self._block, self.b.integer(_BLOCK)
            )[0]
        if whole < self.n:
            best = for_(self.frame, self.b.integer(whole), self.b.integer(self.n), [best], self._one)[0]

        def store(j: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            number = self.e.read(best, (self._place(j),))
            low = self.b.op(arith.AndIOp, number, self.b.integer(_POSITION, I64))
            position = self.b.op(arith.SubiOp, self.b.integer(_POSITION, I64), low)
            at = (*self.outer, self._place(j))
            where = self.e.variable(self.b.op(arith.IndexCastOp, position, type=INDEX), 0, self.n - 1)
            value = self.e.value(self.x, self.e.simplify((*self.outer, where)))
            place = self.b.op(arith.TruncIOp, position, type=I32)
            values, places = carried
            index = self.e.simplify(at)
            return [self.e.insert(value, values, index), self.e.insert(place, places, index)]

        return for_(self.frame, zero, self.b.integer(self.k), outputs, store)

    def _block(self, start: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """The list after a block of elements."""
        b = self.b
        end = b.op(arith.AddiOp, start, b.integer(_BLOCK))

        def larger(p: SSAValue, c: Sequence[SSAValue]) -> list[SSAValue]:
            return [b.op(arith.MaxUIOp, c[0], self._key(p))]

        highest = for_(self.frame, start, end, [b.integer(0, I32)], larger)[0]
        some = self._times(b.cmpi("ugt", highest, self._least(carried[0])))
        return for_(self.frame, b.integer(0), some, carried, lambda _, c: for_(self.frame, start, end, c, self._one))

    def _one(self, p: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """The list after one element."""
        better = self._times(self.b.cmpi("ugt", self._key(p), self._least(carried[0])))
        return for_(self.frame, self.b.integer(0), better, carried, lambda _, c: [self._inserted(p, c[0])])

    def _inserted(self, p: SSAValue, best: SSAValue) -> SSAValue:
        """The list with element `p` in its place, the last one dropped: each is the old one, the new one or the one
        before, from the end on."""
        b, e = self.b, self.e
        high = b.op(arith.ShLIOp, b.op(arith.ExtUIOp, self._key(p), type=I64), b.integer(32, I64))
        position = b.op(arith.IndexCastOp, p, type=I64)
        number = b.op(arith.OrIOp, high, b.op(arith.SubiOp, b.integer(_POSITION, I64), position))

        def shift(j: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            at = e.variable(b.op(arith.SubiOp, b.integer(self.k - 1), j), 1, self.k - 1)
            before, old = (e.read(carried[0], (place,)) for place in (at - 1, at))
            new = b.op(arith.MaxUIOp, b.op(arith.MinUIOp, before, number), old)
            return [e.insert(new, carried[0], (at,))]

        if self.k > 1:
            best = for_(self.frame, b.integer(0), b.integer(self.k - 1), [best], shift)[0]
        first = (Const(0),)
        return e.insert(b.op(arith.MaxUIOp, e.read(best, first), number), best, first)

    def _least(self, best: SSAValue) -> SSAValue:
        """The key of the last one of the list. Equal keys that come later are worse."""
        last = self.e.read(best, (Const(self.k - 1),))
        return self.b.op(arith.TruncIOp, self.b.op(arith.ShRUIOp, last, self.b.integer(32, I64)), type=I32)

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

    def _times(self, condition: SSAValue) -> SSAValue:
        """A loop of one round or none."""
        return self.b.op(arith.IndexCastOp, self.b.op(arith.ExtUIOp, condition, type=I64), type=INDEX)
