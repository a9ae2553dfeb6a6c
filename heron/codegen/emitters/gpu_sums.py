"""Walks of a block's threads over rows, and the combination of their partial results, for GPU reductions.

Partial results go through shuffles within a warp, then through shared memory, in one order whatever order the warps run
in: same inputs, same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental.reducer import Reducer
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.reducers import split
from heron.codegen.ir.dialects.xla_gpu import AllocateSharedOp, ShuffleFirstOp, ShuffleReduceOp, SyncThreadsOp
from heron.records import dataclass
from heron.targets import WARP


def rounds(
    frame: Frame,
    parts: int,
    threads: int,
    lane: Expr,
    vector: int,
    exists: Sequence[Constraint],
    inits: Sequence[SSAValue],
    element: Callable[[Expr, Expr, Sequence[SSAValue]], Sequence[SSAValue]],
) -> list[SSAValue]:
    """The threads' walk over `parts` vectors of a row; `peel-loops` takes the bounds check out of whole rounds."""
    count = -(-parts // threads)

    def inside(variables: Index) -> list[Constraint]:
        return [*exists, *([(variables[0] * threads + lane, 0, parts - 1)] if parts % threads else [])]

    def body(variables: Index, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return element(variables[0], variables[1], carried)

    return frame.e.loop([count, vector], inits, body, inside)


def sync(frame: Frame, tensors: Sequence[SSAValue]) -> list[SSAValue]:
    """Shared `tensors` as they are once every thread of the block is here."""
    return list(frame.e.b.add(SyncThreadsOp(tensors)).results)


def accumulator_bytes(reducers: Sequence[Reducer]) -> int:
    """Bytes of one partial result of all reducers."""
    return sum(t.byte_size for r in reducers for t in r.types)


@dataclass(frozen=True, slots=True)
class PartialSums:
    """Partial results of reducers that are combined together; ``combiners``: the functions that merge two of each."""

    frame: Frame
    reducers: tuple[Reducer, ...]
    combiners: tuple[str, ...]

    @staticmethod
    def of(frame: Frame, reducers: Sequence[Reducer], number: int) -> PartialSums:
        """Adds the combiners to the kernel; `number` tells them from those of the kernel's other reductions."""
        name = f"{frame.name}_combine_{number}"
        combiners = tuple(r.combiner(frame.e, f"{name}_{n}") for n, r in enumerate(reducers))
        return PartialSums(frame, tuple(reducers), combiners)

    def in_warp(self, values: Sequence[SSAValue], lanes: int) -> list[SSAValue]:
        """Partial results of `lanes` neighbouring threads combined; the first of them has the whole."""
        if lanes == 1:
            return list(values)
        sums: list[SSAValue] = []
        for symbol, part in zip(self.combiners, split(self.reducers, values), strict=True):
            sums += self.frame.e.b.add(ShuffleReduceOp(symbol, part, lanes // 2)).results
        return sums

    def in_block(self, values: Sequence[SSAValue], thread: Expr, threads: int, rows: int) -> list[SSAValue]:
        """The sums of the warps of each of `rows` rows combined; the row's first thread has the whole."""
        e, warps = self.frame.e, threads // WARP
        row, in_row = e.simplify((thread // threads, thread % threads))
        ready = self._through_shared(values, thread, threads, rows)
        start = [v for r in self.reducers for v in r.start(e)]

        def read(_: Index, __: Sequence[SSAValue]) -> list[SSAValue]:
            return [self.frame.e.read(t, (row, in_row)) for t in ready]

        partial = e.loop([], start, read, lambda _: [(in_row, 0, warps - 1)])
        return self.in_warp(partial, warps)

    def for_all(self, values: Sequence[SSAValue], thread: Expr, threads: int, rows: int) -> list[SSAValue]:
        """Partial results of the `threads` threads of each of `rows` rows combined; all of them have the whole."""
        lanes = min(threads, WARP)
        values = self.in_warp(values, lanes)
        if threads > WARP:
            e, warps = self.frame.e, threads // WARP
            row, part = e.simplify((thread // threads, thread % warps))
            ready = self._through_shared(values, thread, threads, rows)
            values = self.in_warp([self.frame.e.read(t, (row, part)) for t in ready], warps)
        if lanes == 1:
            return list(values)
        return list(self.frame.e.b.add(ShuffleFirstOp(values, lanes)).results)

    def _through_shared(self, values: Sequence[SSAValue], thread: Expr, threads: int, rows: int) -> list[SSAValue]:
        """Shared arrays `[row, warp]` of what the first lane of each warp has."""
        e, warps = self.frame.e, threads // WARP
        row, warp, lane = e.simplify((thread // threads, thread % threads // WARP, thread % WARP))
        shared = [e.b.op(AllocateSharedOp, type=TensorType(v.type, [rows, warps])) for v in values]

        def save(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return [self.frame.e.write(v, t, (row, warp)) for v, t in zip(values, tensors, strict=True)]

        return sync(self.frame, e.loop([], shared, save, lambda _: [(lane, 0, 0)]))
