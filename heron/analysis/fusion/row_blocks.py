"""Fusions of products and kernels that are done a block of rows at a time: how they are cut, and what can be in one.

The rows of an array are told by its first dimensions; a block is a few neighbouring rows of one matrix of a batch. A
product computes rows of its result from rows of its left operand; a kernel follows if it computes rows from the same
rows alone.
"""

from __future__ import annotations

import json
from math import prod
from typing import TypeAlias

from heron.analysis.fusion.in_step import loop_groups
from heron.hlo.calls.backend_config import hints, member, whole
from heron.hlo.facts import having, is_alias, is_view, root_parts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import ShapeIndex
from heron.records import dataclass

#: an array that a step computes: the instruction, and the number of the output
Value: TypeAlias = tuple[Instruction, int]

KIND = "__row_blocks"
#: the numbers of a config, and the least each may be
_LEAST = {"batch": 1, "rows": 1, "block": 1, "width": 0}
#: what kernels may do with arrays from outside of the fusion on the way to their rows
_ANYWHERE = having(Trait.GIVEN, Trait.VIEW, Trait.GENERATED) | {"slice", "tuple"}


@dataclass(frozen=True, slots=True)
class RowBlocks:
    """``batch`` matrices of ``rows`` rows, done in blocks of ``block`` rows and ``width`` columns (0: whole rows)."""

    batch: int
    rows: int
    block: int
    width: int = 0

    def __str__(self) -> str:
        columns = f" by {self.width} columns" if self.width else ""
        return f"blocks of {self.block} rows{columns}, {self.batch * -(-self.rows // self.block)} of them"

    def count(self, columns: int) -> int:
        """The number of blocks of a result with so many columns."""
        return self.batch * -(-self.rows // self.block) * (-(-columns // self.width) if self.width else 1)

    def text(self) -> str:
        """The backend config of the fusion."""
        sizes = {"batch": self.batch, "rows": self.rows, "block": self.block, "width": self.width}
        config = {"kind": KIND, "row_block_config": sizes}
        return json.dumps({"fusion_backend_config": config}, separators=(",", ":"))


def row_blocks_of(i: Instruction) -> RowBlocks | None:
    """The row-block plan of a fusion; None for any other instruction."""
    if i.opcode != "fusion" or i.attrs["kind"] != "kCustom" or KIND not in i.extras.get("backend_config", ""):
        return None
    given = member(hints(i), "fusion_backend_config", "row_block_config")
    sizes = [whole(given.get(name), least, (1 << 63) - 1) for name, least in _LEAST.items()]
    return RowBlocks(*(n for n in sizes if n is not None)) if None not in sizes else None


def steps_of(i: Instruction) -> list[Instruction]:
    """The products and kernels of a fusion that is done in blocks of rows, in order."""
    return [inner for inner in i.attrs["calls"].post_order() if inner.opcode in ("dot", "fusion")]


def value_of(operand: Instruction) -> Value:
    """The array that an operand of a step is, or is a bitcast of."""
    while operand.opcode == "bitcast":
        operand = operand.operands[0]
    if operand.opcode == "get-tuple-element":
        return operand.operands[0], operand.attrs["index"]
    return operand, 0


def outputs_of(i: Instruction) -> dict[Value, ShapeIndex]:
    """The arrays that are outputs of the fusion, and the indices of these in its result."""
    outputs = root_parts(i.attrs["calls"])
    return {value_of(o): (n,) if i.shape.is_tuple else () for n, o in enumerate(outputs)}


def source(i: Instruction) -> Instruction:
    """The instruction that computes `i`: what a bitcast, or a part of a tuple, is of."""
    while is_alias(i):
        i = i.operands[0]
    return i


def follows(kernel: Instruction, given: list[int], rows: int) -> str:
    """Why a kernel does not compute rows of its outputs from the same rows of its operands numbered `given`; empty if
    it does. ``rows``: how many there are."""
    body = kernel.attrs["calls"]
    roots = root_parts(body)
    dims = body.parameters[given[0]].shape.dims
    first = _row_dims(dims, rows)
    if first is None:
        return "its dimensions are not the product's rows"
    lead = dims[:first]
    for i in body.instructions:
        if i.opcode not in _ANYWHERE and i.opcode != "reduce" and not i.op.is_elementwise:
            return f"it holds a {i.opcode}"
    if any(not r.shape.is_array or r.shape.dims[:first] != lead for r in roots):
        return "its outputs have other rows"
    for n in given:
        if body.parameters[n].shape.dims[:first] != lead:
            return "its operands have other rows"
        if not _stays(body.parameters[n], lead):
            return "a row of it needs other rows"
    if not any(i.opcode == "reduce" for i in body.instructions):
        if len({r.shape.dims for r in roots}) > 1 or len(set(loop_groups(roots))) > 1:
            return "its outputs are loops of their own"
    return ""


def _row_dims(dims: tuple[int, ...], rows: int) -> int | None:
    """The number of leading dimensions that number `rows` rows, with a rest for the row itself."""
    return next((n for n in range(1, len(dims)) if prod(dims[:n]) == rows), None)


def _stays(value: Instruction, lead: tuple[int, ...]) -> bool:
    """Whether all that is computed from a value with rows `lead` is for the same row."""
    work, seen = [value], {value}
    while work:
        i = work.pop()
        for user in i.users:
            if user.opcode == "tuple" or user in seen:
                continue
            if not _next(i, user, lead):
                return False
            seen.add(user)
            work.append(user)
    return True


def _next(i: Instruction, user: Instruction, lead: tuple[int, ...]) -> bool:
    count = len(lead)
    if not user.shape.is_array or user.shape.dims[:count] != lead or i.shape.dims[:count] != lead:
        return False
    if user.opcode == "reduce":
        return i is user.operands[0] and len(user.operands) == 2 and min(user.attrs["dimensions"]) >= count
    if user.opcode == "broadcast":
        return tuple(user.attrs["dimensions"][:count]) == tuple(range(count))
    return user.op.is_elementwise or is_view(user)
