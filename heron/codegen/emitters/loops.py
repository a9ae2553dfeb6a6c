"""Loops over the elements of a shape: CPU loop nests over work items, GPU threads with several elements each.

On the CPU a run of dimensions that every access walks contiguously (`analysis.fusion.loop_space`) is one loop. On the
GPU a thread does 1, 2 or 4 consecutive elements of the row-major order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import inf, prod
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Region, SSAValue

from heron.analysis.fusion.loop_space import dimension_index
from heron.analysis.indexing.expr import Const, Dim, Expr, Sym
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.analysis.indexing.map import IndexingMap, Var
from heron.codegen.elemental import FunctionEmitter
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.cpu_plan import CpuPlan
from heron.codegen.ir.types import INDEX
from heron.codegen.kernel import Launch
from heron.hlo.facts import is_given
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass
from heron.targets import WARP, Target

#: emits the body at an index: takes the index and the carried tensors, gives the tensors after it
Body: TypeAlias = Callable[[Index, Sequence[SSAValue]], Sequence[SSAValue]]

#: elements of a work item so few that a division for each item counts, and items in a row that are worth a loop
_SHORT, _LONG = 32, 32
#: elements of loops in each other that are written out, of kernels of so many instructions
_WRITTEN_OUT, _SMALL = 8, 12
#: warps in a block of a loop over elements: enough blocks fit a core to fill it, and small loops still use many cores
WARPS_PER_BLOCK = 4


# -- CPU ---------------------------------------------------------------------------------------------------------------


def cpu_loops(
    entry: Frame, plan: CpuPlan, first_item: int, total: int, inits: Sequence[SSAValue], body: Body
) -> list[SSAValue]:
    """The loops of a CPU kernel whose work items `first_item` … belong to `plan`."""
    e = entry.e
    lengths = [prod(plan.sizes[d] for d in run) for run in plan.runs]

    chunk, whole = plan.chunk, plan.whole
    heads = lengths[:whole] + ([lengths[whole] // chunk] if chunk else [])
    inner = ([chunk] if chunk > 1 else []) + lengths[whole + bool(chunk) :]
    loops = _loops(entry, inner)

    def work(head: Index, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        outer = list(head)
        if chunk:
            outer[-1] = outer[-1] * chunk

        def at(variables: Index, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            rest = list(variables)
            run_index = list(outer)
            if chunk > 1:
                run_index[-1] = run_index[-1] + rest.pop(0)
            return body(dimension_index(plan.sizes, plan.runs, e.simplify((*run_index, *rest))), carried)

        def few(variables: Index, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            for place in product(*map(range, inner[loops:])):
                carried = at((*variables, *map(Const, place)), carried)
            return carried

        return e.loop(inner[:loops], carried, few) if loops else few((), carried)

    if not plan.by_parts and len(heads) > 1 and heads[-1] >= _LONG and prod(inner) <= _SHORT:
        return _item_rows(entry, heads, first_item, total, inits, work)

    def of_item(item: Expr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if plan.by_parts:
            return work(delinearize(item, heads[::-1])[::-1], carried)
        return work(delinearize(item, heads) if len(heads) > 1 else (item,) if heads else (), carried)

    return item_loop(entry, plan.items, first_item, total, inits, of_item)


def _loops(entry: Frame, sizes: Sequence[int]) -> int:
    """The number of these loops that stay loops.

    Several short ones inside are written out: vectors then go along the loop around them. Along the innermost of them
    they would be nearly empty.
    """
    outer = next(n for n in range(len(sizes) + 1) if prod(sizes[n:]) <= _WRITTEN_OUT)
    is_small = len(entry.fusion.computation.instructions) <= _SMALL
    is_in_long = not outer or sizes[outer - 1] >= _LONG
    return outer if is_small and is_in_long and outer < len(sizes) - 1 else len(sizes)


def _item_rows(
    entry: Frame,
    heads: Sequence[int],
    first_item: int,
    total: int,
    inits: Sequence[SSAValue],
    work: Callable[[Index, Sequence[SSAValue]], Sequence[SSAValue]],
) -> list[SSAValue]:
    """`item_loop` over work items in rows of the last of ``heads``, in a loop of its own: no element divides.

    An array that is read at a remainder would be gathered for each vector.
    """
    e, (*outer, length) = entry.e, heads
    b, rows = e.b, prod(outer)
    lo, hi = item_range(entry, rows * length, first_item, total)
    size = b.integer(length)

    def row(number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        start = b.op(arith.MuliOp, number, size)
        begin = b.op(arith.MaxSIOp, b.op(arith.SubiOp, lo, start), b.integer(0))
        end = b.op(arith.MinSIOp, b.op(arith.SubiOp, hi, start), size)
        head = delinearize(e.variable(number, 0, rows - 1), outer)

        def item(place: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return work((*head, e.variable(place, 0, length - 1)), carried)

        return for_(entry, begin, end, carried, item)

    last = b.op(arith.AddiOp, hi, b.integer(length - 1))
    return for_(entry, b.op(arith.DivUIOp, lo, size), b.op(arith.DivUIOp, last, size), inits, row)


def item_loop(
    entry: Frame,
    items: int,
    first_item: int,
    total: int,
    inits: Sequence[SSAValue],
    work: Callable[[Expr, Sequence[SSAValue]], Sequence[SSAValue]],
) -> list[SSAValue]:
    """The loop over those of the kernel's `total` work items that are the `items` from `first_item` on.

    ``work(item, carried) -> carried``, with items counted from 0.
    """
    lo, hi = item_range(entry, items, first_item, total)
    return for_(entry, lo, hi, inits, lambda item, carried: work(entry.e.variable(item, 0, items - 1), carried))


def for_(
    entry: Frame,
    lo: SSAValue,
    hi: SSAValue,
    inits: Sequence[SSAValue],
    body: Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]],
    step: SSAValue | None = None,
) -> list[SSAValue]:
    """`scf.for` between bounds known when it runs, carrying scalars and tensors: `body(variable, carried) -> carried`.

    By 1 unless there is a `step`.
    """
    e = entry.e
    block = Block(arg_types=[INDEX, *(v.type for v in inits)])
    with e.region(block):
        e.b.terminate(scf.YieldOp, body(block.args[0], block.args[1:]))
    operands = [lo, hi, e.b.integer(1) if step is None else step, *inits]
    op = scf.ForOp.create(operands=operands, result_types=[v.type for v in inits], regions=[Region(block)])
    return list(e.b.add(op).results)


def item_range(entry: Frame, items: int, first: int, total: int) -> tuple[SSAValue, SSAValue]:
    """The part of [lo, hi) that lies in [first, first + items), counted from `first`."""
    (lo, hi), b = entry.items, entry.e.b
    if items == total:
        return lo, hi

    def inside(v: SSAValue) -> SSAValue:
        shifted = b.op(arith.SubiOp, v, b.integer(first)) if first else v
        return b.op(arith.MinSIOp, b.op(arith.MaxSIOp, shifted, b.integer(0)), b.integer(items))

    return inside(lo), inside(hi)


# -- GPU ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GpuPlan:
    """``vector`` consecutive elements a thread, ``block`` threads a block, ``grid`` blocks."""

    elements: int
    vector: int
    block: int
    grid: int

    @property
    def launch(self) -> Launch:
        return Launch((self.grid, 1, 1), (self.block, 1, 1))


def plan_gpu(
    elements: int,
    bits: int,
    target: Target,
    *,
    row: int | None = None,
    whole_blocks: bool = False,
    block: int = 0,
    room: float = inf,
) -> GpuPlan:
    """128-bit accesses (4 elements at most) when they divide the elements and still leave every core some threads.

    ``room``: copies of the code for an element that the kernel may have: a thread's elements are written out.
    ``row``: what they must divide instead of the elements, where those lie in several stretches of memory.
    ``whole_blocks``: blocks of the usual size even for few elements, so that several plans can share a launch.
    ``block``: threads a block must have, unless 0.
    """
    whole_blocks = whole_blocks or bool(block)
    block = block or min(WARPS_PER_BLOCK * WARP, target.threads_per_block)
    vector = max(1, min(4, 128 // max(bits, 8)))
    enough = target.cores * block
    while vector > 1 and (vector > room or elements % vector or (row or 0) % vector or elements // vector < enough):
        vector //= 2
    threads = max(1, elements // vector)
    if not whole_blocks:
        block = min(block, threads)
    return GpuPlan(elements, vector, block, -(-threads // block))


@dataclass(frozen=True, slots=True)
class Part:
    """The work of a consecutive range of a kernel's blocks.

    ``members``: numbers of the outputs it stores. ``emit(block, tensors) -> tensors``: its code, with the number of the
    block within the range and the outputs as they are.
    """

    grid: int
    members: tuple[int, ...]
    emit: Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]


def gpu_parts(entry: Frame, parts: Sequence[Part]) -> int:
    """Emit each part for separate blocks, so that no warp branches; returns the number of blocks."""
    e, total, first = entry.e, sum(part.grid for part in parts), 0
    entry.thread_id()  # made once, for all parts
    for number in _shared_numbers(entry, parts):
        e.value(number, ())
    for part in parts:
        tensors = [entry.outputs[n] for n in part.members]
        if len(parts) == 1:
            results = part.emit(entry.block_id(), tensors)
        else:
            block = e.variable(entry.block_id(), 0, total - 1)
            body = partial(_do_part, entry, part, block - first, tensors)
            results = e.guarded(e.holds([(block, first, first + part.grid - 1)]), tensors, body)
        for n, result in zip(part.members, results, strict=True):
            entry.outputs[n] = result
        first += part.grid
    return total


def _shared_numbers(entry: Frame, parts: Sequence[Part]) -> list[Instruction]:
    """Numbers that several parts compute from numbers alone: they are computed ahead of what tells parts apart."""
    times: Counter[Instruction] = Counter()
    for part in parts if len(parts) > 1 else ():
        times.update(_needed([entry.fusion.outputs[n].instruction for n in part.members]))
    numbers: dict[Instruction, None] = {}
    for i in entry.fusion.computation.post_order() if times else ():
        if i.shape.is_scalar and (is_given(i) or i.op.is_elementwise and all(o in numbers for o in i.operands)):
            numbers[i] = None
    return [i for i in numbers if times[i] > 1 and i.op.is_elementwise]


def _needed(roots: Sequence[Instruction]) -> list[Instruction]:
    """The roots and all they are computed from."""
    found = dict.fromkeys(roots)
    work = list(found)
    while work:
        for o in work.pop().operands:
            if o not in found:
                found[o] = None
                work.append(o)
    return list(found)


def _do_part(entry: Frame, part: Part, block: Expr, tensors: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return part.emit(entry.e.index_value(entry.e.simplify((block,))[0]), tensors)


def gpu_map(sizes: Sequence[int], plan: GpuPlan) -> IndexingMap:
    """`(thread, block)[element] -> index` into a tensor of `sizes`, with a bound where the threads overshoot."""
    linear = (Dim(1) * plan.block + Dim(0)) * plan.vector + Sym(0)
    variables = [Var(0, plan.block - 1, "th_x"), Var(0, plan.grid - 1, "bl_x")]
    elements = prod(sizes)
    constraints = []
    if plan.block * plan.grid * plan.vector > elements:
        threads = Dim(1) * plan.block + Dim(0)
        whole = elements % plan.vector == 0  # then a thread does all of its elements or none: one test
        constraints = [(threads, 0, elements // plan.vector - 1) if whole else (linear, 0, elements - 1)]
    found = IndexingMap(delinearize(linear, sizes), variables, [Var(0, plan.vector - 1)], constraints)
    simple = found.simplifier
    return found.replace(
        results=[simple.simplify(e) for e in found.results],
        constraints=[(simple.simplify(e), lo, hi) for e, lo, hi in found.constraints],
    )


def gpu_loops(
    entry: Frame,
    sizes: Sequence[int],
    plan: GpuPlan,
    inits: Sequence[SSAValue],
    body: Body,
    block: SSAValue | None = None,
) -> list[SSAValue]:
    """The work of a thread on a tensor of `sizes`: a loop over its elements, or its one element.

    ``block``: its number among those that share the tensor; the block id unless given.
    """
    thread, block = entry.thread_id(), entry.block_id() if block is None else block
    if plan.vector > 1:
        return entry.e.map_loop(
            gpu_map(sizes, plan), [thread, block], sizes, inits, lambda index, carried, _: body(index, carried)
        )
    e = entry.e
    linear = e.variable(block, 0, plan.grid - 1) * plan.block + e.variable(thread, 0, plan.block - 1)
    inside = e.holds([(linear, 0, prod(sizes) - 1)])

    def at_element() -> Sequence[SSAValue]:
        values = e.index_values(e.simplify(delinearize(linear, sizes)))
        # variables of their own: within the bound they stay inside the tensor
        index = tuple(e.variable(v, 0, size - 1) for v, size in zip(values, sizes, strict=True))
        return body(index, inits)

    return e.guarded(inside, inits, at_element)


def at_most(e: FunctionEmitter, place: Expr, most: int) -> Expr:
    """`place`, or `most` where it is beyond."""
    (place,) = e.simplify((place,))
    if e.range_of(place)[1] <= most:
        return place
    return e.variable(e.b.op(arith.MinSIOp, e.index_value(place), e.b.integer(most)), 0, most)
