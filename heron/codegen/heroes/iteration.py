"""How a kernel walks the elements of a shape: CPU loop nests over work items, GPU threads with several elements each.

On the CPU neighbouring dimensions that every access walks contiguously become one loop, so that the innermost loop is
long and has no division. On the GPU a thread does 1, 2 or 4 consecutive elements of the row-major order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Region, SSAValue

from heron.analysis.indexing.expr import Add, Const, Dim, Expr, Mul, Sym, dims
from heron.analysis.indexing.hlo_maps import (
    Index,
    delinearize,
    from_memory,
    linearize,
    memory_sizes,
    moves_elements,
    operand_index,
    to_memory,
)
from heron.analysis.indexing.map import IndexingMap, Var
from heron.analysis.indexing.simplify import simplifier
from heron.codegen.heroes.base import Entry, Output
from heron.codegen.kernel import Launch
from heron.codegen.mlir_types import INDEX
from heron.codegen.partition import Partition
from heron.hlo.instruction import Instruction
from heron.hlo.shape import Shape
from heron.targets import Target

#: emits the body at an index: takes the index and the carried tensors, gives the tensors after it
Body: TypeAlias = Callable[[Index, Sequence[SSAValue]], Sequence[SSAValue]]

#: work items a CPU kernel should offer when it is large, so that threads can share it
_WANTED_ITEMS = 64
_LARGE = 1 << 16
_SHORTEST_ROW = 512


# -- which dimensions can be walked as one -----------------------------------------------------------------------------


def contiguous_runs(roots: Iterable[Instruction], sizes: Sequence[int], partition: Partition) -> list[list[int]]:
    """Runs of neighbouring dimensions that all reads below `roots` (of dims `sizes`) step through as one dimension."""
    index = dims(len(sizes))
    return _runs([(r, index) for r in roots], tuple(sizes), [], partition)


def output_runs(outputs: Sequence[Output], shape: Shape, partition: Partition) -> list[list[int]]:
    """The same for loops over `shape` in memory order that store `outputs`: equal dimensions, any layouts."""
    sizes = memory_sizes(shape)
    index = from_memory(shape, dims(len(sizes)))
    stores = [linearize(to_memory(o.shape, index), memory_sizes(o.shape)) for o in outputs]
    return _runs([(o.instruction, index) for o in outputs], sizes, stores, partition)


def _runs(
    stack: list[tuple[Instruction, Index]], sizes: tuple[int, ...], stores: Sequence[Expr], partition: Partition
) -> list[list[int]]:
    joined = [True] * max(len(sizes) - 1, 0)
    ranges = simplifier(tuple((0, n - 1) for n in sizes))
    seen: set[tuple[Instruction, Index]] = set()
    for address in stores:
        _keep_joined(joined, sizes, address)
    while stack:
        i, index = stack.pop()
        if (i, index) in seen:
            continue
        seen.add((i, index))
        called = i in partition.functions
        if i.opcode == "parameter" or (i.opcode == "constant" and not called):
            _keep_joined(joined, sizes, ranges.simplify(linearize(to_memory(i.shape, index), memory_sizes(i.shape))))
        elif moves_elements(i) and not called:
            for n, operand in enumerate(i.operands):
                stack.append((operand, tuple(ranges.simplify(e) for e in operand_index(i, n, index))))
        elif i.opcode in ("tuple", "get-tuple-element") and not called:
            stack.extend((o, index) for o in i.operands)
        else:
            for e in index:
                _keep_apart(joined, e)
    runs: list[list[int]] = [[0]] if sizes else []
    for d in range(1, len(sizes)):
        if joined[d - 1] or sizes[d] == 1:
            runs[-1].append(d)
        elif all(sizes[k] == 1 for k in runs[-1]):
            runs[-1].append(d)
        else:
            runs.append([d])
    return runs


def _keep_apart(joined: list[bool], e: Expr) -> None:
    """The dimensions `e` reads are wanted one by one."""
    for v in e.variables():
        for d in (v.index - 1, v.index):  # type: ignore[attr-defined]
            if 0 <= d < len(joined):
                joined[d] = False


def _keep_joined(joined: list[bool], sizes: Sequence[int], address: Expr) -> None:
    """Cut between dimensions that `address` does not step through as one."""
    steps = {d: 0 for d in range(len(sizes))}
    if not _add_steps(address, 1, steps):
        _keep_apart(joined, address)
        return
    real = [d for d, size in enumerate(sizes) if size != 1]
    for a, b in zip(real, real[1:], strict=False):
        if steps[a] != steps[b] * sizes[b]:
            for d in range(a, b):
                joined[d] = False


def _add_steps(e: Expr, factor: int, steps: dict[int, int]) -> bool:
    """Add the coefficient of each dimension; False when `e` is not affine in them."""
    if isinstance(e, Const):
        return True
    if isinstance(e, Dim):
        steps[e.index] += factor
        return True
    if isinstance(e, Add):
        return _add_steps(e.lhs, factor, steps) and _add_steps(e.rhs, factor, steps)
    if isinstance(e, Mul) and isinstance(e.rhs, Const):
        return _add_steps(e.lhs, factor * e.rhs.value, steps)
    return False


# -- CPU ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CpuPlan:
    """``runs`` of dimensions, one loop each; the work items walk the first, or (``split``) parts of the next as well.

    ``items``: how many there are. ``chunk``: length of the parts of run 1 a work item takes; 0: run 0 only.
    """

    sizes: tuple[int, ...]
    runs: tuple[tuple[int, ...], ...]
    items: int
    chunk: int = 0


def plan_cpu(sizes: Sequence[int], runs: Sequence[Sequence[int]]) -> CpuPlan:
    """Enough work items to share out, with inner loops as long as may be."""
    lengths = [prod(sizes[d] for d in run) for run in runs]
    items = lengths[0] if lengths else 1
    shape, kept = tuple(sizes), tuple(tuple(run) for run in runs)
    if len(lengths) < 2 or items >= _WANTED_ITEMS or prod(lengths) < _LARGE:
        return CpuPlan(shape, kept, items)
    if len(lengths) > 2:
        return CpuPlan(shape, kept, items * lengths[1], 1)
    chunk = _chunk(lengths[1], -(-_WANTED_ITEMS // items))
    return CpuPlan(shape, kept, items * (lengths[1] // chunk), chunk if chunk < lengths[1] else 0)


def _chunk(length: int, parts: int) -> int:
    """The longest divisor of `length` that gives `parts` parts, if that is no shorter than a row should be."""
    for n in range(parts, max(parts, length // _SHORTEST_ROW) + 1):
        if length % n == 0 and length // n >= _SHORTEST_ROW:
            return length // n
    return length


def cpu_loops(
    entry: Entry, plan: CpuPlan, first_item: int, total: int, inits: Sequence[SSAValue], body: Body
) -> list[SSAValue]:
    """The loops of a CPU kernel whose work items `first_item` … belong to `plan`."""
    e = entry.e
    lo, hi = _item_range(entry, plan.items, first_item, total)
    block = Block(arg_types=[INDEX, *(v.type for v in inits)])
    item = e.variable(block.args[0], 0, plan.items - 1)
    lengths = [prod(plan.sizes[d] for d in run) for run in plan.runs]
    with e.region(block):
        outer: list[Expr] = []
        if plan.chunk:
            parts = lengths[1] // plan.chunk
            outer = [item // parts, item % parts * plan.chunk]
            inner = ([plan.chunk] if plan.chunk > 1 else []) + lengths[2:]
        else:
            outer, inner = [item], lengths[1:]

        def at(variables: Index, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            rest = list(variables)
            run_index = list(outer)
            if plan.chunk > 1:
                run_index[1] = run_index[1] + rest.pop(0)
            return body(_dimension_index(plan, e.simplify((*run_index, *rest))), carried)

        results = e.loop(inner, block.args[1:], at) if inner else at((), block.args[1:])
        e.b.terminate(scf.YieldOp, results)
    operands = [lo, hi, e.b.integer(1), *inits]
    op = scf.ForOp.create(operands=operands, result_types=[v.type for v in inits], regions=[Region(block)])
    return list(e.b.add(op).results)


def _item_range(entry: Entry, items: int, first: int, total: int) -> tuple[SSAValue, SSAValue]:
    """The part of [lo, hi) that lies in [first, first + items), counted from `first`."""
    lo, hi, b = entry.lo, entry.hi, entry.e.b
    assert lo is not None and hi is not None
    if items == total:
        return lo, hi

    def inside(v: SSAValue) -> SSAValue:
        shifted = b.op(arith.SubiOp, v, b.integer(first)) if first else v
        return b.op(arith.MinSIOp, b.op(arith.MaxSIOp, shifted, b.integer(0)), b.integer(items))

    return inside(lo), inside(hi)


def _dimension_index(plan: CpuPlan, run_index: Index) -> Index:
    index: list[Expr] = [Const(0)] * len(plan.sizes)
    for run, e in zip(plan.runs, run_index, strict=False):
        for d, part in zip(run, delinearize(e, [plan.sizes[k] for k in run]), strict=True):
            index[d] = part
    return tuple(index)


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


def plan_gpu(elements: int, bits: int, target: Target) -> GpuPlan:
    """128-bit accesses (4 elements at most) when they divide the elements and still leave every core some threads."""
    block = min(128, target.threads_per_block)
    vector = max(1, min(4, 128 // max(bits, 8)))
    enough = target.cores * block
    while vector > 1 and (elements % vector or elements // vector < enough):
        vector //= 2
    threads = max(1, elements // vector)
    block = min(block, threads)
    return GpuPlan(elements, vector, block, -(-threads // block))


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
    entry: Entry, sizes: Sequence[int], plan: GpuPlan, inits: Sequence[SSAValue], body: Body
) -> list[SSAValue]:
    """What a thread does of a tensor of `sizes`: a loop over its elements, or its one element."""
    thread, block = entry.thread_id(), entry.block_id()
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
