"""Scans on the CPU: neighbouring ones ("lanes") go forward together.

Their running values stand in a tile on the stack, which LLVM keeps in registers where it is short. Where the scanned
dimension is not the innermost, lanes lie side by side in memory and each step is vector code; where it is, lanes are
rows, and what counts is that they do not wait for each other. Each result is combined from its elements in their order,
as the op's definition has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.cost import computation_flops
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.heroes.iteration import item_loop
from heron.codegen.heroes.reduction_tiles import get, put
from heron.codegen.heroes.scan_form import ScanForm
from heron.codegen.kernel import Kernel, Launch
from heron.targets import Target

#: rows that go together: enough to fill the time one addition takes; and where combining takes long, whole vectors
ROWS, VECTOR_ROWS = 4, 16
#: flops of a combiner from which on it should be done in vectors, even if their elements must be gathered
LONG_COMBINER = 16
#: neighbouring scans that go together when memory is read in long stretches
COLUMNS, STREAM_COLUMNS = 64, 1024
#: work items a core should have at least, so that none waits long for another
ITEMS_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class Lanes:
    """``width`` neighbouring scans a work item, of the ``length`` that lie in step; ``groups`` of those.

    ``tiled``: running values stand in a tile on the stack, else in registers.
    """

    width: int
    length: int
    groups: int
    tiled: bool

    @staticmethod
    def of(form: ScanForm, target: Target) -> Lanes:
        scans, inner = form.scans, form.inner
        if inner >= VECTOR_ROWS:
            width = STREAM_COLUMNS
            while width > COLUMNS and scans < width * ITEMS_PER_CORE * target.cores:
                width //= 2
            return Lanes(min(width, inner), inner, scans // inner, True)
        tiled = computation_flops(form.i.to_apply) >= LONG_COMBINER
        width = VECTOR_ROWS if tiled else ROWS
        return Lanes(max(1, min(width, scans)), scans, 1, tiled)

    @property
    def tiles(self) -> int:
        """Work items a group; the last one overlaps the one before, so that all have one constant width."""
        return -(-self.length // self.width)


def emit(form: ScanForm) -> Kernel:
    """The loop over work items, each a group of lanes from one end to the other."""
    frame, lanes = form.frame, Lanes.of(form, form.frame.target)
    items = lanes.groups * lanes.tiles
    if items:
        frame.outputs = item_loop(frame, items, 0, items, frame.outputs, _Emission(form, lanes).item)
    told = f"{lanes.width} scans of {form.scan.results} at a time"
    return frame.finish(Launch(work_items=max(items, 1)), "scan", {"form": told})


class _Emission:
    """One work item while it is made."""

    def __init__(self, form: ScanForm, lanes: Lanes) -> None:
        self.form, self.frame, self.e, self.lanes = form, form.frame, form.e, lanes

    def item(self, item: Expr, outputs: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """All results of a group of lanes."""
        form, first, start = self.form, self._first_lane(item), self.form.start()
        carried = [*(self._tiles(start) if self.lanes.tiled else start * self.lanes.width), *outputs]
        walk = self._walk_tiled if self.lanes.tiled else self._walk_unrolled
        carried = walk(form.before, 0, first, carried, step=False)
        carried = walk(form.during, form.before, first, carried, step=True)
        carried = walk(form.after, form.before + form.during, first, carried, step=False)
        return carried[len(carried) - len(outputs) :]

    # Both walks do results `skip` to `skip + count` of each lane. They carry the running values, then the outputs.
    # Without `step` the results are the running values as they are.

    def _walk_tiled(
        self, count: int, skip: int, first: Expr, carried: Sequence[SSAValue], step: bool
    ) -> Sequence[SSAValue]:
        """Running values in tiles; the lanes are a loop that LLVM may turn into vectors."""
        form, n = self.form, self.form.width

        def element(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            position, lane = variables
            position, scan = position + skip, first + lane
            running, tiles = [get(self.frame, t, (lane,)) for t in values[:n]], list(values[:n])
            if step:
                running = form.join(running, form.read(position, scan))
                tiles = [put(self.frame, v, t, (lane,)) for v, t in zip(running, tiles, strict=True)]
            return [*tiles, *form.store(running, values[n:], position, scan)]

        return self.e.loop([count, self.lanes.width], carried, element) if count else carried

    def _walk_unrolled(
        self, count: int, skip: int, first: Expr, carried: Sequence[SSAValue], step: bool
    ) -> Sequence[SSAValue]:
        """Running values in registers; the lanes are written out one by one."""
        form, n, lanes = self.form, self.form.width, range(self.lanes.width)

        def element(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            position = variables[0] + skip
            running = [list(values[lane * n : (lane + 1) * n]) for lane in lanes]
            if step:
                read = [form.read(position, first + lane) for lane in lanes]
                running = [form.join(so_far, new) for so_far, new in zip(running, read, strict=True)]
            outputs = values[n * len(lanes) :]
            for lane, results in zip(lanes, running, strict=True):
                outputs = form.store(results, outputs, position, first + lane)
            return [*(v for results in running for v in results), *outputs]

        return self.e.loop([count], carried, element) if count else carried

    def _tiles(self, start: Sequence[SSAValue]) -> list[SSAValue]:
        """The initial values, once a lane, on the stack."""
        e, width = self.e, self.lanes.width
        empty = [e.b.op(tensor.EmptyOp, type=TensorType(v.type, [width])) for v in start]

        def clear(variables: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return [put(self.frame, v, t, variables) for v, t in zip(start, tensors, strict=True)]

        return e.loop([width], empty, clear)

    def _first_lane(self, item: Expr) -> Expr:
        e, lanes = self.e, self.lanes
        start = e.simplify((item % lanes.tiles * lanes.width,))[0]
        last = lanes.length - lanes.width
        if lanes.tiles * lanes.width != lanes.length:
            start = e.variable(e.b.op(arith.MinSIOp, e.index_value(start), e.b.integer(last)), 0, last)
        return start + item // lanes.tiles * lanes.length
