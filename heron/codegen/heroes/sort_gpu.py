"""Sorting on the GPU: a bitonic network of compare-and-exchange steps, all of them ascending.

Stage s merges sorted runs of 2^s: its first step compares position p with its mirror image in the run of 2^(s+1) (p
xor 2^(s+1) - 1), the following ones positions 2^j apart. Positions past the end of a row count as larger than
everything, so a row may have any length. Steps within a tile of a row run in shared memory, many in one kernel; of the
wider steps of a stage, a kernel does a few one after another: a thread holds all elements they compare with each other.
A row that is one tile takes one kernel, which may store just a part of what it sorted.

Source: the form of the network XLA uses (xla/service/gpu/kernels, "sorting").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.analysis.sort_tiles import TILE_BYTES, fits_tile, tile_of
from heron.codegen.dialects.xla_gpu import AllocateSharedOp, SyncThreadsOp
from heron.codegen.elemental import Value
from heron.codegen.elemental.logic import select
from heron.codegen.heroes.base import Entry
from heron.codegen.heroes.iteration import for_
from heron.codegen.heroes.sort import Kept, Sort, when
from heron.codegen.kernel import Kernel, Launch
from heron.codegen.mlir_types import scalar_type
from heron.errors import HeronError
from heron.targets import Target

TILE_THREADS = 1024
BLOCK = 256
#: registers for the elements a thread holds while it does several steps, and how many steps that are at most
HELD_WORDS = 32
MOST_STEPS = 4


def emit(sort: Sort, name: str, target: Target) -> list[Kernel]:
    """The kernels in order; a step that is needed again is the same kernel again.

    Raises GEN134 where results are dropped and a row is several tiles: the outputs are where further steps work.
    """
    stages = max(sort.length - 1, 0).bit_length()
    if not sort.keeps_all and not fits_tile(sort.i):
        raise HeronError(
            "GEN134",
            f"a kernel that drops results of a sort of {sort.length} elements",
            where=str(sort.i),
            why="it takes several kernels, which work in the whole results",
            hint="sort in one instruction and slice in another",
        )
    tile_bits = max(0, min(stages, tile_of(sort.i).bit_length() - 1))
    kernels = [_tile_kernel(sort, f"{name}_runs" if stages > tile_bits else name, target, tile_bits, whole=True)]
    made: dict[str, Kernel] = {}

    def run(step: str, make: Callable[[str], Kernel]) -> None:
        if step not in made:
            made[step] = make(f"{name}_{step}")
        kernels.append(made[step])

    most = _steps_together(sort)
    for stage in range(tile_bits, stages):
        # groups of full size end at the tile's bits, so that other stages have the same
        first = (stage - tile_bits) % most + 1
        run(f"mirror{stage}", lambda n, j=stage, k=first: _step_kernel(sort, n, target, j, k, mirrored=True))
        for bit in range(stage - first, tile_bits - 1, -most):
            run(f"apart{bit}", lambda n, j=bit: _step_kernel(sort, n, target, j, most, mirrored=False))
        run(f"tile{tile_bits}", lambda n: _tile_kernel(sort, n, target, tile_bits, whole=False))
    return kernels


def _steps_together(sort: Sort) -> int:
    """How many steps a thread does with the elements it holds."""
    words = sum(max(1, o.shape.element_type.byte_size // 4) for o in sort.i.operands)
    return min(MOST_STEPS, max(1, (HELD_WORDS // words).bit_length() - 1))


# -- steps over global memory ------------------------------------------------------------------------------------------


def _step_kernel(sort: Sort, name: str, target: Target, bit: int, steps: int, mirrored: bool) -> Kernel:
    """The steps with positions that differ in `bit`, …, `bit - steps + 1` (mirrored: in the first, in all bits up to
    `bit`). A thread holds the 2^steps elements that these compare."""
    frame = sort.frame_in_place(name, target)
    e = frame.e
    half, low, count = 1 << bit, 1 << (bit - steps + 1), 1 << (steps - 1)
    groups = -(-sort.length // (2 * half)) * low
    threads = groups * sort.rows
    block = min(BLOCK, -(-threads // target.warp) * target.warp)
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
        held = _Held(frame, sort, row, places, tensors)
        for n in range(steps):
            apart = count >> n
            for k in range(2 * count):
                other = 2 * count - 1 - k if mirrored and n == 0 else k + apart
                if k & apart == 0:
                    held.exchange(k, other)
        return held.stored(tensors)

    frame.outputs[:] = e.loop([], frame.outputs, body, lambda _: some)
    form = f"{steps} steps, {half} apart" if steps > 1 else f"step {half} apart"
    return frame.finish(Launch((grid, 1, 1), (block, 1, 1)), "sort", {"form": form})


class _Held:
    """Elements of a row at some places, ascending but for mirrored ones, in registers."""

    def __init__(
        self, frame: Entry, sort: Sort, row: Expr, places: Sequence[Expr], tensors: Sequence[SSAValue]
    ) -> None:
        self.frame, self.e, self.sort = frame, frame.e, sort
        self.places = places
        self.indices = [sort.index(frame, row, p) for p in places]
        self.exists: list[list[Constraint]] = [[(p, 0, sort.length - 1)] for p in places]
        self.elements = [self._loaded(row, n, tensors) for n in range(len(places))]

    def _loaded(self, row: Expr, n: int, tensors: Sequence[SSAValue]) -> list[Value]:
        """The elements at place `n`; where it is past the end those of place 0 stand in, and nothing is exchanged."""
        e, place = self.e, self.places[n]
        exists = e.holds(self.exists[n])
        if exists is not None:
            own, first = e.index_values((place, self.places[0]))
            place = e.variable(e.b.select(exists, own, first), 0, self.sort.length - 1)
        index = self.sort.index(self.frame, row, place)
        return [e.extract(t, index) for t in tensors]

    def exchange(self, first: int, second: int) -> None:
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

    def stored(self, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """The tensors with the elements at their places."""
        result = list(tensors)
        for values, index, exists in zip(self.elements, self.indices, self.exists, strict=True):

            def store(_: object, carried: Sequence[SSAValue], values=values, index=index) -> list[SSAValue]:  # type: ignore[no-untyped-def]
                return [self.e.insert(v, t, index) for v, t in zip(values, carried, strict=True)]

            result = self.e.loop([], result, store, lambda _, c=exists: c)
        return result


# -- many steps in shared memory --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tiles:
    """What a block of a tile kernel holds: ``together`` tiles of 2^bits positions, one after the other.

    Several where tiles are short rows; of longer rows, one of ``tiles`` in each. A slot is a place in shared memory.
    """

    sort: Sort
    bits: int
    together: int

    @staticmethod
    def of(sort: Sort, bits: int, target: Target) -> _Tiles:
        """As many short rows as make a block of warps, while every core has a block."""
        together, each = 1, sum(o.shape.element_type.byte_size for o in sort.i.operands) << bits
        while sort.length <= 1 << bits and together << bits < 2 * BLOCK and 2 * together * each <= TILE_BYTES:
            if sort.rows < 2 * together * target.cores:
                break
            together *= 2
        return _Tiles(sort, bits, together)

    @property
    def slots(self) -> int:
        return self.together << self.bits

    @property
    def tiles(self) -> int:
        return -(-self.sort.length // (1 << self.bits))

    @property
    def grid(self) -> int:
        return -(-self.tiles * self.sort.rows // self.together)

    def place(self, frame: Entry, slot: Expr) -> tuple[Expr, Expr]:
        """The row and the position of a slot of this block."""
        number = frame.e.variable(frame.block_id(), 0, self.grid - 1) * self.together + slot // (1 << self.bits)
        start = number % self.tiles * (1 << self.bits)
        row, position = frame.e.simplify((number // self.tiles, start + slot % (1 << self.bits)))
        return row, position

    def exists(self, frame: Entry, slot: Expr) -> list[Constraint]:
        """What must hold for a slot to have an element."""
        row, position = self.place(frame, slot)
        return [(row, 0, self.sort.rows - 1), (position, 0, self.sort.length - 1)]


def _tile_kernel(sort: Sort, name: str, target: Target, bits: int, whole: bool) -> Kernel:
    """Sorts each tile of 2^bits positions (`whole`) of the operands into the outputs, or does, in the outputs, only the
    steps of a wider stage that stay inside tiles."""
    frame = sort.frame(name, target) if whole else sort.frame_in_place(name, target)
    if not sort.rows or not sort.length:
        return frame.finish(Launch(), "sort", {"form": "nothing to sort"})
    e, b = frame.e, frame.e.b
    tiles = _Tiles.of(sort, bits, target)
    block = max(1, min(tiles.slots // 2, TILE_THREADS, target.threads_per_block))
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
            row, position = tiles.place(frame, slot)
            index = sort.index(frame, row, position - first.start)
            values = [e.extract(shared[sort.outputs[n].operand], (slot,)) for n in kept]
            return [e.insert(v, t, index) for v, t in zip(values, carried, strict=True)]

        def inside(variables: Index) -> list[Constraint]:
            row, position = tiles.place(frame, variables[0] * block + thread)
            return [(row, 0, sort.rows - 1), (position, first.start, first.start + first.size - 1)]

        stored = e.loop([rounds], [frame.outputs[n] for n in kept], body, inside)
        for n, tensor in zip(kept, stored, strict=True):
            frame.outputs[n] = tensor

    shared = e.loop([rounds], shared, load, lambda v: tiles.exists(frame, v[0] * block + thread))
    shared = _steps(frame, tiles, shared, thread, block, whole)
    windows = dict.fromkeys((k.start, k.size) for k in sort.outputs)
    for window in windows:
        same = [n for n, k in enumerate(sort.outputs) if (k.start, k.size) == window]
        save(same, sort.outputs[same[0]])
    bytes_ = tiles.slots * sum(t.byte_size for t in types)
    form = f"tiles of {1 << bits}" + (f", {tiles.together} a block" if tiles.together > 1 else "")
    return frame.finish(Launch((tiles.grid, 1, 1), (block, 1, 1), bytes_), "sort", {"form": form})


def _steps(
    frame: Entry, tiles: _Tiles, shared: Sequence[SSAValue], thread: Expr, block: int, whole: bool
) -> list[SSAValue]:
    """All stages of a tile, or the plain steps of one; a barrier before each step and after the last."""
    b = frame.e.b
    one, last = b.integer(1), b.integer(tiles.bits - 1)
    rounds = max(1, tiles.slots // 2 // block)

    def step_with(bit: SSAValue, tensors: Sequence[SSAValue], mirrored: bool) -> list[SSAValue]:
        """The step with positions differing in `bit`, by all threads; each does some pairs."""

        def pair(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            number = frame.e.index_value(frame.e.simplify((variables[0] * block + thread,))[0])
            return _tile_step(frame, tiles, carried, number, bit, mirrored)

        return frame.e.loop([rounds], b.add(SyncThreadsOp(tensors)).results, pair)

    def plain_steps(highest: SSAValue, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """Steps with bit highest, …, 0."""

        def step(count: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            return step_with(b.op(arith.SubiOp, highest, count), carried, mirrored=False)

        return for_(frame, b.integer(0), b.op(arith.AddiOp, highest, one), tensors, step)

    def stage(number: SSAValue, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        mirrored = step_with(number, tensors, mirrored=True)
        return plain_steps(b.op(arith.SubiOp, number, one), mirrored)

    if whole:
        shared = for_(frame, b.integer(0), b.integer(tiles.bits), shared, stage)
    else:
        shared = plain_steps(last, shared)
    return list(b.add(SyncThreadsOp(shared)).results)


def _tile_step(
    frame: Entry, tiles: _Tiles, shared: Sequence[SSAValue], number: SSAValue, bit: SSAValue, mirrored: bool
) -> list[SSAValue]:
    """One pair of the step with positions differing in `bit`, known only when the kernel runs."""
    e, b = frame.e, frame.e.b
    half = b.op(arith.ShLIOp, b.integer(1), bit)
    low = b.op(arith.AndIOp, number, b.op(arith.SubiOp, half, b.integer(1)))
    base = b.op(arith.SubiOp, number, low)
    base = b.op(arith.AddiOp, base, base)
    first = b.op(arith.AddiOp, base, low)
    if mirrored:
        end = b.op(arith.AddiOp, base, b.op(arith.SubiOp, b.op(arith.AddiOp, half, half), b.integer(1)))
        second = b.op(arith.SubiOp, end, low)
    else:
        second = b.op(arith.AddiOp, first, half)
    slots = [e.variable(first, 0, tiles.slots - 1), e.variable(second, 0, tiles.slots - 1)]

    def body(_: object, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        return _exchange(frame, tiles.sort, tensors, (slots[0],), (slots[1],))

    return e.loop([], shared, body, lambda _: tiles.exists(frame, slots[1]))


def _exchange(
    frame: Entry, sort: Sort, tensors: Sequence[SSAValue], first: tuple[Expr, ...], second: tuple[Expr, ...]
) -> list[SSAValue]:
    """The tensors with the elements at the two places in order."""
    e = frame.e
    a: list[Value] = [e.extract(t, first) for t in tensors]
    b: list[Value] = [e.extract(t, second) for t in tensors]

    def swap() -> list[SSAValue]:
        half = [e.insert(v, t, first) for v, t in zip(b, tensors, strict=True)]
        return [e.insert(v, t, second) for v, t in zip(a, half, strict=True)]

    return when(frame, sort.before(frame, b, a), tensors, swap)
