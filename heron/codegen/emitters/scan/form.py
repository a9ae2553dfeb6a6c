"""The parts of a scan: the element each result adds, the combiner, the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from heron.analysis.fusion.prefix_scan import Scan
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.elemental.reducer import Reducer
from heron.codegen.emitters.base import Frame
from heron.hlo.ir.instruction import Instruction


class ScanForm:
    """A scan in a kernel while that is made.

    There is a scan for each index of the dimensions but the scanned one, whose sizes are ``kept``. Its results are
    counted from where it begins: the first ``before`` have no element yet, the next ``during`` take up one each, and
    the last ``after`` are all the same.
    """

    def __init__(self, frame: Frame, i: Instruction, scan: Scan) -> None:
        self.frame, self.e, self.i, self.scan = frame, frame.e, i, scan
        self.reducer = Reducer.in_order(frame.e, i)
        sizes = i.operands[0].shape.dims
        self.kept = tuple(n for d, n in enumerate(sizes) if d != scan.dimension)
        self.inner = prod(sizes[scan.dimension + 1 :])
        self.before, self.during, self.after = scan.phases

    @property
    def scans(self) -> int:
        """The number of scans."""
        return prod(self.kept)

    @property
    def width(self) -> int:
        """The number of scalars in a running value."""
        return len(self.reducer.types)

    def start(self) -> list[SSAValue]:
        """The running value before the first element."""
        return self.reducer.start(self.e)

    def read(self, position: Expr, scan: Expr) -> list[SSAValue]:
        """The element that result `position` takes up."""
        delay = self.scan.delay if self.scan.reverse else -self.scan.delay
        index = self._index(self._result(position) + delay, scan)
        elements = [self.e.value(a, index) for a in self.reducer.arrays]
        return self.reducer.pack(self.e, self.reducer.enter(self.e, elements))

    def join(self, so_far: Sequence[SSAValue], later: Sequence[SSAValue]) -> list[SSAValue]:
        """Two neighbouring parts of a scan as one. Elements keep the order they have in memory."""
        both = (later, so_far) if self.scan.reverse else (so_far, later)
        return self.reducer.merge(self.e, *both)

    def store(
        self, running: Sequence[SSAValue], outputs: Sequence[SSAValue], position: Expr, scan: Expr
    ) -> list[SSAValue]:
        """The outputs with the running value as result `position`."""
        results = self.reducer.leave(self.e, self.reducer.unpack(self.e, running))
        index = self._index(self._result(position), scan)
        parts = [results[o.part or 0] for o in self.frame.fusion.outputs[: len(outputs)]]
        return [self.e.insert(v, t, index) for v, t in zip(parts, outputs, strict=True)]

    def _result(self, position: Expr) -> Expr:
        """The index of the result at `position` from the start of the scan."""
        return Const(self.scan.results - 1) - position if self.scan.reverse else position

    def _index(self, position: Expr, scan: Expr) -> Index:
        kept, d = delinearize(scan, self.kept), self.scan.dimension
        return self.e.simplify((*kept[:d], position, *kept[d:]))
