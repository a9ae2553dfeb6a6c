"""Operations that move elements: broadcasts, reshapes, slices and their like."""

from __future__ import annotations

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape


@rule("broadcast_in_dim")
def _broadcast_in_dim(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return broadcast_in_dim(b, op, operands[0], op.types[0], op.ints("dims", "broadcast_dimensions"))


def broadcast_in_dim(b: Block, op: Operation, x: Instruction, to: Shape, dims: tuple[int, ...]) -> Instruction:
    """Operand dimension n is result dimension ``dims[n]``, stretched when its size is 1.

    Where nothing grows it is a reshape; stretched dimensions are dropped first.
    """
    shape = x.shape
    if len(dims) != shape.rank or len(set(dims)) != len(dims) or not all(0 <= d < to.rank for d in dims):
        why = f"{shape.bare} to {to.bare} with {list(dims)}"
        op.fail("SHLO006", f"{op.name} needs one result dimension for each of the operand's", why=why)
    for n, d in enumerate(dims):
        if shape.dims[n] not in (1, to.dims[d]):
            op.fail("SHLO004", f"dimension {n} cannot become {to.dims[d]} long", why=f"{shape.bare} to {to.bare}")
    if to.element_type is not shape.element_type:
        op.fail("SHLO004", f"{op.name} keeps the element type", why=f"{shape.bare} to {to.bare}")
    if to.dynamic:
        return b.checked("broadcast", (x,), to, dimensions=dims)
    if not dims:
        return b.broadcast_scalar(x, to)
    if shape.bare is to.bare and dims == tuple(range(to.rank)):
        return x
    if shape.num_elements == to.num_elements and list(dims) == sorted(dims):
        return b.add("reshape", (x,), to)
    kept = [n for n, d in enumerate(dims) if shape.dims[n] == to.dims[d]]
    if len(kept) < shape.rank:
        x = b.add("reshape", (x,), shape.with_dims(tuple(shape.dims[n] for n in kept)))
    return b.checked("broadcast", (x,), to, dimensions=tuple(dims[n] for n in kept))


@rule("broadcast")
def _broadcast(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """New dimensions in front."""
    sizes = op.ints("sizes", "broadcast_sizes")
    rank = operands[0].shape.rank
    return b.checked("broadcast", operands, op.types[0], dimensions=tuple(range(len(sizes), len(sizes) + rank)))


@rule("reshape")
def _reshape(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    (x,) = operands
    return x if x.shape.bare is op.types[0].bare else b.checked("reshape", operands, op.types[0])


@rule("transpose")
def _transpose(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("transpose", operands, dimensions=op.ints("dims", "permutation"))


@rule("reverse")
def _reverse(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("reverse", operands, dimensions=op.ints("dims", "dimensions"))


@rule("concatenate")
def _concatenate(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("concatenate", operands, dimensions=(op.integer("dim", "dimension"),))


@rule("slice")
def _slice(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    ranges = op.find("slice")
    if ranges is None and op.find("index") == ():
        ranges = ()
    if ranges is None:
        starts, limits = op.ints("start_indices"), op.ints("limit_indices")
        ranges = tuple(zip(starts, limits, op.ints("strides"), strict=True))
    return b.add("slice", operands, slice=ranges)


@rule("pad")
def _pad(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    low, high = op.ints("low", "edge_padding_low"), op.ints("high", "edge_padding_high")
    interior = op.ints("interior", "interior_padding")
    return b.add("pad", operands, padding=tuple(zip(low, high, interior, strict=True)))


@rule("dynamic_slice")
def _dynamic_slice(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("dynamic-slice", operands, dynamic_slice_sizes=op.ints("sizes", "slice_sizes"))


@rule("dynamic_update_slice")
def _dynamic_update_slice(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("dynamic-update-slice", operands)


@rule("tuple")
def _tuple(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.tuple(operands)


@rule("get_tuple_element")
def _get_tuple_element(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    index = op.find("index")
    if isinstance(index, tuple) and len(index) == 1:
        index = index[0]
    if not isinstance(index, int):
        op.wrong("index", "an integer")
    return b.add("get-tuple-element", operands, index=index)


@rule("optimization_barrier")
def _optimization_barrier(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    if not operands:
        return []
    return b.unpacked(b.add("opt-barrier", (b.packed(operands),)), len(operands))
