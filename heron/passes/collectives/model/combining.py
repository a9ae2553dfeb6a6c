"""Combining independent collectives of one kind into one with several operands.

A collective takes a latency and a time for its bytes. Small ones are therefore combined until their bytes take far
longer than the latency: `combined_bytes` is the size from which another operand no longer pays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field
from typing import ClassVar

from heron.analysis.cost.communication import pace
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import tuple_
from heron.passes.collectives.model.reductions import is_free
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.records import dataclass
from heron.targets import Target

#: bytes beyond which collectives stay apart whatever the latency: several can be hidden behind more of the computation
MOST_BYTES = 30 << 20
#: a combined collective is as long as this many latencies at least, so that latency is a small part of its time
_LATENCIES = 16


def combined_bytes(i: Instruction, module: Module, target: Target | None) -> int:
    """The bytes up to which collectives such as `i` are combined: their transfer over the links they cross takes
    `_LATENCIES` times the latency.

    They are no more than `MOST_BYTES`. Without a target, and where links have no latency, there is no
    limit.
    """
    found = None if target is None else pace(i, module, target)
    if found is None or not found.latency:
        return 1 << 62
    return min(MOST_BYTES, int(_LATENCIES * found.latency / found.per_byte))


@dataclass(frozen=True)
class Combiner(Pass):
    """The common part of the combiners: which collectives go together, in order of the program.

    ``most_bytes``: of the operands of one combined collective; 0: by latency and bandwidth of the target's links.
    ``most_operands``: of one combined collective.
    """

    most_bytes: int = 0
    most_operands: int = 256

    #: the collective
    opcode: ClassVar[str]

    def key(self, i: Instruction) -> Hashable | None:
        """Equal for collectives that one can do; None for one that stays alone."""
        raise NotImplementedError(self.name)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            found = [i for i in c.instructions if i.opcode == self.opcode and is_free(i)]
            if len(found) < 2:
                continue
            most = self.most_bytes or combined_bytes(found[0], module, ctx.target)
            for members in _sets(c, found, self.key, most, self.most_operands):
                _combine(c, members)
                ctx.decide(True, f"one exchange for {len(members)} arrays", subject=members[0].name)
                changed = True
        return changed


@dataclass(slots=True)
class _Set:
    """Collectives that become one, none of which depends on another."""

    members: list[Instruction] = field(default_factory=list)
    size: int = 0
    operands: int = 0


def _sets(
    c: Computation,
    found: Sequence[Instruction],
    key: Callable[[Instruction], Hashable | None],
    most_bytes: int,
    most_operands: int,
) -> Iterator[list[Instruction]]:
    """Sets of two collectives or more with equal keys, within the limits, independent of each other.

    A collective has a level: the number of collectives on the longest path to it. Those of one level and key cannot
    depend on each other, whatever is combined elsewhere on that level.
    """
    levels = _levels(c, set(found))
    open_sets: dict[Hashable, _Set] = {}
    for i in found:
        kind = key(i)
        if kind is None:
            continue
        size = sum(o.shape.byte_size for o in i.operands)
        at = (levels[i], kind)
        current = open_sets.get(at)
        if current is None or current.size + size > most_bytes or current.operands + len(i.operands) > most_operands:
            if current is not None and len(current.members) > 1:
                yield current.members
            current = open_sets[at] = _Set()
        current.members.append(i)
        current.size += size
        current.operands += len(i.operands)
    yield from (s.members for s in open_sets.values() if len(s.members) > 1)


def _levels(c: Computation, collectives: set[Instruction]) -> dict[Instruction, int]:
    """For each collective, the number of collectives before it on the longest path, control edges included."""
    before: dict[Instruction, int] = {}
    for i in c.post_order():
        reached = [before[o] + (o in collectives) for o in (*i.operands, *i.control_predecessors)]
        before[i] = max(reached, default=0)
    return {i: before[i] for i in collectives}


def _combine(c: Computation, members: Sequence[Instruction]) -> None:
    """One collective with the operands of all; its elements take the place of the results."""
    first = members[0]
    operands = [o for m in members for o in m.operands]
    shapes = [s for m in members for s in (m.shape.tuple_shapes or (m.shape,))]
    one = c.add(first.opcode, operands, tuple_(tuple(shapes)), like=first, **first.attrs)
    at = 0
    for m in members:
        count = len(m.operands)
        parts = [c.add("get-tuple-element", [one], shapes[at + n], index=at + n) for n in range(count)]
        c.replace(m, c.add("tuple", parts, m.shape) if m.shape.is_tuple else parts[0])
        at += count
