"""Sizes given at run time: bounded dimensions, and operations whose result type is static all the same."""

from __future__ import annotations

from typing import Any

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.lower.indexing import gather
from heron.frontends.stablehlo.lower.movement import broadcast_in_dim
from heron.frontends.stablehlo.lower.products import convolution
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.instruction import Instruction


@rule("get_dimension_size")
def _get_dimension_size(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("get-dimension-size", operands, dimensions=(op.integer("dim", "dimension"),))


@rule("set_dimension_size")
def _set_dimension_size(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("set-dimension-size", operands, op.types[0], dimensions=(op.integer("dim", "dimension"),))


@rule("dynamic_broadcast_in_dim")
def _dynamic_broadcast_in_dim(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return broadcast_in_dim(b, op, operands[0], op.types[0], op.ints("dims", "broadcast_dimensions"))


@rule("dynamic_iota")
def _dynamic_iota(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.checked("iota", (), op.types[0], iota_dimension=op.integer("dim", "iota_dimension"))


@rule("dynamic_reshape")
def _dynamic_reshape(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """A plain reshape unless the result is bounded; then each size is an operand."""
    to = op.types[0]
    if not to.dynamic:
        return b.checked("reshape", operands[:1], to)
    x, sizes = operands
    each = []
    for d in range(to.rank):
        one = b.add("slice", (sizes,), slice=((d, d + 1, 1),))
        each.append(b.add("reshape", (one,), sizes.shape.with_dims(())))
    return b.checked("dynamic-reshape", [x, *each], to)


@rule("dynamic_gather")
def _dynamic_gather(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return gather(b, op, operands[:2], _known(op, operands[2], "slice_sizes"))


@rule("dynamic_conv")
def _dynamic_conv(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    padding = _known(op, operands[2], "padding")
    op.attrs["padding"] = tuple(zip(padding[::2], padding[1::2], strict=True))
    return convolution(b, op, operands[:2])


@rule("real_dynamic_slice")
def _real_dynamic_slice(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    names = ("start_indices", "limit_indices", "strides")
    columns = [_known(op, i, name) for i, name in zip(operands[1:], names, strict=True)]
    return b.add("slice", operands[:1], slice=tuple(zip(*columns, strict=True)))


@rule("dynamic_pad")
def _dynamic_pad(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    columns = [_known(op, i, name) for i, name in zip(operands[2:], names, strict=True)]
    return b.add("pad", operands[:2], padding=tuple(zip(*columns, strict=True)))


def _known(op: Operation, i: Instruction, name: str) -> tuple[int, ...]:
    """The integers of an operand that must be a constant."""
    literal: Any = i.attrs.get("literal")
    if i.opcode != "constant":
        op.fail("SHLO011", f"{op.name} needs a constant as {name}", why="sizes must be known when compiling")
    return tuple(int(v) for v in literal.array.reshape(-1))
