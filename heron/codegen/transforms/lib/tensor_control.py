"""Loops, ifs and whiles of `scf` without tensors: those they carried are the buffers they started as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from heron.codegen.ir.builder import Builder
from heron.codegen.ir.editing import replace
from heron.codegen.transforms.lib.buffers import Buffers
from heron.errors import HeronError

LowerBlock: TypeAlias = Callable[[Block], None]
Lowering: TypeAlias = Callable[[Operation, Buffers, Builder, LowerBlock], None]


def lower_for(op: Operation, buffers: Buffers, builder: Builder, lower_block: LowerBlock) -> None:
    """`scf.for`."""
    block = op.regions[0].block
    inits = op.operands[3:]
    keep = _carried(buffers, inits, block.args[1:])
    lower_block(block)
    _end(buffers, block, inits)
    if len(keep) == len(inits):
        return
    _drop_arguments(buffers, block, 1, inits)
    kept = [inits[i] for i in keep]
    new = scf.ForOp.create(
        operands=(*op.operands[:3], *kept),
        result_types=[v.type for v in kept],
        attributes=op.attributes,
        regions=[op.detach_region(0)],
    )
    _replace_control(op, new, keep, inits, builder)


def lower_if(op: Operation, buffers: Buffers, builder: Builder, lower_block: LowerBlock) -> None:
    """`scf.if`."""
    ends: list[list[SSAValue]] = []
    for region in op.regions:
        if region.blocks:
            lower_block(region.block)
            last = region.block.last_op
            ends.append(list(last.operands) if last is not None else [])
    if not any(isinstance(r.type, TensorType) for r in op.results):
        return
    for index, result in enumerate(op.results):
        if isinstance(result.type, TensorType):
            _same_buffer(buffers, op, [end[index] for end in ends])
    for region in op.regions:
        _end(buffers, region.block, ends[0])
    keep = [i for i, r in enumerate(op.results) if not isinstance(r.type, TensorType)]
    new = scf.IfOp.create(
        operands=op.operands,
        result_types=[op.results[i].type for i in keep],
        attributes=op.attributes,
        regions=[op.detach_region(op.regions[0]) for _ in range(2)],
    )
    _replace_control(op, new, keep, ends[0], builder)


def lower_while(op: Operation, buffers: Buffers, builder: Builder, lower_block: LowerBlock) -> None:
    """`scf.while`."""
    before, after = (region.block for region in op.regions)
    inits = list(op.operands)
    keep = _carried(buffers, inits, before.args)
    lower_block(before)
    condition = before.last_op
    assert condition is not None
    passed = list(condition.operands[1:])
    keep_after = _carried(buffers, passed, after.args)
    lower_block(after)
    _end(buffers, after, inits)
    if len(keep) == len(inits) and len(keep_after) == len(passed):
        return
    condition.operands = [condition.operands[0], *(passed[i] for i in keep_after)]
    _drop_arguments(buffers, before, 0, inits)
    _drop_arguments(buffers, after, 0, passed)
    new = scf.WhileOp.create(
        operands=[inits[i] for i in keep],
        result_types=[passed[i].type for i in keep_after],
        attributes=op.attributes,
        regions=[op.detach_region(op.regions[0]) for _ in range(2)],
    )
    _replace_control(op, new, keep_after, passed, builder)


def _carried(buffers: Buffers, inits: Sequence[SSAValue], args: Sequence[SSAValue]) -> list[int]:
    """Binds tensor block arguments to the buffers of `inits`; the positions of the values that stay."""
    keep: list[int] = []
    for index, (init, arg) in enumerate(zip(inits, args, strict=True)):
        if buffers.has(init):
            arg.replace_all_uses_with(init)
        else:
            keep.append(index)
    return keep


def _end(buffers: Buffers, block: Block, starts: Sequence[SSAValue]) -> None:
    """Drops tensors from the block's yield, each of which must be the buffer it started as."""
    last = block.last_op
    if last is None or not any(buffers.has(v) for v in last.operands):
        return
    for start, end in zip(starts, last.operands, strict=True):
        if buffers.has(end):
            _same_buffer(buffers, last, [start, end])
    last.operands = [v for v in last.operands if not buffers.has(v)]


def _same_buffer(buffers: Buffers, op: Operation, values: Sequence[SSAValue]) -> None:
    pointers = {buffers.of(v).pointer for v in values}
    if len(pointers) != 1:
        raise HeronError(
            "GEN123",
            "the branches of a region end with different tensors",
            where=str(op),
            why="a tensor carried through a region must be the buffer it started as",
            hint="write both results to the same destination",
        )


def _drop_arguments(buffers: Buffers, block: Block, offset: int, inits: Sequence[SSAValue]) -> None:
    for index in reversed(range(len(inits))):
        if buffers.has(inits[index]):
            block.erase_arg(block.args[index + offset])


def _replace_control(
    op: Operation, new: Operation, keep: list[int], inits: Sequence[SSAValue], builder: Builder
) -> None:
    builder.add(new)
    values = list(inits)
    for result, index in zip(new.results, keep, strict=True):
        values[index] = result
    replace(op, values)
