"""The walk through a program: every computation is built anew on parts, op by op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition import default, registry
from heron.passes.sharding.partition.part import Part

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


def visit(p: Partitioner, computation: Computation) -> list[Part]:
    """Partition all instructions of a computation into the one being built; the parts of the root's leaves.

    Parameters that the frame has parts for already are taken as they are.
    """
    for i in computation.post_order():
        if i not in p.frame.parts:
            p.frame.parts[i] = _settled(p, i, partition(p, i))
    return p.frame.parts[computation.root]


def partition(p: Partitioner, i: Instruction) -> list[Part]:
    """The parts of an instruction, whose operands have theirs. Raises SPMD001 for what cannot be partitioned."""
    p.at = i
    operands = [part for o in i.operands for part in p.frame.parts[o]]
    name = registry.name_of(i)
    rule = registry.rules().get(name)
    if rule is not None:
        taken = operands if registry.keeps_sums(name) else added_up(p, i, operands)
        found = rule(p, i, taken)
        if isinstance(found, Part):
            return [found]
        if found is not None:
            return found
    p.at = i
    return default.partition(p, i, operands)


def added_up(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """The operands without partial sums: each is added up into the sharding that propagation wants for it."""
    if not any(part.sharding.unreduced for part in operands):
        return operands
    wanted = [p.wanted(o, index) for o in i.operands for index, _ in o.shape.leaves()]
    return [
        p.reshard(part, TensorSharding.closed(s.dims, manual=s.manual)) if part.sharding.unreduced else part
        for part, s in zip(operands, wanted, strict=True)
    ]


def _settled(p: Partitioner, i: Instruction, parts: list[Part]) -> list[Part]:
    """Partial sums with several users are added up once, into the sharding that propagation wants."""
    if len(i.users) < 2 or not any(part.sharding.unreduced for part in parts):
        return parts
    p.at = i
    wanted = [p.wanted(i, index) for index, _ in i.shape.leaves()]
    return [p.reshard(part, s) if part.sharding.unreduced else part for part, s in zip(parts, wanted, strict=True)]
