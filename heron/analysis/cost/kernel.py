"""Work of one kernel or library call, and its bytes by operand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import log2

from heron.analysis.blocks.config import config_of
from heron.analysis.blocks.work import passes_of
from heron.analysis.cost.products import Product, product_of
from heron.analysis.cost.reuse import evaluations, in_place, reads
from heron.analysis.cost.traffic import bytes_written
from heron.analysis.cost.work import computed_elements, computed_part, element_flops, first_array, flops
from heron.analysis.fusion import radix_plan
from heron.analysis.fusion.row_blocks import row_blocks_of, steps_of
from heron.analysis.fusion.sliced_product import is_sliced_product, place_of
from heron.hlo.calls import radix_sort
from heron.hlo.calls.declared import declaration
from heron.hlo.facts import calls_function, having, is_copy, is_given, is_indirect, reads_part, updates_operand
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

#: what cores' matrix units do
_MATRIX = having(Trait.PRODUCT)


@dataclass(frozen=True, slots=True)
class Read:
    """One operand: `size` bytes, of which `distinct` are read, some again: `total` in all.

    ``used``: the part of each memory transaction that is wanted, 1.0 when neighbours read neighbours.
    """

    operand: str
    size: float
    distinct: float
    total: float
    used: float = 1.0


@dataclass(frozen=True, slots=True)
class KernelCost:
    """One run of a kernel. `flops` are those of a machine with multiply and add, maths functions by their weight;
    ``unit`` says which units do them (an element type, ``matrix`` before it for matrix units)."""

    name: str
    opcode: str
    flops: float
    transcendentals: float
    reads: tuple[Read, ...]
    written: float
    work_items: float
    unit: str
    #: the products among them, whose flops are in `flops`
    products: tuple[Product, ...] = ()

    @property
    def distinct(self) -> float:
        """Bytes that must move at least: every byte needed once, the result once."""
        return sum(r.distinct for r in self.reads) + self.written

    @property
    def moved(self) -> float:
        """Bytes asked for, re-reads included."""
        return sum(r.total for r in self.reads) + self.written


def kernel_cost(i: Instruction, keeps: bool = False) -> KernelCost:
    """The cost of `i` (a fusion, or any op that runs as a step of its own). ``keeps``: as in `evaluations`."""
    if row_blocks_of(i) is not None:
        return _row_blocks(i)
    if is_sliced_product(i):
        return _sliced_product(i)
    if i.opcode == "fusion":
        # schedulers, the code they choose and the runtime ask for the same; names of operands may change in between
        stated = i.attrs.get("kind"), i.extras.get("backend_config"), keeps
        return _renamed(i, i.attrs["calls"].remembered(("kernel cost", stated), lambda: _fusion(i, keeps)))
    total = sum(_size(o.shape) for o in dict.fromkeys(i.operands))
    work, written = flops(i), float(bytes_written(i))
    if i.opcode == "sort":
        work, written = _sorting(i)
    if i.opcode == "custom-call" and i.attrs["custom_call_target"] == radix_sort.TARGET:
        plan = radix_plan.called(i)
        work, written = float(plan.digits * plan.rows * plan.length), float(plan.moved - plan.given)
    if is_copy(i):
        work = 0.0
    reading = tuple(_read(o, i, n) for n, o in enumerate(i.operands) if o.shape.is_array and i.operands.index(o) == n)
    size = float(first_array(i).num_elements if first_array(i).is_array else total)
    calls = size if calls_function(i) else 0.0
    items = items_of(i) if i.opcode == "reduce" else size
    products = [i] if _is_product(i) else []
    unit = _unit([i], products)
    return KernelCost(i.name, i.opcode, work, calls, reading, written, items, unit, _products(products))


def named_for(i: Instruction, cost: KernelCost) -> KernelCost:
    """The cost of an instruction from that of another one that differs in names alone."""
    return cost if cost.name == i.name else _renamed(i, cost)


def _renamed(i: Instruction, cost: KernelCost) -> KernelCost:
    operands = i.operands if i.opcode == "fusion" else dict.fromkeys(i.operands)
    arrays = [o.name for o in operands if o.shape.is_array]
    reading = tuple(Read(o, r.size, r.distinct, r.total, r.used) for o, r in zip(arrays, cost.reads, strict=True))
    c = cost
    return KernelCost(
        i.name, c.opcode, c.flops, c.transcendentals, reading, c.written, c.work_items, c.unit, c.products
    )


def _row_blocks(i: Instruction) -> KernelCost:
    """The steps of a fusion that is done in blocks of rows: what is between them stays in caches."""
    steps = steps_of(i)
    costs = [kernel_cost(step) for step in steps]
    work, calls = sum(c.flops for c in costs), sum(c.transcendentals for c in costs)
    reading = tuple(_read(o, i, n) for n, o in enumerate(i.operands) if o.shape.is_array)
    dots = [s for s in steps if s.opcode == "dot"]
    items, unit = max(c.work_items for c in costs), _unit(dots, dots)
    return KernelCost(i.name, "dot", work, calls, reading, float(bytes_written(i)), items, unit)


def _sliced_product(i: Instruction) -> KernelCost:
    """The product alone: of an array that it has a slice of, it reads that."""
    dot, body = i.fused_root, i.calls
    c = kernel_cost(dot)
    used = {place_of(o).array: r for o, r in zip(dict.fromkeys(dot.operands), c.reads, strict=True)}
    reading = [
        Read(o.name, o.shape.byte_size, used[p].distinct, used[p].total, used[p].used)
        if p in used
        else _read(o, i, p.number)
        for p, o in zip(body.parameters, i.operands, strict=True)
    ]
    return replace(c, name=i.name, reads=tuple(reading))


def _fusion(i: Instruction, keeps: bool) -> KernelCost:
    body = i.attrs["calls"]
    loops = _loops(i)
    counts = evaluations(body, keeps) if loops is None else _in_tiles(body, loops)
    in_tiles, loops = loops is not None, loops or {}
    computed = [inner for inner in counts if not is_given(inner)]
    work = sum([counts[inner] * element_flops(inner) * computed_part(inner) for inner in computed], 0.0)
    calls = sum([counts[inner] for inner in computed if calls_function(inner)], 0.0)
    reading = tuple(
        _parameter(p, o.name, counts, keeps, in_tiles)
        for p, o in zip(body.parameters, i.operands, strict=True)
        if o.shape.is_array
    )
    roots = body.root.operands if body.root.opcode == "tuple" else [body.root]
    items = max([items_of(h) for h in (*roots, *(i for i in computed if i.opcode == "reduce"))])
    products = [x for x in computed if _is_product(x) for _ in range(loops.get(x, 1))]
    unit, written = _unit(counts, products), float(bytes_written(i))
    return KernelCost(i.name, roots[0].opcode, work, calls, reading, written, items, unit, _products(products))


def _loops(i: Instruction) -> dict[Instruction, int] | None:
    """The values that a block kernel computes several times, as it goes through rows again for each reduction, and the
    number of times. None for any other kernel."""
    config = config_of(i)
    if config is None:
        return None
    inside = dict.fromkeys(i.calls.instructions)
    return passes_of(inside, inside) if config.row and not config.online else {}


def _in_tiles(c: Computation, loops: Mapping[Instruction, int]) -> dict[Instruction, float]:
    """The elements that a block kernel computes of each value: all readers share them."""
    order = (i for i in reversed(c.post_order()) if i.opcode != "tuple")
    return {i: float(first_array(i).num_elements * loops.get(i, 1)) for i in order}


def _products(products: Sequence[Instruction]) -> tuple[Product, ...]:
    found = map(product_of, products)
    return tuple(p for p in found if p is not None)


def _parameter(p: Instruction, operand: str, counts: dict[Instruction, float], keeps: bool, in_tiles: bool) -> Read:
    """The way in which a fusion reads its parameter."""
    asked, used = 0.0, 1.0
    at_own_index = 0.0
    for user in dict.fromkeys(p.users):
        n = counts.get(user, 0.0)
        if updates_operand(user) and user.operands[0] is p:
            continue  # updated in place
        if in_place(user, p, n, keeps):
            at_own_index = max(at_own_index, n * reads(user, user.operands.index(p)))
            continue
        if in_tiles and user.opcode == "dot":  # all of it, each element once
            asked += counts[p]
            continue
        asked += n * sum(reads(user, k) for k, o in enumerate(user.operands) if o is p)
        used = min(used, used_part(user, p))
    size, width = _size(p.shape), p.shape.byte_size / max(1, p.shape.num_elements)
    total = (asked + at_own_index) * width
    return Read(operand, size, min(size, total), total, used)


def _read(o: Instruction, user: Instruction, k: int) -> Read:
    size = _size(o.shape)
    if updates_operand(user) and k == 0:
        return Read(o.name, size, 0.0, 0.0)
    if reads_part(user) and k == 0:
        part = min(size, _size(user.shape))
        return Read(o.name, size, part, part, used_part(user, o))
    return Read(o.name, size, size, size, used_part(user, o))


def used_part(user: Instruction, x: Instruction) -> float:
    """The part of a 32-byte transaction that a warp wants, when it reads `x` for neighbouring elements of `user`."""
    width = max(1.0, x.shape.byte_size / max(1, x.shape.num_elements))
    if is_indirect(user) and user.operands[0] is x:  # neighbouring threads need not read neighbouring elements
        slices = user.attrs.get("slice_sizes")
        run = max(slices[-1], 1) if slices else 1
        return min(1.0, width * run / 32.0)
    if user.opcode == "slice" and user.attrs["slice"]:
        return max(width / 32.0, 1.0 / user.attrs["slice"][-1][2])
    return 1.0


def _sorting(i: Instruction) -> tuple[float, float]:
    """Compares of a sort, and bytes it writes: all operands once for every pass of merging in cache-sized runs."""
    leaf = i.operands[0].shape
    length = leaf.dims[i.attrs["dimensions"][0]] if leaf.dims else 1
    return 4.0 * leaf.num_elements * log2(max(length, 2)), float(sum(_size(o.shape) for o in i.operands))


def items_of(i: Instruction) -> float:
    """Elements that threads can work on side by side; a reduction's threads share its operand."""
    return float(i.operands[0].shape.num_elements if i.opcode == "reduce" else computed_elements(i))


def _unit(instructions: Iterable[Instruction], products: Sequence[Instruction]) -> str:
    """The widest arithmetic of these instructions, of which some are products."""
    if products:
        return "matrix " + min(p.operands[0].shape.element_type.name for p in products)
    shapes = {i.shape for i in instructions}
    types = {s.element_type.name for shape in shapes for _, s in shape.leaves() if s.is_array}
    return "f64" if types & {"f64", "c128"} else "f32"


def _is_product(i: Instruction) -> bool:
    """Whether matrix units do the work."""
    if i.opcode != "custom-call":
        return i.opcode in _MATRIX
    call = declaration(i.attrs["custom_call_target"])
    return call is not None and call.flops is not None


def _size(shape: Shape) -> float:
    return float(sum(s.byte_size for _, s in shape.leaves() if s.is_array))
