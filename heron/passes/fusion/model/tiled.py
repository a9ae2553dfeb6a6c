"""Shared by passes that make block kernels: the allowed ops, the extent of a fusion, and its tiles."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from math import prod

from heron.analysis.blocks.config import BlockConfig
from heron.analysis.fusion.roles import stays_alone
from heron.hlo.facts import combiner, having, is_generated
from heron.hlo.ir import types
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType
from heron.lockfile import Choice
from heron.passes.framework.context import PassContext
from heron.passes.framework.measured import Fragment, alone, find, is_asked, key_of, misfit, taken
from heron.passes.rewriting.building import is_static
from heron.targets import Target
from heron.targets.triton import missing

#: what matrix units multiply, to which results
PRODUCTS = {
    types.BF16: (types.BF16, types.F32),
    types.F16: (types.F16, types.F32),
    types.S8: (types.S32,),
    types.F8E4M3FN: (types.BF16, types.F16, types.F32),
    types.F8E5M2: (types.BF16, types.F16, types.F32),
}
#: algorithms that say what is done in any case
_ALGORITHMS = {types.BF16: "dot_bf16_bf16_f32", types.F16: "dot_f16_f16_f32"}
#: floats of 8 bits, which may be multiplied with each other
_FLOATS_8 = frozenset({types.F8E4M3FN, types.F8E5M2})
#: integers of 4 bits: what operands of products are computed from may be such
_NIBBLES = frozenset({types.S4, types.U4})
#: products of bytes that a sum in s32 has room for; matrix units ahead of sm_90 stop at its bounds
_SATURATED = 1 << 17
#: the first GPUs with matrix units for bf16
OLDEST = 80
#: element types a tile may have
_TYPES = frozenset({
    types.PRED, types.S8, types.S16, types.S32, types.S64, types.U8, types.U16, types.U32, types.U64, types.F16,
    types.BF16, types.F32, types.F64,
})  # fmt: skip
#: and those that ops on tiles may read
_READ_TYPES = _TYPES | PRODUCTS.keys()
#: elementwise ops with no form on tiles
_SCALAR_ONLY = frozenset({
    "complex", "real", "imag", "count-leading-zeros", "popcnt", "mulhi", "stochastic-convert", "bitcast-convert",
})  # fmt: skip
MOVES = having(Trait.VIEW) | {"transpose", "slice"}
#: bytes of a row that emitters keep at hand at most
ROW_BYTES = 256 << 10
#: what costs nothing to compute where it is read
FREE = having(Trait.VIEW, Trait.GENERATED)


def absent(ctx: PassContext) -> str:
    """Why there are no block kernels at all; the simulated GPU has them without Triton."""
    if ctx.options.triton == "off":
        return "the option triton=off"
    target = ctx.target
    if target is None or target.sim:
        return ""
    if not target.is_gpu or _generation(target) < OLDEST:
        return f"block kernels are for GPUs from sm_{OLDEST} on"
    return missing() if ctx.options.triton == "auto" else ""


def locked(fusion: Instruction, ctx: PassContext, target: Target) -> BlockConfig | None:
    """The tiles that the lock file has for a fusion; None without a lock file, or where it has none.

    Raises TUNE002 when it must have some and has not, TUNE003 for what is no choice for this fusion.
    """
    if not is_asked(ctx):
        return None
    key = key_of(fusion.calls)
    if ctx.asks:
        ctx.asks(Fragment("tiles", key, fusion.name, alone(fusion), (), {}))
    found = find(ctx, target, key, fusion.name)
    if found is None:
        return None
    largest = max((shape for _, shape in fusion.shape.leaves()), key=lambda s: s.num_elements)
    config = fitting(found, largest, fusion.calls.instructions, fusion.name)
    taken(ctx, found, fusion.name)
    return config


def fitting(found: Choice, shape: Shape, members: Collection[Instruction], name: str) -> BlockConfig:
    """The tiles that a choice names, for a fusion of `members` with a result of that shape. Raises TUNE003."""
    config = BlockConfig.parse(found.choice)
    if config is None or not _fits(config, shape, members):
        raise misfit(found, name, f"are no tiles of {shape}")
    return config


def _fits(config: BlockConfig, shape: Shape, members: Collection[Instruction]) -> bool:
    """Whether a fusion can be cut so: of a product in parts, the tiles are of the parts."""
    if config.split == 1:
        return len(config.tiles) == shape.rank
    dots = [i for i in members if i.opcode == "dot"]
    return len(dots) == 1 and len(config.tiles) == dots[0].shape.rank + 1 and not why_whole(dots[0], config.split)


def why_whole(dot: Instruction, parts: int) -> str:
    """Why a block kernel does not do the sum of a product in so many parts; empty when it may."""
    k = dot.operands[0].shape.dims[dot.lhs_contracting_dims[0]]
    return f"its sum of {k} has no {parts} equal parts" if k % parts else ""


def programs(dims: tuple[int, ...], config: BlockConfig) -> int:
    """The number of programs that compute a result of these sizes."""
    return prod(-(-n // t) for n, t in zip(dims, config.tiles, strict=True))


def unfit(
    dot: Instruction, products: Mapping[ElementType, Container[ElementType]] = PRODUCTS, target: Target | None = None
) -> str:
    """Why no block kernel computes a product; empty when one may. ``products``: types, each with its results'."""
    a, b = (o.shape.element_type for o in dot.operands[:2])
    together = a is b or {a, b} <= _FLOATS_8
    if not together or dot.shape.element_type not in products.get(a, ()):
        return f"matrix units have no product of {a} and {b} to {dot.shape.element_type}"
    if target is not None and (why := _lacks(dot, target)):
        return why
    if len(dot.operands) != 2 or not is_static(dot) or dot.control_predecessors or dot.control_successors:
        return "it is sparse, of sizes not known, or has an order to keep"
    algorithm = dot.attrs.get("algorithm")
    if algorithm and algorithm != _ALGORITHMS.get(a):
        return f"it names its algorithm, {algorithm}"
    if len(dot.lhs_contracting_dims) != 1 or len(dot.rhs_contracting_dims) != 1:
        return "it sums over several dimensions"
    if not dot.shape.num_elements or not dot.operands[0].shape.num_elements:
        return "it has no elements"
    if stays_alone(dot):
        return "it is to have a kernel of its own"
    return "" if all(_is_row_major(i) for i in (dot, *dot.operands)) else "its operands do not lie row by row"


def _lacks(dot: Instruction, target: Target) -> str:
    """Why the matrix units of a machine do not compute a product that others do."""
    if unknown_floats(dot, target):
        return f"{target.machine} has no floats of 8 bits"
    k = prod(dot.operands[0].shape.dims[d] for d in dot.lhs_contracting_dims)
    saturates = dot.operands[0].shape.element_type is types.S8 and _generation(target) < 90
    if saturates and k >= _SATURATED:
        return f"a sum of {k} products of bytes may leave s32, at whose bounds {target.machine} stops"
    return ""


def _generation(target: Target) -> int:
    return int(target.machine.removeprefix("sm_"))


def unknown_floats(i: Instruction, target: Target) -> bool:
    """Whether an op reads floats of 8 bits, and the machine knows none."""
    return not target.flops_of("f8") and any(o.shape.element_type in _FLOATS_8 for o in i.operands)


def unpacks(i: Instruction) -> bool:
    """Whether an op takes integers of 4 bits out of bytes, moves them, or makes wider numbers of them."""
    if not {x.shape.element_type for x in (i, *i.operands) if x.shape.is_array} & _NIBBLES:
        return False
    if not i.shape.is_array or i.control_predecessors or i.control_successors or not is_static(i):
        return False
    if not all(_is_row_major(x) for x in (i, *i.operands)) or i.extras and stays_alone(i):
        return False
    if i.opcode == "bitcast-convert":
        return i.operands[0].shape.element_type in _NIBBLES and i.shape.element_type in _NIBBLES
    if i.opcode == "convert":
        source, to = i.operands[0].shape.element_type, i.shape.element_type
        return source in _NIBBLES and to in _TYPES or to in _NIBBLES and source.is_integer and source in _TYPES
    return i.opcode in MOVES or i.opcode == "broadcast"


def _is_row_major(i: Instruction) -> bool:
    return i.shape.layout is None or i.shape.layout.is_default


def has_form(i: Instruction) -> bool:
    """Whether an op can be done on tiles."""
    if i.control_predecessors or i.control_successors or i.extras and stays_alone(i) or i.op.has_side_effect:
        return False
    if not _is_tile(i) or any(not o.shape.is_array or o.shape.element_type not in _READ_TYPES for o in i.operands):
        return False
    if i.opcode in MOVES or is_generated(i) or i.opcode == "concatenate":
        return all(_is_row_major(o) for o in i.operands)
    if i.opcode == "power" and i.shape.element_type.is_integer:
        return False
    return i.op.is_elementwise and (i.opcode not in _SCALAR_ONLY or _renames(i))


def _is_tile(i: Instruction) -> bool:
    """Whether parts of the result of `i` may be tiles."""
    return i.shape.is_array and i.shape.element_type in _TYPES and is_static(i) and _is_row_major(i)


def _renames(i: Instruction) -> bool:
    """Whether bits of an integer are read as the other kind of integer."""
    source, to = i.operands[0].shape.element_type, i.shape.element_type
    return i.opcode == "bitcast-convert" and source.is_integer and to.is_integer and source.bits == to.bits


def is_row_reduce(i: Instruction) -> bool:
    """Whether a reduction can be done on tiles: of one array, by one operation."""
    return i.opcode == "reduce" and len(i.operands) == 2 and i.shape.is_array and combiner(i.to_apply) is not None


def keeps_rows(reduce: Instruction) -> bool:
    """Whether the emitter of rows keeps what is reduced in registers: the last dimensions, no more than
    `normalization-fusion` takes."""
    shape, gone = reduce.operands[0].shape, sorted(reduce.dimensions)
    last = list(range(shape.rank - len(gone), shape.rank))
    return gone == last and prod(shape.dims[d] for d in gone) * shape.element_type.byte_size <= ROW_BYTES


def goes_behind(i: Instruction) -> bool:
    """Whether an op on a product's result can be done in its kernel."""
    return has_form(i) and (i.op.is_elementwise or i.opcode in MOVES)


def exits(
    dot: Instruction, order: Mapping[Instruction, int], most: int
) -> Iterator[tuple[Instruction, set[Instruction]]]:
    """Values that all uses of a product lead to, nearest first, each with all that lies between."""
    between = {dot}
    yield dot, set(between)
    if dot.is_root:
        return
    waiting = set(dot.users)
    while waiting and len(between) < most:
        i = min(waiting, key=lambda x: order.get(x, len(order)))
        waiting.discard(i)
        if not goes_behind(i):
            return
        between.add(i)
        waiting |= set(i.users) - between
        if closed(between, i):
            yield i, set(between)
        if i.is_root:
            return


def closed(between: set[Instruction], root: Instruction) -> bool:
    """Whether nothing but `root` is read from outside."""
    return all(u in between for i in between if i is not root for u in i.users)


def needed(root: Instruction, members: set[Instruction]) -> set[Instruction]:
    found, stack = {root}, [root]
    while stack:
        for o in stack.pop().operands:
            if o in members and o not in found:
                found.add(o)
                stack.append(o)
    return found
