"""Scans on the GPU: a block of threads a scan, or, where scans lie side by side, a block for neighbouring ones.

A block's threads take a few neighbouring elements each, a tile together. A thread scans its own, the totals are scanned
within warps by shuffles, the warps' totals by every thread from shared memory; what came out of the tiles before is
carried along. Short scans share a block. Of long ones of which there are few, blocks share
each (`scan_single_gpu`), or reduce-window-rewriter has cut them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental import FunctionEmitter
from heron.codegen.emitters.loops import at_most
from heron.codegen.emitters.scan.form import ScanForm
from heron.codegen.ir.dialects.xla_gpu import AllocateSharedOp, ShuffleUpOp, SyncThreadsOp
from heron.codegen.kernel import Kernel, Launch
from heron.records import dataclass
from heron.targets import WARP, Target

#: neighbouring elements a thread takes, if the scan has that many for each of a few warps
ELEMENTS, LONG = 4, 128
#: threads of a block, and those of it that one scan has at most
SHORT_BLOCK, BLOCK = 128, 256
#: of scans side by side, threads a core should have, and elements a thread takes at least
THREADS_PER_CORE, LEAST = 2048, 8


def emit(form: ScanForm) -> Kernel:
    """The kernel."""
    target = form.frame.target
    if not form.scans or not form.scan.results:
        return form.frame.finish(Launch(), "scan", {"form": "nothing"})
    if form.inner >= WARP:
        return _columns(form)
    return _Blocks(form, _Plan.of(form, target)).emit()


def _columns(form: ScanForm) -> Kernel:
    """Neighbouring threads take neighbouring scans; threads below each other take a stretch of each.

    With several stretches each is read twice: for its total, and again once the total before it is known.
    """
    frame, e, n = form.frame, form.e, form.width
    stretches, wanted = 1, THREADS_PER_CORE * frame.target.cores
    while stretches < WARP and form.scans * stretches < wanted and form.during >= 2 * stretches * LEAST:
        stretches *= 2
    across, length = max(WARP, SHORT_BLOCK // stretches), -(-form.during // stretches)
    block, grid = across * stretches, -(-form.scans // across)
    thread = e.variable(frame.thread_id(), 0, block - 1)
    row, column, number = e.simplify((
        thread // across, thread % across,
        e.variable(frame.block_id(), 0, grid - 1) * across + thread % across,
    ))  # fmt: skip
    exists = [(number, 0, form.scans - 1)]
    scan = at_most(e, number, form.scans - 1)
    start = running = form.start()
    if form.before:

        def begin(variables: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return form.store(start, tensors, variables[0], scan)

        frame.outputs = e.loop([form.before], frame.outputs, begin, lambda _: [*exists, (row, 0, 0)])

    def place(k: Expr) -> Expr:
        return row * length + k

    def inside(variables: Index) -> list[Constraint]:
        return [(place(variables[0]), 0, form.during - 1)]

    if stretches > 1:
        # a stretch past the end reads the last element: nothing comes after it
        total = form.read(at_most(e, place(Const(0)), form.during - 1) + form.before, scan)
        total = e.loop(
            [length - 1],
            total,
            lambda v, t: form.join(t, form.read(place(v[0] + 1) + form.before, scan)),
            lambda v: inside((v[0] + 1,)),
        )
        shared = [e.b.op(AllocateSharedOp, type=TensorType(v.type, [stretches, across])) for v in total]
        saved = [frame.e.write(v, t, (row, column)) for v, t in zip(total, shared, strict=True)]
        ready = e.b.add(SyncThreadsOp(saved)).results
        for k in range(stretches - 1):
            part = [frame.e.read(t, (Const(k), column)) for t in ready]
            running = _where(e, (row, k + 1, stretches - 1), running, partial(form.join, running, part))

    def element(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        position = place(variables[0]) + form.before
        now = form.join(carried[:n], form.read(position, scan))
        return [*now, *form.store(now, carried[n:], position, scan)]

    if form.during:
        carried = [*running, *frame.outputs]
        frame.outputs = e.loop([length], carried, element, lambda v: [*inside(v), *exists])[n:]
    bytes_ = sum(s.byte_size for s in form.reducer.shapes) * block if stretches > 1 else 0
    notes = {"form": f"{stretches} stretches of {across} scans"}
    return frame.finish(Launch((grid, 1, 1), (block, 1, 1), bytes_), "scan", notes)


def _where(
    e: FunctionEmitter, where: Constraint, otherwise: Sequence[SSAValue], values: Callable[[], Sequence[SSAValue]]
) -> list[SSAValue]:
    """`values` where the constraint holds."""
    return e.guarded(e.holds([where]), list(otherwise), values)


@dataclass(frozen=True, slots=True)
class _Plan:
    """``threads``, a power of two, share a scan, each takes ``elements`` of a tile; ``per_block`` scans a block."""

    threads: int
    elements: int
    per_block: int

    @staticmethod
    def of(form: ScanForm, target: Target) -> _Plan:
        elements = ELEMENTS if form.during >= LONG else 1
        parts = max(1, -(-form.during // elements))
        threads = min(1 << (parts - 1).bit_length(), BLOCK, target.threads_per_block)
        return _Plan(threads, elements, max(1, SHORT_BLOCK // threads))

    @property
    def block(self) -> int:
        return self.threads * self.per_block

    @property
    def warps(self) -> int:
        """Warps that share a scan."""
        return self.threads // WARP

    @property
    def tile(self) -> int:
        return self.threads * self.elements


class _Blocks:
    """A kernel of scans by blocks while it is made."""

    def __init__(self, form: ScanForm, plan: _Plan) -> None:
        self.form, self.frame, self.e, self.plan = form, form.frame, form.e, plan
        self.grid = -(-form.scans // plan.per_block)
        thread = self.e.variable(self.frame.thread_id(), 0, plan.block - 1)
        block = self.e.variable(self.frame.block_id(), 0, self.grid - 1)
        self.row, self.lane, wanted = self.e.simplify((
            thread // plan.threads, thread % plan.threads, block * plan.per_block + thread // plan.threads,
        ))  # fmt: skip
        #: threads without a scan do the last one, up to the storing: all must come to the barriers
        self.exists = [(wanted, 0, form.scans - 1)]
        self.scan = at_most(self.e, wanted, form.scans - 1)

    def emit(self) -> Kernel:
        form, plan, e, frame = self.form, self.plan, self.e, self.frame
        start = form.start()
        if form.before:
            frame.outputs = self._strided(form.before, start)
        tiles = -(-form.during // plan.tile)
        types = [v.type for v in start]
        shared: list[SSAValue] = []
        if plan.warps > 1:
            shared = [e.b.op(AllocateSharedOp, type=TensorType(t, [plan.per_block, plan.warps])) for t in types]
        carried = [*start, *shared, *frame.outputs]
        if form.during:
            frame.outputs = e.loop([tiles], carried, lambda v, c: self._tile(v[0], c))[len(start) + len(shared) :]
        notes = {"form": f"{plan.threads} threads a scan", "elements": str(plan.elements)}
        bytes_ = sum(s.byte_size for s in form.reducer.shapes) * plan.per_block * plan.warps if shared else 0
        return frame.finish(Launch((self.grid, 1, 1), (plan.block, 1, 1), bytes_), "scan", notes)

    def _strided(self, count: int, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The first `count` results are `values`."""
        form, threads = self.form, self.plan.threads

        def store(variables: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return form.store(values, tensors, variables[0] * threads + self.lane, self.scan)

        def inside(variables: Index) -> list[Constraint]:
            return [*self.exists, (variables[0] * threads + self.lane, 0, count - 1)]

        return self.e.loop([-(-count // threads)], self.frame.outputs, store, inside)

    def _tile(self, number: Expr, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The results of a tile: carries the running value, shared memory, outputs."""
        form, plan, n = self.form, self.plan, self.form.width
        running, rest = values[:n], values[n:]
        shared, outputs = (rest[:n], rest[n:]) if plan.warps > 1 else ([], rest)
        first = (number * plan.threads + self.lane) * plan.elements
        places = [first + k for k in range(plan.elements)]
        # past the end is the last element again: what comes of it is stored nowhere, and nothing comes after
        elements = [form.read(at_most(self.e, p, form.during - 1) + form.before, self.scan) for p in places]
        sums = [elements[0]]
        for element in elements[1:]:
            sums.append(form.join(sums[-1], element))
        inclusive = self._scan_warp(sums[-1])
        before, after = running, running
        if plan.warps > 1:
            before, after, shared = self._scan_warps(running, inclusive, shared)
        below = list(self.e.b.add(ShuffleUpOp(inclusive, 1)).results) if plan.threads > 1 else inclusive
        mine = _where(self.e, (self.lane % WARP, 1, WARP - 1), before, lambda: form.join(before, below))
        for place, part in zip(places, sums, strict=True):
            outputs = self._store(form.join(mine, part), outputs, place)
        return [*after, *shared, *outputs]

    def _scan_warp(self, total: Sequence[SSAValue]) -> list[SSAValue]:
        """The inclusive scan over the threads of this warp."""
        form, plan, found, distance = self.form, self.plan, list(total), 1
        while distance < min(plan.threads, WARP):
            below = self.e.b.add(ShuffleUpOp(found, distance)).results
            has_one = (self.lane % WARP, distance, WARP - 1)
            found = _where(self.e, has_one, found, lambda b=below, f=found: form.join(b, f))
            distance *= 2
        return found

    def _scan_warps(
        self, running: Sequence[SSAValue], inclusive: Sequence[SSAValue], shared: Sequence[SSAValue]
    ) -> tuple[list[SSAValue], list[SSAValue], list[SSAValue]]:
        """The value before this warp, that of the whole tile, and shared memory."""
        e, form, plan = self.e, self.form, self.plan
        warp, lane = e.simplify((self.lane // WARP, self.lane % WARP))

        def save(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return [self.frame.e.write(v, t, (self.row, warp)) for v, t in zip(inclusive, tensors, strict=True)]

        free = e.b.add(SyncThreadsOp(shared)).results  # all have read what the tile before left there
        saved = e.loop([], free, save, lambda _: [(lane, WARP - 1, WARP - 1)])
        ready: list[SSAValue] = list(e.b.add(SyncThreadsOp(saved)).results)
        before, after = list(running), list(running)
        for number in range(plan.warps):
            total = [self.frame.e.read(t, (self.row, Const(number))) for t in ready]
            after = form.join(after, total)
            if number < plan.warps - 1:
                before = _where(self.e, (warp, number + 1, plan.warps - 1), before, lambda a=after: a)
        return before, after, ready

    def _store(self, values: Sequence[SSAValue], outputs: Sequence[SSAValue], place: Expr) -> list[SSAValue]:
        form = self.form
        where = [*self.exists, (place, 0, form.during - 1)]
        return self.e.loop(
            [], outputs, lambda _, t: form.store(values, t, place + form.before, self.scan), lambda _: where
        )
