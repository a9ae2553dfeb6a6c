"""The scan emitter (CPU): a reduce-window that is a prefix or suffix scan, in one pass along the scanned dimension.

Several neighbouring scans ("lanes") go forward together: their running values stand in a tile on the stack, which LLVM
keeps in registers where it is short. Where the scanned dimension is not the innermost, lanes lie side by side in memory
and each step is vector code; where it is, lanes are rows, and what counts is that they do not wait for each other.
Each result is combined from its elements in their order, as the op's definition has it.

On the GPU scans are made short by reduce-window-rewriter, and short ones are done element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.cost import computation_flops
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.analysis.prefix_scan import Scan, scan_of
from heron.codegen.elemental import Value
from heron.codegen.elemental.reduction import Reducer, initial_values
from heron.codegen.heroes.base import Entry, Fusion, entry, hero, load
from heron.codegen.heroes.iteration import item_loop
from heron.codegen.kernel import Kernel, Launch
from heron.codegen.partition import partition
from heron.hlo.instruction import Instruction
from heron.targets import Target

#: rows that go together: enough to fill the time one addition takes; and where combining takes long, whole vectors
ROWS, VECTOR_ROWS = 4, 16
#: flops of a combiner from which on it should be done in vectors, even if their elements must be gathered
LONG_COMBINER = 16
#: neighbouring scans that go together when memory is read in long stretches
COLUMNS, STREAM_COLUMNS = 64, 1024
#: work items a core should have at least, so that none waits long for another
ITEMS_PER_CORE = 4


@hero("scan")
class ScanEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        why_not = _refusal(fusion, target)
        if why_not:
            kernel = load()["loop"].emit(fusion, name, target)
            kernel.notes["reason"] = why_not
            return kernel
        i = fusion.outputs[0].instruction
        scan = scan_of(i)
        assert scan is not None
        frame = entry(fusion, partition(list(dict.fromkeys(i.operands)), provided=[i]), name, target)
        return _Emission(frame, i, scan, _lanes(i, scan, target)).emit()


def _refusal(fusion: Fusion, target: Target) -> str:
    if target.kind != "cpu":
        return "a short scan: each result by itself"
    if len(fusion.roots) != 1 or scan_of(fusion.roots[0]) is None:
        return "more is computed than a scan"
    return ""


@dataclass(frozen=True, slots=True)
class Lanes:
    """``width`` neighbouring scans a work item, of the ``length`` that lie in step; ``groups`` of those.

    A scan is numbered by all dimensions but the scanned one, whose sizes are ``kept``. ``tiled``: running values stand
    in a tile on the stack, else in registers.
    """

    width: int
    length: int
    groups: int
    kept: tuple[int, ...]
    tiled: bool

    @property
    def tiles(self) -> int:
        """Work items a group; the last one overlaps the one before, so that all have one constant width."""
        return -(-self.length // self.width)


def _lanes(i: Instruction, scan: Scan, target: Target) -> Lanes:
    sizes = i.operands[0].shape.dims
    kept = tuple(n for d, n in enumerate(sizes) if d != scan.dimension)
    scans, inner = prod(kept), prod(sizes[scan.dimension + 1 :])
    if inner >= VECTOR_ROWS:
        width = STREAM_COLUMNS
        while width > COLUMNS and scans < width * ITEMS_PER_CORE * target.cores:
            width //= 2
        return Lanes(min(width, inner), inner, scans // inner, kept, True)
    tiled = computation_flops(i.to_apply) >= LONG_COMBINER
    width = VECTOR_ROWS if tiled else ROWS
    return Lanes(max(1, min(width, scans)), scans, 1, kept, tiled)


class _Emission:
    """One kernel while it is made."""

    def __init__(self, frame: Entry, i: Instruction, scan: Scan, lanes: Lanes) -> None:
        self.frame, self.e, self.i, self.scan, self.lanes = frame, frame.e, i, scan, lanes
        self.reducer = Reducer(frame.e, i)
        self.arrays = i.operands[: len(i.operands) // 2]

    def emit(self) -> Kernel:
        """The loop over work items, each a group of lanes from one end to the other."""
        frame, lanes = self.frame, self.lanes
        items = lanes.groups * lanes.tiles
        form = f"{lanes.width} scans of {self.scan.results} at a time"
        if items:
            frame.outputs = item_loop(frame, items, 0, items, frame.outputs, self._item)
        return frame.finish(Launch(work_items=max(items, 1)), "scan", {"form": form})

    def _item(self, item: Expr, outputs: Sequence[SSAValue]) -> Sequence[SSAValue]:
        first = self._first_lane(item)
        start = self.reducer.pack(self.reducer.enter(initial_values(self.e, self.i)))
        carried = [*(self._tiles(start) if self.lanes.tiled else start * self.lanes.width), *outputs]
        walk = self._walk_tiled if self.lanes.tiled else self._walk_unrolled
        before, during, after = phases(self.scan)
        carried = walk(before, 0, first, carried, step=False)
        carried = walk(during, before, first, carried, step=True)
        carried = walk(after, before + during, first, carried, step=False)
        return carried[len(carried) - len(outputs) :]

    # Both walks do results `skip` to `skip + count` of each lane, counted from where the scan begins. They carry the
    # running values, then the outputs. Without `step` the results are the running values as they are.

    def _walk_tiled(
        self, count: int, skip: int, first: Expr, carried: Sequence[SSAValue], step: bool
    ) -> Sequence[SSAValue]:
        """Running values in tiles; the lanes are a loop that LLVM may turn into vectors."""
        n = len(self.reducer.wide)

        def element(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            position, lane = variables
            running, tiles = [self._get(t, lane) for t in values[:n]], list(values[:n])
            if step:
                running = self._step(running, self._read(position, skip, first + lane))
                tiles = [self._put(v, t, lane) for v, t in zip(running, tiles, strict=True)]
            return [*tiles, *self._store(running, values[n:], position, skip, first + lane)]

        return self.e.loop([count, self.lanes.width], carried, element) if count else carried

    def _walk_unrolled(
        self, count: int, skip: int, first: Expr, carried: Sequence[SSAValue], step: bool
    ) -> Sequence[SSAValue]:
        """Running values in registers; the lanes are written out one by one."""
        n, lanes = len(self.reducer.wide), range(self.lanes.width)

        def element(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            position = variables[0]
            running = [list(values[lane * n : (lane + 1) * n]) for lane in lanes]
            if step:
                read = [self._read(position, skip, first + lane) for lane in lanes]
                running = [self._step(so_far, new) for so_far, new in zip(running, read, strict=True)]
            outputs = values[n * len(lanes) :]
            for lane, results in zip(lanes, running, strict=True):
                outputs = self._store(results, outputs, position, skip, first + lane)
            return [*(v for results in running for v in results), *outputs]

        return self.e.loop([count], carried, element) if count else carried

    def _read(self, position: Expr, skip: int, lane: Expr) -> list[Value]:
        """The element of each array that is next for result `position`."""
        delay = self.scan.delay if self.scan.reverse else -self.scan.delay
        index = self._index(self._result(position, skip) + delay, lane)
        return self.reducer.enter([self.e.value(a, index) for a in self.arrays])

    def _step(self, running: Sequence[SSAValue], read: Sequence[Value]) -> list[SSAValue]:
        so_far = self.reducer.unpack(running)
        # elements keep their order: what a suffix scan reaches later stands before what it has
        both = (read, so_far) if self.scan.reverse else (so_far, read)
        return self.reducer.pack(self.reducer.combine(*both))

    def _store(
        self, running: Sequence[SSAValue], outputs: Sequence[SSAValue], position: Expr, skip: int, lane: Expr
    ) -> list[SSAValue]:
        results = self.reducer.leave(self.reducer.unpack(running))
        index = self._index(self._result(position, skip), lane)
        parts = [results[o.part or 0] for o in self.frame.fusion.outputs]
        return [self.e.insert(v, t, index) for v, t in zip(parts, outputs, strict=True)]

    def _result(self, position: Expr, skip: int) -> Expr:
        """Which result is the one at `position` of a walk."""
        return Const(self.scan.results - 1 - skip) - position if self.scan.reverse else position + skip

    def _tiles(self, start: Sequence[SSAValue]) -> list[SSAValue]:
        """The initial values, once a lane, on the stack."""
        e, width = self.e, self.lanes.width
        empty = [e.b.op(tensor.EmptyOp, type=TensorType(v.type, [width])) for v in start]

        def clear(variables: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return [self._put(v, t, variables[0]) for v, t in zip(start, tensors, strict=True)]

        return e.loop([width], empty, clear)

    def _first_lane(self, item: Expr) -> Expr:
        e, lanes = self.e, self.lanes
        start = e.simplify((item % lanes.tiles * lanes.width,))[0]
        last = lanes.length - lanes.width
        if lanes.tiles * lanes.width != lanes.length:
            start = e.variable(e.b.op(arith.MinSIOp, e.index_value(start), e.b.integer(last)), 0, last)
        return start + item // lanes.tiles * lanes.length

    def _index(self, position: Expr, lane: Expr) -> Index:
        """The index of one element of one lane."""
        kept = delinearize(lane, self.lanes.kept)
        d = self.scan.dimension
        return self.e.simplify((*kept[:d], position, *kept[d:]))

    def _get(self, tile: SSAValue, lane: Expr) -> SSAValue:
        element = tile.type.element_type  # type: ignore[attr-defined]
        return self.e.b.op(tensor.ExtractOp, tile, self.e.index_value(lane), type=element)

    def _put(self, value: SSAValue, tile: SSAValue, lane: Expr) -> SSAValue:
        return self.e.b.op(tensor.InsertOp, value, tile, self.e.index_value(lane), type=tile.type)


def phases(scan: Scan) -> tuple[int, int, int]:
    """How many results of a lane come before its first element, with a new element each, and after its last."""
    if scan.reverse:
        before = min(scan.results + scan.delay - scan.source, scan.results)
        return before, scan.results - before, 0
    before = min(scan.delay, scan.results)
    during = min(scan.results, scan.source + scan.delay) - before
    return before, during, scan.results - before - during
