"""Scans on the CPU: neighbouring ones ("lanes") go forward together.

Their running values are in a tile on the stack, which LLVM keeps in registers where it is short. Where the scanned
dimension is not the innermost, lanes lie side by side in memory and each step is vector code; where it is, lanes are
rows, and what counts is that they do not wait for each other. Elements keep their order. Where combining rounds, long
scans are cut into blocks (`partial_sums`): a result combines the blocks before it with its own block so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.cost import computation_flops
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.emitters.loops import item_loop
from heron.codegen.emitters.partial_sums import SHORT, cuts
from heron.codegen.emitters.scan.form import ScanForm
from heron.codegen.kernel import Kernel, Launch
from heron.records import dataclass
from heron.targets import Target

#: rows that go together: enough to fill the time one addition takes; and where combining takes long, whole vectors
ROWS, VECTOR_ROWS = 4, 16
#: flops of a combiner from which on it should be done in vectors, even if their elements must be gathered
LONG_COMBINER = 16
#: neighbouring scans that go together when memory is read in long stretches
COLUMNS, STREAM_COLUMNS = 64, 1024
#: about as many results has a block of a scan that is cut
BLOCK = 32
#: work items a core should have at least, so that none waits long for another
ITEMS_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class Lanes:
    """``width`` neighbouring scans a work item, of the ``length`` that lie in step; ``groups`` of those.

    ``tiled``: running values are in a tile on the stack, else in registers.
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
    form_ = f"{lanes.width} scans of {form.scan.results} at a time"
    return frame.finish(Launch(work_items=items), "scan", {"form": form_})


class _Emission:
    """One work item while it is made."""

    def __init__(self, form: ScanForm, lanes: Lanes) -> None:
        self.form, self.frame, self.e, self.lanes = form, form.frame, form.e, lanes
        #: what the running values of a part start from; without it they hold nothing before its first element
        self.identity = form.reducer.identity(form.e)

    def item(self, item: Expr, outputs: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """All results of a group of lanes."""
        form, first = self.form, self._first_lane(item)
        carried = [*self._state(form.start()), *outputs]
        carried = self._walk(form.before, Const(0), first, carried, step=False)
        carried = self._take_up(first, carried)
        carried = self._walk(form.after, Const(form.before + form.during), first, carried, step=False)
        return carried[len(carried) - len(outputs) :]

    def _take_up(self, first: Expr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The results that take up one element each, in blocks where a long chain would lose digits."""
        form, skip = self.form, Const(self.form.before)
        if not form.reducer.adds_floats or form.during <= SHORT * BLOCK:
            return self._walk(form.during, skip, first, carried)
        n, fresh = len(carried) - len(self.frame.outputs), self.identity or form.start()
        (*counts, block), rest = cuts(form.during, BLOCK)

        def blocks_from(
            level: int, start: Expr, before: Sequence[SSAValue] | None, values: Sequence[SSAValue]
        ) -> Sequence[SSAValue]:
            """All blocks of ``counts[level:]``, of which the first is at `start`, on top of `values`.

            ``before``: what fresh `values` do not hold; None where they hold all.
            """
            if level == len(counts):
                return self._walk(block, start, first, values, before=before)
            width = prod(counts[level + 1 :]) * block

            def one(v: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
                total = so_far = values[:n]
                is_first = None
                if before is not None:
                    is_first = self._is_first(v[0])
                    so_far = self._joined(before, total, alone=(is_first, 0))
                made = blocks_from(level + 1, start + v[0] * width, so_far, [*self._state(fresh), *values[n:]])
                return [*self._joined(total, made[:n], total, (is_first, 1)), *made[n:]]

            return self.e.loop([counts[level]], values, one)

        values = blocks_from(0, skip, None, carried)
        if not rest:
            return values
        start, total = Const(form.before + form.during - rest), values[:n]
        made = self._walk(rest, start, first, [*self._state(fresh), *values[n:]], before=total)
        return [*self._joined(total, made[:n], total), *made[n:]]

    def _is_first(self, position: Expr) -> SSAValue | None:
        """Whether a loop over fresh running values is at its first position, where they may hold nothing yet."""
        if self.identity is not None:
            return None
        return self.e.b.cmpi("eq", self.e.index_value(position), self.e.b.integer(0))

    def _state(self, value: Sequence[SSAValue]) -> list[SSAValue]:
        """The running values of all lanes, each the same."""
        return self._tiles(value) if self.lanes.tiled else [*value] * self.lanes.width

    def _joined(
        self,
        a: Sequence[SSAValue],
        b: Sequence[SSAValue],
        into: Sequence[SSAValue] | None = None,
        alone: tuple[SSAValue | None, int] = (None, 0),
    ) -> list[SSAValue]:
        """Running values of two neighbouring parts as those of both; tiles are stored over those in `into`.

        ``alone``: a condition, and the part (0 or 1) that is the result where it holds.
        """
        e, n = self.e, self.form.width
        if not self.lanes.tiled:
            lanes = [slice(k * n, (k + 1) * n) for k in range(self.lanes.width)]
            return [v for lane in lanes for v in self._join(a[lane], b[lane], *alone)]
        targets = into or [e.b.op(tensor.EmptyOp, type=t.type) for t in a]

        def lane(variables: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            x, y = ([self.frame.e.read(t, variables) for t in some] for some in (a, b))
            made = self._join(x, y, *alone)
            return [self.frame.e.write(v, t, variables) for v, t in zip(made, tensors, strict=True)]

        return e.loop([self.lanes.width], targets, lane)

    def _join(
        self, a: Sequence[SSAValue], b: Sequence[SSAValue], is_alone: SSAValue | None, part: int
    ) -> list[SSAValue]:
        """Two neighbouring parts of one lane as one; where `is_alone` holds, one of them."""
        both = self.form.join(a, b)
        if is_alone is None:
            return both
        return [self.frame.e.b.select(is_alone, one, v) for one, v in zip((a, b)[part], both, strict=True)]

    # Both walks do results `skip` to `skip + count` of each lane. They carry the running values, then the outputs.
    # Without `step` the results are the running values as they are. `before`: what fresh running values do not hold.

    def _walk(
        self,
        count: int,
        skip: Expr,
        first: Expr,
        carried: Sequence[SSAValue],
        step: bool = True,
        before: Sequence[SSAValue] | None = None,
    ) -> Sequence[SSAValue]:
        if not count:
            return carried
        walk = self._walk_tiled if self.lanes.tiled else self._walk_unrolled
        return walk(count, skip, first, carried, step, before)

    def _walk_tiled(
        self,
        count: int,
        skip: Expr,
        first: Expr,
        carried: Sequence[SSAValue],
        step: bool,
        before: Sequence[SSAValue] | None,
    ) -> Sequence[SSAValue]:
        """Running values in tiles; the lanes are a loop that LLVM may turn into vectors."""
        form, n = self.form, self.form.width

        def element(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            position, lane = variables
            is_first = None if before is None else self._is_first(position)
            position, scan = position + skip, first + lane
            running, tiles = [self.frame.e.read(t, (lane,)) for t in values[:n]], list(values[:n])
            if step:
                running = self._join(running, form.read(position, scan), is_first, 1)
                tiles = [self.frame.e.write(v, t, (lane,)) for v, t in zip(running, tiles, strict=True)]
            if before is not None:
                running = form.join([self.frame.e.read(t, (lane,)) for t in before], running)
            return [*tiles, *form.store(running, values[n:], position, scan)]

        return self.e.loop([count, self.lanes.width], carried, element)

    def _walk_unrolled(
        self,
        count: int,
        skip: Expr,
        first: Expr,
        carried: Sequence[SSAValue],
        step: bool,
        before: Sequence[SSAValue] | None,
    ) -> Sequence[SSAValue]:
        """Running values in registers; the lanes are written out one by one."""
        form, n, lanes = self.form, self.form.width, range(self.lanes.width)

        def element(variables: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            position = variables[0] + skip
            is_first = None if before is None else self._is_first(variables[0])
            running = [list(values[lane * n : (lane + 1) * n]) for lane in lanes]
            if step:
                read = [form.read(position, first + lane) for lane in lanes]
                running = [self._join(so_far, new, is_first, 1) for so_far, new in zip(running, read, strict=True)]
            outputs = values[n * len(lanes) :]
            for lane, results in zip(lanes, running, strict=True):
                so_far = results if before is None else form.join(before[lane * n : (lane + 1) * n], results)
                outputs = form.store(so_far, outputs, position, first + lane)
            return [*(v for results in running for v in results), *outputs]

        return self.e.loop([count], carried, element)

    def _tiles(self, start: Sequence[SSAValue]) -> list[SSAValue]:
        """The initial values, once a lane, on the stack."""
        e, width = self.e, self.lanes.width
        empty = [e.b.op(tensor.EmptyOp, type=TensorType(v.type, [width])) for v in start]

        def clear(variables: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return [self.frame.e.write(v, t, variables) for v, t in zip(start, tensors, strict=True)]

        return e.loop([width], empty, clear)

    def _first_lane(self, item: Expr) -> Expr:
        e, lanes = self.e, self.lanes
        start = e.simplify((item % lanes.tiles * lanes.width,))[0]
        last = lanes.length - lanes.width
        if lanes.tiles * lanes.width != lanes.length:
            start = e.variable(e.b.op(arith.MinSIOp, e.index_value(start), e.b.integer(last)), 0, last)
        return start + item // lanes.tiles * lanes.length
