"""The loops along a row on the CPU: neighbouring dimensions that all arrays step through as one are one loop."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heron.analysis.fusion.rowwise import RowwiseForm, runs_of_row
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.elemental import FunctionEmitter
from heron.codegen.emitters.base import Frame


class RowWalk:
    """``sizes``: those of the loops along a row."""

    def __init__(self, frame: Frame, rows: RowwiseForm) -> None:
        self._parts = [[rows.dims[d] for d in run] for run in runs_of_row(frame.fusion, rows)]
        self.sizes = tuple(map(prod, self._parts))

    def index(self, e: FunctionEmitter, at: Index, place: Sequence[Expr]) -> Index:
        """The index of an element of the row `at` where its loops are at `place`."""
        row: list[Expr] = []
        for variable, sizes in zip(place, self._parts, strict=True):
            row += delinearize(variable, sizes) if len(sizes) > 1 else [variable]
        return (*at, *e.simplify(tuple(row)))
