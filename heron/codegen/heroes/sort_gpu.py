"""Sorting on the GPU: a bitonic network of compare-and-exchange steps, all of them ascending.

Stage s merges sorted runs of 2^s: its first step compares position p with its mirror image in the run of 2^(s+1) (p
xor 2^(s+1) - 1), the following ones positions 2^j apart. Positions past the end of a row count as larger than
everything, so a row may have any length. Steps within a tile of a row run in shared memory, many in one kernel; wider
steps are a kernel each, over global memory.

Source: the form of the network XLA uses (xla/service/gpu/kernels, "sorting").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.codegen.dialects.xla_gpu import AllocateSharedOp, SyncThreadsOp
from heron.codegen.elemental import Value
from heron.codegen.heroes.base import Entry
from heron.codegen.heroes.iteration import for_
from heron.codegen.heroes.sort import Sort, when
from heron.codegen.kernel import Kernel, Launch
from heron.codegen.mlir_types import scalar_type
from heron.targets import Target

#: elements of a tile at most, the bytes of shared memory it may take, and threads that sort it at most
MAX_TILE = 8192
TILE_BYTES = 32 << 10
TILE_THREADS = 1024
BLOCK = 256


def emit(sort: Sort, name: str, target: Target) -> list[Kernel]:
    """The kernels in order; a step that is needed again is the same kernel again."""
    stages = max(sort.length - 1, 0).bit_length()
    if not stages or not sort.rows:
        frame = sort.frame(name, target)
        return [frame.finish(Launch(), "sort", {"form": "nothing to sort"})]
    tile_bits = min(stages, _tile_bits(sort, target))
    kernels = [_tile_kernel(sort, f"{name}_runs", target, tile_bits, whole=True)]
    made: dict[tuple[str, int], Kernel] = {}

    def step(kind: str, bit: int, make: Callable[[str], Kernel]) -> None:
        key = (kind, bit)
        if key not in made:
            made[key] = make(f"{name}_{kind}{bit}")
        kernels.append(made[key])

    for stage in range(tile_bits, stages):
        step("mirror", stage, lambda n, j=stage: _step_kernel(sort, n, target, j, mirrored=True))
        for bit in range(stage - 1, tile_bits - 1, -1):
            step("apart", bit, lambda n, j=bit: _step_kernel(sort, n, target, j, mirrored=False))
        step("tile", tile_bits, lambda n: _tile_kernel(sort, n, target, tile_bits, whole=False))
    return kernels


def _tile_bits(sort: Sort, target: Target) -> int:
    """log2 of the elements of a tile."""
    bytes_ = sum(o.shape.element_type.byte_size for o in sort.i.operands)
    tile = MAX_TILE
    while tile > 2 and tile * bytes_ > TILE_BYTES:
        tile //= 2
    return tile.bit_length() - 1


# -- one step over global memory ---------------------------------------------------------------------------------------


def _step_kernel(sort: Sort, name: str, target: Target, bit: int, mirrored: bool) -> Kernel:
    """Every thread compares one pair of positions that differ in `bit` (mirrored: in all bits up to it)."""
    frame = sort.frame(name, target)
    e = frame.e
    half = 1 << bit
    pairs = -(-sort.length // (2 * half)) * half
    threads = pairs * sort.rows
    block = min(BLOCK, -(-threads // target.warp) * target.warp)
    grid = -(-threads // block)
    thread = e.variable(frame.block_id(), 0, grid - 1) * block + e.variable(frame.thread_id(), 0, block - 1)
    row, pair = thread // pairs, thread % pairs
    first = pair // half * (2 * half) + pair % half
    second = pair // half * (2 * half) + (2 * half - 1) - pair % half if mirrored else first + half
    first, second, row = e.simplify((first, second, row))
    exists: list[Constraint] = [(row, 0, sort.rows - 1), (second, 0, sort.length - 1)]

    def body(_: object, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        places = [sort.index(frame, row, p) for p in (first, second)]
        return _exchange(frame, sort, tensors, places[0], places[1])

    frame.outputs[:] = e.loop([], frame.outputs, body, lambda _: exists)
    return frame.finish(Launch((grid, 1, 1), (block, 1, 1)), "sort", {"form": f"step {half} apart"})


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


# -- many steps in shared memory --------------------------------------------------------------------------------------


def _tile_kernel(sort: Sort, name: str, target: Target, bits: int, whole: bool) -> Kernel:
    """Sorts each tile of 2^bits positions (`whole`), or does only the steps of a wider stage that stay inside tiles."""
    frame = sort.frame(name, target)
    e, b = frame.e, frame.e.b
    tile, block = 1 << bits, max(1, min(1 << (bits - 1), TILE_THREADS, frame.target.threads_per_block))
    tiles = -(-sort.length // tile)
    grid = tiles * sort.rows
    thread = e.variable(frame.thread_id(), 0, block - 1)
    number = e.variable(frame.block_id(), 0, grid - 1)
    row, start = e.simplify((number // tiles, number % tiles * tile))
    shared = [
        b.op(AllocateSharedOp, type=TensorType(scalar_type(o.shape.element_type), [tile])) for o in sort.i.operands
    ]
    tensors = list(frame.outputs)

    def place(position: Expr) -> list[Constraint]:
        return [(e.simplify((start + position,))[0], 0, sort.length - 1)]

    def load(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        position = variables[0] * block + thread
        index = sort.index(frame, row, start + position)
        return [e.insert(e.extract(t, index), s, (position,)) for t, s in zip(tensors, carried, strict=True)]

    def save(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        position = variables[0] * block + thread
        index = sort.index(frame, row, start + position)
        return [e.insert(e.extract(s, (position,)), t, index) for s, t in zip(shared, carried, strict=True)]

    def inside(variables: Index) -> list[Constraint]:
        return place(variables[0] * block + thread)

    shared = e.loop([tile // block], shared, load, inside)
    shared = _steps(frame, sort, shared, thread, block, bits, whole, place)
    tensors = e.loop([tile // block], tensors, save, inside)
    frame.outputs[:] = tensors
    bytes_ = tile * sum(o.shape.element_type.byte_size for o in sort.i.operands)
    return frame.finish(Launch((grid, 1, 1), (block, 1, 1), bytes_), "sort", {"form": f"tiles of {tile}"})


def _steps(
    frame: Entry,
    sort: Sort,
    shared: Sequence[SSAValue],
    thread: Expr,
    block: int,
    bits: int,
    whole: bool,
    place: Callable[[Expr], list[Constraint]],
) -> list[SSAValue]:
    """All stages of a tile, or the plain steps of one; a barrier before each step and after the last."""
    b = frame.e.b
    one, last = b.integer(1), b.integer(bits - 1)
    rounds = max(1, (1 << bits) // 2 // block)

    def step_with(bit: SSAValue, tensors: Sequence[SSAValue], mirrored: bool) -> list[SSAValue]:
        """The step with positions differing in `bit`, by all threads; each does some pairs."""

        def pair(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            number = frame.e.index_value(frame.e.simplify((variables[0] * block + thread,))[0])
            return _tile_step(frame, sort, carried, number, bit, bits, mirrored, place)

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
        shared = for_(frame, b.integer(0), b.integer(bits), shared, stage)
    else:
        shared = plain_steps(last, shared)
    return list(b.add(SyncThreadsOp(shared)).results)


def _tile_step(
    frame: Entry,
    sort: Sort,
    shared: Sequence[SSAValue],
    number: SSAValue,
    bit: SSAValue,
    bits: int,
    mirrored: bool,
    place: Callable[[Expr], list[Constraint]],
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
    top = (1 << bits) - 1
    places = [e.variable(first, 0, top), e.variable(second, 0, top)]

    def body(_: object, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        return _exchange(frame, sort, tensors, (places[0],), (places[1],))

    return e.loop([], shared, body, lambda _: place(places[1]))
