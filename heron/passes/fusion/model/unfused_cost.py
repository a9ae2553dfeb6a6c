"""Seconds of the work of a fusion when it is done apart: by libraries, and kernels before and behind them."""

from __future__ import annotations

from collections.abc import Sequence

from heron.analysis.blocks.cost import library_seconds
from heron.analysis.cost.estimate import Clock, clock_of
from heron.analysis.fusion.roles import is_consumer
from heron.hlo.facts import is_view
from heron.hlo.ir.instruction import Instruction
from heron.passes.fusion.model.tiled import FREE
from heron.targets import Target


def seconds_apart(root: Instruction, members: set[Instruction], target: Target) -> float:
    """Seconds of the same work by a library and kernels: one for each operand that is computed, one for the rest."""
    return several_apart([root], members, target)


def several_apart(roots: Sequence[Instruction], members: set[Instruction], target: Target) -> float:
    """The same of what leads to several results: what they share is done once."""
    clock, dots = clock_of(target), [i for i in members if i.opcode == "dot"]
    seconds = sum(library_seconds(dot, target) for dot in dots)
    around = members - set(dots)
    operands = dict.fromkeys(_computed(o, around) for dot in dots for o in dot.operands)
    seconds += sum(kernel(o, around, clock) for o in operands if o in around and o.opcode not in FREE)
    return seconds + sum(rest(root, around, clock) for root in roots)


def _computed(operand: Instruction, around: set[Instruction]) -> Instruction:
    """The array that a kernel must write for an operand, which may be a view of it."""
    while is_view(operand) and operand in around:
        operand = operand.operands[0]
    return operand


def rest(root: Instruction, members: set[Instruction], clock: Clock) -> float:
    """Seconds until the readers of `root` have it, when `members` are computed by a loop, or by the readers."""
    readers = len(root.users)
    read = readers * root.shape.byte_size / clock.bandwidth
    if root not in members:
        return read
    alone = kernel(root, members, clock) + read
    if root.is_root or not all(is_consumer(u) for u in root.users):
        return alone
    return min(alone, readers * _inputs(root, members) / clock.bandwidth)


def kernel(root: Instruction, members: set[Instruction], clock: Clock) -> float:
    """Seconds of a loop that computes `root`."""
    return clock.launch + (_inputs(root, members) + root.shape.byte_size) / clock.bandwidth


def _inputs(root: Instruction, members: set[Instruction]) -> int:
    """Bytes that `root` is computed from by `members`."""
    read: dict[Instruction, None] = {}
    seen, stack = {root}, [root]
    while stack:
        for o in stack.pop().operands:
            if o not in members:
                read[o] = None
            elif o not in seen:
                seen.add(o)
                stack.append(o)
    return sum(o.shape.byte_size for o in read)
