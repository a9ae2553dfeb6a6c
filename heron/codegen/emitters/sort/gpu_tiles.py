"""Many steps of a bitonic sort in the shared memory of a block, which holds tiles of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.fusion.sort_tiles import TILE_BYTES
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental import Value
from heron.codegen.elemental.logic import select
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import at_most, for_
from heron.codegen.emitters.sort.code import SortCode
from heron.codegen.emitters.sort.gpu_held import Held
from heron.codegen.ir.dialects.xla_gpu import AllocateSharedOp, SyncThreadsOp
from heron.codegen.ir.types import scalar_type
from heron.codegen.kernel import Kernel, Launch
from heron.records import dataclass
from heron.targets import Target

#: threads that sort a tile at most: with registers for the elements each holds, a core has several such blocks
TILE_THREADS = 512
#: threads of a block that does steps in global memory
BLOCK = 256
#: how often runs are halved where only a part of a row is kept: few elements are left then
MOST_LEVELS = 4


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of a block of a tile kernel: ``together`` tiles of 2^bits positions, one after the other.

    Several where tiles are short rows; of longer rows, one of ``tiles`` in each. A slot is a place in shared memory.
    ``level``: how often runs of 2^``run`` positions were merged by twos into as long ones, the rest forgotten.
    """

    sort: SortCode
    bits: int
    together: int
    run: int = 0
    level: int = 0

    @staticmethod
    def of(sort: SortCode, bits: int, target: Target) -> Tiles:
        """As many short rows as make a block of warps, while every core has a block."""
        together, each = 1, sum(o.shape.element_type.byte_size for o in sort.i.operands) << bits
        while sort.length <= 1 << bits and together << bits < 2 * BLOCK and 2 * together * each <= TILE_BYTES:
            if sort.rows < 2 * together * target.cores:
                break
            together *= 2
        return Tiles(sort, bits, together)

    @property
    def slots(self) -> int:
        return self.together << self.left

    @property
    def left(self) -> int:
        """Bits of the positions of a tile that there are slots for."""
        return self.bits - self.level

    @property
    def tiles(self) -> int:
        return -(-self.sort.length // (1 << self.bits))

    @property
    def grid(self) -> int:
        return -(-self.tiles * self.sort.rows // self.together)

    def place(self, frame: Frame, slot: Expr) -> tuple[Expr, Expr]:
        """The row and the position of a slot of this block; of merged runs, the positions of their first."""
        number = frame.e.variable(frame.block_id(), 0, self.grid - 1) * self.together + slot // (1 << self.left)
        inside = slot % (1 << self.left)
        if self.level:
            inside = inside // (1 << self.run) * (1 << self.run + self.level) + inside % (1 << self.run)
        start = number % self.tiles * (1 << self.bits)
        row, position = frame.e.simplify((number // self.tiles, start + inside))
        return row, position

    def exists(self, frame: Frame, slot: Expr) -> list[Constraint]:
        """The condition that a slot has an element."""
        row, position = self.place(frame, slot)
        return [(row, 0, self.sort.rows - 1), (position, 0, self.sort.length - 1)]


def tile_kernel(frame: Frame, sort: SortCode, bits: int, whole: bool) -> Kernel:
    """Sorts each tile of 2^bits positions (`whole`) of the operands into the outputs, or does, in the outputs, only the
    steps of a wider stage that stay inside tiles."""
    target = frame.target
    if not sort.rows or not sort.length:
        return frame.finish(Launch(), "sort", {"form": "nothing to sort"})
    e, b = frame.e, frame.e.b
    tiles = Tiles.of(sort, bits, target)
    run = _kept_bits(sort) if whole else bits
    ends = replace(tiles, run=run, level=max(0, min(MOST_LEVELS, bits - run)))
    block = max(1, min(tiles.slots // 4, TILE_THREADS, target.threads_per_block))
    rounds = tiles.slots // block
    thread = e.variable(frame.thread_id(), 0, block - 1)
    types = [o.shape.element_type for o in sort.i.operands]
    shared = [b.op(AllocateSharedOp, type=TensorType(scalar_type(t), [tiles.slots])) for t in types]

    def load(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        slot = variables[0] * block + thread
        index = sort.index(frame, *tiles.place(frame, slot))
        if whole:
            values = [e.value(o, index) for o in sort.i.operands]
        else:
            values = [e.extract(t, index) for t in frame.outputs]
        return [e.insert(v, s, (slot,)) for v, s in zip(values, carried, strict=True)]

    shared = e.loop([rounds], shared, load, lambda v: tiles.exists(frame, v[0] * block + thread))
    steps = _Steps(frame, thread, block)
    shared = steps.do(tiles, ends.level, run, shared) if whole else steps.finish(tiles, tiles.bits, shared)
    _save(frame, ends, shared, thread, block)
    bytes_ = tiles.slots * sum(t.byte_size for t in types)
    form = f"tiles of {1 << bits}" + (f", {tiles.together} a block" if tiles.together > 1 else "")
    return frame.finish(Launch((tiles.grid, 1, 1), (block, 1, 1), bytes_), "sort", {"form": form})


def _save(frame: Frame, tiles: Tiles, shared: Sequence[SSAValue], thread: Expr, block: int) -> None:
    """Store the outputs, those that hold the same places together."""
    sort = tiles.sort
    for start, size in dict.fromkeys((k.start, k.size) for k in sort.outputs):
        same = [n for n, k in enumerate(sort.outputs) if (k.start, k.size) == (start, size)]
        stored = _saved(frame, tiles, [shared[sort.outputs[n].operand] for n in same], same, thread, block)
        for n, tensor in zip(same, stored, strict=True):
            frame.outputs[n] = tensor


def _saved(
    frame: Frame, tiles: Tiles, shared: Sequence[SSAValue], outputs: Sequence[int], thread: Expr, block: int
) -> list[SSAValue]:
    """Outputs of equal places with what tiles have sorted."""
    e, sort, first = frame.e, tiles.sort, tiles.sort.outputs[outputs[0]]

    def body(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        slot = variables[0] * block + thread
        row, position = tiles.place(frame, slot)
        index = sort.index(frame, row, position - first.start)
        values = [e.extract(s, (slot,)) for s in shared]
        return [e.insert(v, t, index) for v, t in zip(values, carried, strict=True)]

    def inside(variables: Index) -> list[Constraint]:
        slot = variables[0] * block + thread
        row, position = tiles.place(frame, slot)
        window = (position, first.start, first.start + first.size - 1)
        return [(slot, 0, tiles.slots - 1), (row, 0, sort.rows - 1), window]

    return e.loop([-(-tiles.slots // block)], [frame.outputs[n] for n in outputs], body, inside)


def _kept_bits(sort: SortCode) -> int:
    """Bits of the positions that are stored of a row, if those are its first; else of all its positions."""
    return (max(max(k.start + k.size for k in sort.outputs), 2) - 1).bit_length()


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of tiles in shared memory; a barrier before each round of steps and after the last.

    A round does two steps of a stage; the first round of a stage with an odd number of steps does one. So two stages
    follow each other in a loop.
    """

    frame: Frame
    thread: Expr
    block: int

    def do(self, tiles: Tiles, levels: int, run: int, shared: Sequence[SSAValue]) -> list[SSAValue]:
        """All stages of tiles. Where no more than 2^`run` elements are wanted of each, runs as long are sorted; then,
        `levels` times, of each two the half that comes first is kept."""
        if not levels:
            return self._end(self._stages(tiles, 0, tiles.bits, shared))
        shared = self._stages(tiles, 0, run, shared)
        for level in range(levels):
            shared = self._halve(replace(tiles, run=run, level=level), shared)
            tiles = replace(tiles, run=run, level=level + 1)
            shared = self._plain_stage(tiles, run, shared)
        return self._end(self._stages(tiles, run, tiles.left, shared))

    def finish(self, tiles: Tiles, steps: int, shared: Sequence[SSAValue]) -> list[SSAValue]:
        """The last steps of a stage."""
        return self._end(self._plain_stage(tiles, steps, shared))

    def _end(self, shared: Sequence[SSAValue]) -> list[SSAValue]:
        return list(self.frame.e.b.add(SyncThreadsOp(shared)).results)

    def _stages(self, tiles: Tiles, first: int, end: int, shared: Sequence[SSAValue]) -> list[SSAValue]:
        """Stages `first` to `end` - 1."""
        b, shared = self.frame.e.b, list(shared)
        if first % 2 and first < end:
            shared = self._odd(tiles, b.integer(first // 2), shared)
        numbers = -(-first // 2), end // 2
        if numbers[0] < numbers[1]:
            lo, hi = map(b.integer, numbers)
            shared = for_(self.frame, lo, hi, shared, lambda n, t: self._odd(tiles, n, self._even(tiles, n, t)))
        if end % 2 and first < end:
            shared = self._even(tiles, b.integer(end // 2), shared)
        return shared

    def _even(self, tiles: Tiles, number: SSAValue, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """Stage 2 * number."""
        bit = self.frame.e.b.op(arith.AddiOp, number, number)
        return self._plain(tiles, number, self._round(tiles, bit, tensors, 1, mirrored=True))

    def _odd(self, tiles: Tiles, number: SSAValue, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """Stage 2 * number + 1."""
        b = self.frame.e.b
        bit = b.op(arith.AddiOp, b.op(arith.AddiOp, number, number), b.integer(1))
        return self._plain(tiles, number, self._round(tiles, bit, tensors, 2, mirrored=True))

    def _plain_stage(self, tiles: Tiles, steps: int, shared: Sequence[SSAValue]) -> list[SSAValue]:
        """So many steps, none of them mirrored."""
        b = self.frame.e.b
        if steps % 2:
            shared = self._round(tiles, b.integer(steps - 1), shared, 1, mirrored=False)
        return self._plain(tiles, b.integer(steps // 2), shared)

    def _plain(self, tiles: Tiles, rounds: SSAValue, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """The last 2 * rounds steps of a stage."""
        b = self.frame.e.b

        def two(count: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            left = b.op(arith.SubiOp, rounds, count)
            bit = b.op(arith.SubiOp, b.op(arith.AddiOp, left, left), b.integer(1))
            return self._round(tiles, bit, carried, 2, mirrored=False)

        return for_(self.frame, b.integer(0), rounds, tensors, two)

    def _round(
        self, tiles: Tiles, bit: SSAValue, tensors: Sequence[SSAValue], steps: int, mirrored: bool
    ) -> list[SSAValue]:
        """The steps with positions differing in `bit` and, of two, in the bit below."""
        e, groups = self.frame.e, max(1, tiles.slots >> steps)

        def group(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            number = e.index_value(e.simplify((variables[0] * self.block + self.thread,))[0])
            return _tile_step(self.frame, tiles, carried, number, bit, steps, mirrored)

        ready = e.b.add(SyncThreadsOp(tensors)).results
        return e.loop(
            [-(-groups // self.block)], ready, group, lambda v: [(v[0] * self.block + self.thread, 0, groups - 1)]
        )

    def _halve(self, tiles: Tiles, shared: Sequence[SSAValue]) -> list[SSAValue]:
        """Of two neighbouring sorted runs the half that comes first, in an order of which a merge makes a sorted one;
        halves move together, after all were read."""
        e, b, frame = self.frame.e, self.frame.e.b, self.frame
        run, count = 1 << tiles.run, tiles.slots // 2
        numbers = [k * self.block + self.thread for k in range(-(-count // self.block))]
        ready = b.add(SyncThreadsOp(shared)).results
        kept: list[list[Value]] = []
        for number in numbers:
            (inside,) = e.simplify((at_most(e, number, count - 1),))
            one = inside // run * (2 * run) + inside % run
            two = inside // run * (2 * run) + (2 * run - 1) - inside % run
            exists = e.holds(tiles.exists(frame, two))
            # where there is none the block's first element stands in, and nothing is exchanged
            places = [self._or_first(tiles, e.holds(tiles.exists(frame, one)), one), self._or_first(tiles, exists, two)]
            first, second = ([e.extract(t, (s,)) for t in ready] for s in places)
            swap = tiles.sort.before(frame, second, first)
            if exists is not None:
                swap = b.op(arith.AndIOp, swap, exists)
            kept.append([select(e, swap, y, x) for x, y in zip(first, second, strict=True)])
        shared = list(b.add(SyncThreadsOp(ready)).results)
        for number, values in zip(numbers, kept, strict=True):

            def store(_: Index, tensors: Sequence[SSAValue], number=number, values=values) -> list[SSAValue]:  # type: ignore[no-untyped-def]
                return [e.insert(v, t, e.simplify((number,))) for v, t in zip(values, tensors, strict=True)]

            shared = e.loop([], shared, store, lambda _, n=number: [(n, 0, count - 1)])
        return shared

    def _or_first(self, tiles: Tiles, exists: SSAValue | None, slot: Expr) -> Expr:
        e = self.frame.e
        (slot,) = e.simplify((slot,))
        if exists is None:
            return slot
        return e.variable(e.b.select(exists, e.index_value(slot), e.b.integer(0)), 0, tiles.slots - 1)


def _tile_step(
    frame: Frame,
    tiles: Tiles,
    shared: Sequence[SSAValue],
    number: SSAValue,
    bit: SSAValue,
    steps: int,
    mirrored: bool,
) -> list[SSAValue]:
    """One group of the steps with positions differing in `bit`, …, known only when the kernel runs."""
    e, b = frame.e, frame.e.b
    one, count = b.integer(1), 1 << (steps - 1)
    apart = b.op(arith.ShLIOp, one, bit if steps == 1 else b.op(arith.SubiOp, bit, one))
    offset = b.op(arith.AndIOp, number, b.op(arith.SubiOp, apart, one))
    base = b.op(arith.MuliOp, b.op(arith.SubiOp, number, offset), b.integer(2 * count))
    above = b.op(arith.SubiOp, b.op(arith.SubiOp, apart, one), offset) if mirrored else offset
    slots: list[Expr] = []
    for k in range(2 * count):
        at = b.op(arith.AddiOp, base, offset if k < count else above)
        if k:
            at = b.op(arith.AddiOp, at, b.op(arith.MuliOp, apart, b.integer(k)))
        slots.append(e.variable(at, 0, tiles.slots - 1))
    exists = [tiles.exists(frame, slot) for slot in slots]

    def body(_: object, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        held = Held(frame, tiles.sort, slots, exists, tiles.slots, lambda slot: (slot,))
        return held.after_steps(steps, mirrored, tensors)

    return e.loop([], shared, body, lambda _: exists[0])
