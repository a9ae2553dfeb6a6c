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

from xdsl.ir import SSAValue

from heron.analysis.fusion.sort_tiles import fits_tile, steps_together, tile_of
from heron.analysis.indexing.map import Constraint
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.sort.code import SortCode
from heron.codegen.emitters.sort.gpu_held import Held
from heron.codegen.emitters.sort.gpu_tiles import BLOCK, tile_kernel
from heron.codegen.kernel import Kernel, Launch
from heron.errors import HeronError
from heron.targets import WARP, Target


def emit(frame: Frame, sort: SortCode) -> list[Kernel]:
    """The kernels in order; a step that is needed again is the same kernel again. `frame` is that of one kernel.

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
    name, target = frame.name, frame.target
    first = sort.frame(f"{name}_runs", target) if stages > tile_bits else frame
    kernels = [tile_kernel(first, sort, tile_bits, whole=True)]
    made: dict[str, Kernel] = {}

    def run(step: str, make: Callable[[str], Kernel]) -> None:
        if step not in made:
            made[step] = make(f"{name}_{step}")
        kernels.append(made[step])

    most = steps_together([o.shape.element_type.byte_size for o in sort.i.operands])
    for stage in range(tile_bits, stages):
        # groups of full size end at the tile's bits, so that other stages have the same
        together = (stage - tile_bits) % most + 1
        run(f"mirror{stage}", lambda n, j=stage, k=together: _step_kernel(sort, n, target, j, k, mirrored=True))
        for bit in range(stage - together, tile_bits - 1, -most):
            run(f"apart{bit}", lambda n, j=bit: _step_kernel(sort, n, target, j, most, mirrored=False))
        run(f"tile{tile_bits}", lambda n: tile_kernel(sort.frame_in_place(n, target), sort, tile_bits, whole=False))
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
        held = Held(frame, sort, places, exists, sort.length, lambda p: sort.index(frame, row, p))
        return held.after_steps(steps, mirrored, tensors)

    frame.outputs[:] = e.loop([], frame.outputs, body, lambda _: some)
    form = f"{steps} steps, {half} apart" if steps > 1 else f"step {half} apart"
    return frame.finish(Launch((grid, 1, 1), (block, 1, 1)), "sort", {"form": form})
