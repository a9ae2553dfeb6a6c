"""Sorting on the GPU: a bitonic network of compare-and-exchange steps, all of them ascending.

Stage s merges sorted runs of 2^s: its first step compares position p with its mirror image in the run of 2^(s+1) (p
xor 2^(s+1) - 1), the following ones positions 2^j apart. Positions past the end of a row count as larger than
everything, so a row may have any length. Steps within a tile of a row run in shared memory, all in one kernel, two
between barriers; of the wider steps of a stage, a kernel does a few one after another: a thread holds all elements they
compare with each other.
A row that is one tile takes one kernel, which may store just a part of what it sorted. Where that is its first
elements, short runs are sorted, and of each two the half that comes first is kept, until little is left.

Source: the form of the network XLA uses (xla/service/gpu/kernels, "sorting").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.fusion.sort import Kept
from heron.analysis.fusion.sort_tiles import TILE_BYTES, fits_tile, steps_together, tile_of
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental import Value
from heron.codegen.elemental.logic import select
from heron.codegen.emitters.base import Entry
from heron.codegen.emitters.loops import at_most, for_
from heron.codegen.emitters.sort.code import SortCode
from heron.codegen.ir.dialects.xla_gpu import AllocateSharedOp, SyncThreadsOp
from heron.codegen.ir.types import scalar_type
from heron.codegen.kernel import Kernel, Launch
from heron.errors import HeronError
from heron.targets import WARP, Target

#: threads that sort a tile at most: with registers for the elements each holds, a core has several such blocks
TILE_THREADS = 512
BLOCK = 256
#: how often runs are halved where only a part of a row is kept: what is left then is little
MOST_LEVELS = 4


def emit(sort: SortCode, name: str, target: Target) -> list[Kernel]:
    """The kernels in order; a step that is needed again is the same kernel again.

    Raises GEN134 where results are dropped and a row is several tiles: the outputs are where further steps work.
    """
    stages = max(sort.length - 1, 0).bit_length()
    if not sort.keeps_all and not fits_tile(sort.i):
        raise HeronError(
            "GEN134",
            f"a kernel that drops results of a sort of {sort.length} elements",
            where=str(sort.i),
            why="the sort needs several kernels, which work in the whole results",
            hint="sort in one instruction and slice in another",
        )
    tile_bits = max(0, min(stages, tile_of(sort.i).bit_length() - 1))
    kernels = [_tile_kernel(sort, f"{name}_runs" if stages > tile_bits else name, target, tile_bits, whole=True)]
    made: dict[str, Kernel] = {}

    def run(step: str, make: Callable[[str], Kernel]) -> None:
        if step not in made:
            made[step] = make(f"{name}_{step}")
        kernels.append(made[step])

    most = steps_together([o.shape.element_type.byte_size for o in sort.i.operands])
    for stage in range(tile_bits, stages):
        # groups of full size end at the tile's bits, so that other stages have the same
        first = (stage - tile_bits) % most + 1
        run(f"mirror{stage}", lambda n, j=stage, k=first: _step_kernel(sort, n, target, j, k, mirrored=True))
        for bit in range(stage - first, tile_bits - 1, -most):
            run(f"apart{bit}", lambda n, j=bit: _step_kernel(sort, n, target, j, most, mirrored=False))
        run(f"tile{tile_bits}", lambda n: _tile_kernel(sort, n, target, tile_bits, whole=False))
    return kernels


# -- steps over global memory ------------------------------------------------------------------------------------------


def _step_kernel(sort: SortCode, name: str, target: Target, bit: int, steps: int, mirrored: bool) -> Kernel:
    """The steps with positions that differ in `bit`, …, `bit - steps + 1` (mirrored: in the first, in all bits up to
    `bit`). A thread holds the 2^steps elements that these compare."""
    frame = sort.frame_in_place(name, target)
    e = frame.e
    half, low, count = 1 << bit, 1 << (bit - steps + 1), 1 << (steps - 1)
    groups = -(-sort.length // (2 * half)) * low
    threads = groups * sort.rows
    block = min(BLOCK, -(-threads // WARP) * WARP)
    grid = -(-threads // block)
    thread = e.variable(frame.block_id(), 0, grid - 1) * block + e.variable(frame.thread_id(), 0, block - 1)
    row, group = thread // groups, thread % groups
    base, offset = group // low * (2 * half), group % low
    above = low - 1 - offset if mirrored else offset
    places = [base + offset + k * low for k in range(count)]
    places += [base + half + above + k * low for k in range(count)]
    row, *places = e.simplify((row, *places))

    some: list[Constraint] = [(row, 0, sort.rows - 1), (places[0], 0, sort.length - 1)]

    def body(_: object, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        exists: list[list[Constraint]] = [[(p, 0, sort.length - 1)] for p in places]
        held = _Held(frame, sort, places, exists, sort.length, lambda p: sort.index(frame, row, p))
        return held.after_steps(steps, mirrored, tensors)

    frame.outputs[:] = e.loop([], frame.outputs, body, lambda _: some)
    form = f"{steps} steps, {half} apart" if steps > 1 else f"step {half} apart"
    return frame.finish(Launch((grid, 1, 1), (block, 1, 1)), "sort", {"form": form})


class _Held:
    """Elements at some places below ``end``, ascending but for mirrored ones, to be held in registers.

    Places whose ``exists`` does not hold have none; the first has one. ``index`` says where in the tensors a place is.
    """

    def __init__(
        self,
        frame: Entry,
        sort: SortCode,
        places: Sequence[Expr],
        exists: Sequence[list[Constraint]],
        end: int,
        index: Callable[[Expr], Index],
    ) -> None:
        self.frame, self.e, self.sort = frame, frame.e, sort
        self.places, self.exists, self.end, self.index = places, exists, end, index
        self.elements: list[list[Value]] = []

    def after_steps(self, steps: int, mirrored: bool, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """The tensors after the steps that compare these 2^steps elements."""
        self.elements = [self._loaded(n, tensors) for n in range(len(self.places))]
        count = len(self.places) // 2
        for n in range(steps):
            apart = count >> n
            for k in range(2 * count):
                if k & apart == 0:
                    self._exchange(k, 2 * count - 1 - k if mirrored and n == 0 else k + apart)
        return self._stored(tensors)

    def _loaded(self, n: int, tensors: Sequence[SSAValue]) -> list[Value]:
        """The elements at place `n`; where there are none those at place 0 stand in, and nothing is exchanged."""
        e, place = self.e, self.places[n]
        exists = e.holds(self.exists[n]) if n else None
        if exists is not None:
            own, first = e.index_values((place, self.places[0]))
            place = e.variable(e.b.select(exists, own, first), 0, self.end - 1)
        index = self.index(place)
        return [e.extract(t, index) for t in tensors]

    def _exchange(self, first: int, second: int) -> None:
        """Bring the elements at two places in order, if there is one at the second."""
        e, b = self.e, self.e.b
        one, two = self.elements[first], self.elements[second]
        swap = self.sort.before(self.frame, two, one)
        exists = e.holds(self.exists[second])
        if exists is not None:
            swap = b.op(arith.AndIOp, swap, exists)
        pairs = list(zip(one, two, strict=True))
        self.elements[first] = [select(e, swap, y, x) for x, y in pairs]
        self.elements[second] = [select(e, swap, x, y) for x, y in pairs]

    def _stored(self, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        result = list(tensors)
        for values, place, exists in zip(self.elements, self.places, self.exists, strict=True):
            index = self.index(place)

            def store(_: object, carried: Sequence[SSAValue], values=values, index=index) -> list[SSAValue]:  # type: ignore[no-untyped-def]
                return [self.e.insert(v, t, index) for v, t in zip(values, carried, strict=True)]

            result = self.e.loop([], result, store, lambda _, c=exists: c)
        return result


# -- many steps in shared memory --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tiles:
    """What a block of a tile kernel holds: ``together`` tiles of 2^bits positions, one after the other.

    Several where tiles are short rows; of longer rows, one of ``tiles`` in each. A slot is a place in shared memory.
    ``level``: how often runs of 2^``run`` positions were merged by twos into as long ones, the rest forgotten.
    """

    sort: SortCode
    bits: int
    together: int
    run: int = 0
    level: int = 0

    @staticmethod
    def of(sort: SortCode, bits: int, target: Target) -> _Tiles:
        """As many short rows as make a block of warps, while every core has a block."""
        together, each = 1, sum(o.shape.element_type.byte_size for o in sort.i.operands) << bits
        while sort.length <= 1 << bits and together << bits < 2 * BLOCK and 2 * together * each <= TILE_BYTES:
            if sort.rows < 2 * together * target.cores:
                break
            together *= 2
        return _Tiles(sort, bits, together)

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

    def place(self, frame: Entry, slot: Expr) -> tuple[Expr, Expr]:
        """The row and the position of a slot of this block; of merged runs, the positions of their first."""
        number = frame.e.variable(frame.block_id(), 0, self.grid - 1) * self.together + slot // (1 << self.left)
        inside = slot % (1 << self.left)
        if self.level:
            inside = inside // (1 << self.run) * (1 << self.run + self.level) + inside % (1 << self.run)
        start = number % self.tiles * (1 << self.bits)
        row, position = frame.e.simplify((number // self.tiles, start + inside))
        return row, position

    def exists(self, frame: Entry, slot: Expr) -> list[Constraint]:
        """What must hold for a slot to have an element."""
        row, position = self.place(frame, slot)
        return [(row, 0, self.sort.rows - 1), (position, 0, self.sort.length - 1)]


def _tile_kernel(sort: SortCode, name: str, target: Target, bits: int, whole: bool) -> Kernel:
    """Sorts each tile of 2^bits positions (`whole`) of the operands into the outputs, or does, in the outputs, only the
    steps of a wider stage that stay inside tiles."""
    frame = sort.frame(name, target) if whole else sort.frame_in_place(name, target)
    if not sort.rows or not sort.length:
        return frame.finish(Launch(), "sort", {"form": "nothing to sort"})
    e, b = frame.e, frame.e.b
    tiles = _Tiles.of(sort, bits, target)
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

    def save(kept: Sequence[int], first: Kept) -> None:
        """Store those outputs, which hold the same places."""

        def body(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            slot = variables[0] * block + thread
            row, position = ends.place(frame, slot)
            index = sort.index(frame, row, position - first.start)
            values = [e.extract(shared[sort.outputs[n].operand], (slot,)) for n in kept]
            return [e.insert(v, t, index) for v, t in zip(values, carried, strict=True)]

        def inside(variables: Index) -> list[Constraint]:
            slot = variables[0] * block + thread
            row, position = ends.place(frame, slot)
            window = (position, first.start, first.start + first.size - 1)
            return [(slot, 0, ends.slots - 1), (row, 0, sort.rows - 1), window]

        stored = e.loop([-(-ends.slots // block)], [frame.outputs[n] for n in kept], body, inside)
        for n, tensor in zip(kept, stored, strict=True):
            frame.outputs[n] = tensor

    shared = e.loop([rounds], shared, load, lambda v: tiles.exists(frame, v[0] * block + thread))
    steps = _Steps(frame, thread, block)
    shared = steps.do(tiles, ends.level, run, shared) if whole else steps.finish(tiles, tiles.bits, shared)
    windows = dict.fromkeys((k.start, k.size) for k in sort.outputs)
    for window in windows:
        same = [n for n, k in enumerate(sort.outputs) if (k.start, k.size) == window]
        save(same, sort.outputs[same[0]])
    bytes_ = tiles.slots * sum(t.byte_size for t in types)
    form = f"tiles of {1 << bits}" + (f", {tiles.together} a block" if tiles.together > 1 else "")
    return frame.finish(Launch((tiles.grid, 1, 1), (block, 1, 1), bytes_), "sort", {"form": form})


def _kept_bits(sort: SortCode) -> int:
    """Bits of the positions that are stored of a row, if those are its first; else of all its positions."""
    return (max(max(k.start + k.size for k in sort.outputs), 2) - 1).bit_length()


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of tiles in shared memory; a barrier before each round of steps and after the last.

    A round does two steps of a stage; the first round of a stage with an odd number of steps does one. So two stages
    follow each other in a loop.
    """

    frame: Entry
    thread: Expr
    block: int

    def do(self, tiles: _Tiles, levels: int, run: int, shared: Sequence[SSAValue]) -> list[SSAValue]:
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

    def finish(self, tiles: _Tiles, steps: int, shared: Sequence[SSAValue]) -> list[SSAValue]:
        """The last steps of a stage."""
        return self._end(self._plain_stage(tiles, steps, shared))

    def _end(self, shared: Sequence[SSAValue]) -> list[SSAValue]:
        return list(self.frame.e.b.add(SyncThreadsOp(shared)).results)

    def _stages(self, tiles: _Tiles, first: int, end: int, shared: Sequence[SSAValue]) -> list[SSAValue]:
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

    def _even(self, tiles: _Tiles, number: SSAValue, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """Stage 2 * number."""
        bit = self.frame.e.b.op(arith.AddiOp, number, number)
        return self._plain(tiles, number, self._round(tiles, bit, tensors, 1, mirrored=True))

    def _odd(self, tiles: _Tiles, number: SSAValue, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """Stage 2 * number + 1."""
        b = self.frame.e.b
        bit = b.op(arith.AddiOp, b.op(arith.AddiOp, number, number), b.integer(1))
        return self._plain(tiles, number, self._round(tiles, bit, tensors, 2, mirrored=True))

    def _plain_stage(self, tiles: _Tiles, steps: int, shared: Sequence[SSAValue]) -> list[SSAValue]:
        """So many steps, none of them mirrored."""
        b = self.frame.e.b
        if steps % 2:
            shared = self._round(tiles, b.integer(steps - 1), shared, 1, mirrored=False)
        return self._plain(tiles, b.integer(steps // 2), shared)

    def _plain(self, tiles: _Tiles, rounds: SSAValue, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """The last 2 * rounds steps of a stage."""
        b = self.frame.e.b

        def two(count: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            left = b.op(arith.SubiOp, rounds, count)
            bit = b.op(arith.SubiOp, b.op(arith.AddiOp, left, left), b.integer(1))
            return self._round(tiles, bit, carried, 2, mirrored=False)

        return for_(self.frame, b.integer(0), rounds, tensors, two)

    def _round(
        self, tiles: _Tiles, bit: SSAValue, tensors: Sequence[SSAValue], steps: int, mirrored: bool
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

    def _halve(self, tiles: _Tiles, shared: Sequence[SSAValue]) -> list[SSAValue]:
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

    def _or_first(self, tiles: _Tiles, exists: SSAValue | None, slot: Expr) -> Expr:
        e = self.frame.e
        (slot,) = e.simplify((slot,))
        if exists is None:
            return slot
        return e.variable(e.b.select(exists, e.index_value(slot), e.b.integer(0)), 0, tiles.slots - 1)


def _tile_step(
    frame: Entry,
    tiles: _Tiles,
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
        held = _Held(frame, tiles.sort, slots, exists, tiles.slots, lambda slot: (slot,))
        return held.after_steps(steps, mirrored, tensors)

    return e.loop([], shared, body, lambda _: exists[0])
