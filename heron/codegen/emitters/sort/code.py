"""The code that all sorts have in common: the entries of their kernels, places of elements, and the comparator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from xdsl.ir import SSAValue

from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.sort import Sort
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.elemental import Value
from heron.codegen.elemental.control import apply
from heron.codegen.elemental.values import scalar_of
from heron.codegen.emitters.base import Frame
from heron.records import dataclass
from heron.targets import Target


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
        """The entry of a kernel whose only arguments are the outputs."""
        return Frame.of(replace(self.fusion, inputs=()), partition([]), name, target)

    def index(self, frame: Frame, row: Expr, position: Expr) -> Index:
        """The index of element `position` of a row."""
        outer = delinearize(row, [n for d, n in enumerate(self.sizes) if d != self.d])
        return frame.e.simplify((*outer[: self.d], position, *outer[self.d :]))

    def before(self, frame: Frame, a: Sequence[Value], b: Sequence[Value]) -> SSAValue:
        """Whether the elements `a` come before `b`."""
        return scalar_of(apply(frame.e, self.i.to_apply, [v for pair in zip(a, b, strict=True) for v in pair]))
