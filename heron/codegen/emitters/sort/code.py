"""The code that all sorts have in common: the entries of their kernels, places of elements, and the comparator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

from xdsl.ir import SSAValue

from heron.analysis.fusion.fusion import Output
from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.sort import Sort
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.elemental import Value
from heron.codegen.elemental.control import apply
from heron.codegen.elemental.values import scalar_of
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import item_loop
from heron.codegen.emitters.sort.room import room_of
from heron.codegen.ir.types import scalar_type
from heron.records import dataclass
from heron.targets import Target

#: sorts a row of tensors with scratch arrays, if any are given
RowSort = Callable[[Expr, Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]]


@dataclass(frozen=True, slots=True)
class SortCode(Sort):
    """A sort and the code of it."""

    @staticmethod
    def of_form(sort: Sort) -> SortCode:
        return SortCode(*(getattr(sort, f.name) for f in fields(Sort)))

    def frame(self, name: str, target: Target) -> Frame:
        """The entry of a kernel that may compute the operands."""
        return Frame.of(self.fusion, partition(list(dict.fromkeys(self.i.operands))), name, target)

    def frame_in_place(self, name: str, target: Target) -> Frame:
        """The entry of a kernel whose only arguments are the outputs, and scratch arrays that it is given."""
        room = [Output(self.i, None, s) for s in (() if target.is_gpu else room_of(self.i))]
        fusion = replace(self.fusion, inputs=(), outputs=(*self.fusion.outputs, *room))
        return Frame.of(fusion, partition([]), name, target)

    def each_row(self, frame: Frame, sort: RowSort) -> None:
        """Let `sort` sort each row on the CPU. It gets the row's number, the tensors and the scratch arrays given."""
        count = len(self.i.operands)

        def body(row: Expr, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return [*sort(row, tensors[:count], tensors[count:]), *tensors[count:]]

        frame.outputs = item_loop(frame, self.rows, 0, self.rows, frame.outputs, body)

    def scratch(self, frame: Frame) -> list[SSAValue]:
        """An array of the kernel's own for each operand, for the elements of one row."""
        sizes = [n if d == self.d else 1 for d, n in enumerate(self.sizes)]
        return [frame.scratch(scalar_type(o.shape.element_type), *sizes) for o in self.i.operands]

    def scratch_index(self, position: Expr) -> Index:
        """The index of element `position` of a row in a scratch array, given or the kernel's own."""
        return tuple(position if d == self.d else Const(0) for d in range(len(self.sizes)))

    def index(self, frame: Frame, row: Expr, position: Expr) -> Index:
        """The index of element `position` of a row."""
        outer = delinearize(row, [n for d, n in enumerate(self.sizes) if d != self.d])
        return frame.e.simplify((*outer[: self.d], position, *outer[self.d :]))

    def before(self, frame: Frame, a: Sequence[Value], b: Sequence[Value]) -> SSAValue:
        """Whether the elements `a` come before `b`."""
        return scalar_of(apply(frame.e, self.i.to_apply, [v for pair in zip(a, b, strict=True) for v in pair]))
