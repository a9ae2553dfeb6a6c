"""Sizes given as operands: bounded dimensions, and operations that become their static forms once sizes are known."""

from __future__ import annotations

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.lower.indexing import gather
from heron.frontends.stablehlo.lower.movement import broadcast_in_dim
from heron.frontends.stablehlo.lower.products import convolution
from heron.frontends.stablehlo.sizes import integers, same_value, sized
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import S32


@rule("get_dimension_size")
def _get_dimension_size(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """A constant unless the dimension is bounded."""
    (x,) = operands
    d = op.integer("dim", "dimension")
    if 0 <= d < x.shape.rank and not (x.shape.dynamic and x.shape.dynamic[d]):
        return b.scalar(x.shape.dims[d], S32)
    return b.add("get-dimension-size", operands, dimensions=(d,))


@rule("set_dimension_size")
def _set_dimension_size(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("set-dimension-size", operands, op.types[0], dimensions=(op.integer("dim", "dimension"),))


@rule("dynamic_broadcast_in_dim")
def _dynamic_broadcast_in_dim(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    to = _result(op, operands[1], "output_dimensions")
    return broadcast_in_dim(b, op, operands[0], to, op.ints("dims", "broadcast_dimensions"))


@rule("dynamic_iota")
def _dynamic_iota(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    to = _result(op, operands[0], "output_shape")
    return b.checked("iota", (), to, iota_dimension=op.integer("dim", "iota_dimension"))


@rule("dynamic_reshape")
def _dynamic_reshape(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """A plain reshape unless the result is bounded; then each size is an operand."""
    x, sizes = operands
    if not op.types[0].dynamic or op.types[0].is_unbounded:
        return b.checked("reshape", (x,), _result(op, sizes, "output_shape"))
    to = op.types[0]
    each = []
    for d in range(to.rank):
        one = b.add("slice", (sizes,), slice=((d, d + 1, 1),))
        each.append(b.add("reshape", (one,), sizes.shape.with_dims(())))
    return b.checked("dynamic-reshape", [x, *each], to)


@rule("dynamic_gather")
def _dynamic_gather(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return gather(b, op, operands[:2], known(op, operands[2], "slice_sizes"))


@rule("dynamic_conv")
def _dynamic_conv(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    padding = known(op, operands[2], "padding")
    return convolution(b, op, operands[:2], list(zip(padding[::2], padding[1::2], strict=True)))


@rule("real_dynamic_slice")
def _real_dynamic_slice(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """A slice; where only its sizes are known, a dynamic-slice of all it spans, then every so many elements of that."""
    x, start, limit, stride = operands
    steps = known(op, stride, "strides")
    if integers(start) is not None and integers(limit) is not None:
        columns = (known(op, start, "start_indices"), known(op, limit, "limit_indices"), steps)
        return b.add("slice", (x,), slice=tuple(zip(*columns, strict=True)))
    spans = _spans(op, start, limit, steps)
    each = []
    for d in range(x.shape.rank):
        one = b.add("slice", (start,), slice=((d, d + 1, 1),))
        each.append(b.add("reshape", (one,), start.shape.with_dims(())))
    found = b.add("dynamic-slice", [x, *each], dynamic_slice_sizes=spans)
    if all(step == 1 for step in steps):
        return found
    return b.add("slice", (found,), slice=tuple((0, n, step) for n, step in zip(spans, steps, strict=True)))


def _spans(op: Operation, start: Instruction, limit: Instruction, steps: tuple[int, ...]) -> tuple[int, ...]:
    """The number of elements between start and limit: from the result's type, or a limit of start plus constants."""
    stated = op.types[0]
    if not stated.is_unbounded:
        return tuple((n - 1) * step + 1 if n else 0 for n, step in zip(stated.dims, steps, strict=True))
    if limit.opcode == "add":
        for one, other in (limit.operands, reversed(limit.operands)):
            if integers(other) is not None and same_value(one, start):
                return known(op, other, "limit_indices")
    return known(op, limit, "limit_indices") if integers(limit) is None else known(op, start, "start_indices")


@rule("dynamic_pad")
def _dynamic_pad(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    columns = [known(op, i, name) for i, name in zip(operands[2:], names, strict=True)]
    return b.add("pad", operands[:2], padding=tuple(zip(*columns, strict=True)))


def _result(op: Operation, sizes: Instruction, name: str) -> Shape:
    """The result's type, with the sizes of an operand where the text leaves them open.

    Where it does not, the operand may be unknown, and must agree when it is known.
    """
    stated = op.types[0]
    if stated.is_unbounded or (integers(sizes) is not None and not stated.dynamic):
        return sized(op, stated, known(op, sizes, name))
    return stated


def known(op: Operation, i: Instruction, name: str) -> tuple[int, ...]:
    """The integers of an operand that says sizes. Raises SHLO011 when they are not known when compiling."""
    values = integers(i)
    if values is None:
        cause = "an argument" if i.opcode == "parameter" else f"'{i.opcode}'"
        op.fail(
            "SHLO011",
            f"{op.name} has sizes that are not known when compiling: its {name}",
            why=f"they come from {cause} of type {i.shape.bare}, whose value is known when the program runs",
            hint="heron.compile(text) compiles for the integers it is called with; or make them constants",
        )
    return tuple(int(v) for v in values.reshape(-1))
