"""collective-quantizer: values are exchanged in the narrower of two types."""

from __future__ import annotations

from heron.analysis.devices.groups import device_groups, device_pairs
from heron.analysis.devices.replication import replicated_values
from heron.hlo.facts import having, reindexes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass

#: collectives that hand elements on as they are, with one result of the operand's element type
_MOVING = having(Trait.MOVES_BETWEEN)


@register
@dataclass(frozen=True)
class CollectiveQuantizer(Pass):
    """Converts before an exchange where the result has fewer bits than the operand, and afterwards where it has more.

    Elements are only moved by all-gathers, all-to-alls, permutes and broadcasts, so the values are the same. Scaling,
    clamping and what else is done to each element on the way to the conversion goes with it, where the other operands
    are scalars that are equal on all devices that exchange.

    HloModule example, replica_count=2

    g = f32[8] all-gather(f32[4] x), dimensions={0}
    ROOT c = bf16[8] convert(g)
    ->
    HloModule example, replica_count=2

    c = bf16[4] convert(x)
    ROOT g = bf16[8] all-gather(c), dimensions={0}
    """

    name = "collective-quantizer"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.parent is not c or i.opcode not in _MOVING or not is_alone(i):
                    continue
                moved = _narrowed(i, module) or _widened_later(i, module)
                if moved:
                    ctx.decide(True, "fewer bytes are exchanged", subject=i.name)
                    changed = True
        return changed


def _bits(i: Instruction) -> int:
    return i.shape.element_type.bits


def _narrowed(i: Instruction, module: Module) -> bool:
    """Convert the operand of an exchange whose only use, maybe scaled and moved, is a conversion to fewer bits."""
    path, last = [i], i
    while last.opcode != "convert":
        if len(last.users) != 1 or last.is_root:
            return False
        (last,) = last.users
        if not _keeps_elements(last, path[-1]):
            return False
        path.append(last)
    work = path[1:]
    if not work or _bits(last) >= _bits(i) or not _is_free(i, work, path, module):
        return False
    c, (x,) = i.parent, i.operands
    assert c is not None
    before = dict(zip(work, path, strict=False))  # each op with the one on the path before it
    small = x
    for op in work:
        if not reindexes(op):
            small = _applied(op, before[op], small)
    new = c.add(i.opcode, [small], i.shape.with_type(small.shape.element_type), like=i, **i.attrs)
    for op in work:
        if reindexes(op):
            new = c.attach(_in_type(op, new))
    c.replace(last, new)
    return True


def _widened_later(i: Instruction, module: Module) -> bool:
    """Exchange the operand of a conversion to more bits, and do what is done to it on the way afterwards."""
    path, first = [i], i.operands[0]
    while first.opcode != "convert":
        operands = [o for o in first.operands if not _is_scalar_everywhere(o)]
        if len(operands) != 1 or len(first.users) != 1 or first.is_root or not _keeps_elements(first, operands[0]):
            return False
        path.append(first)
        (first,) = operands
    path.append(first)
    work = path[:0:-1]  # from the conversion on
    if _bits(first.operands[0]) >= _bits(first) or not _is_free(i, work, [first.operands[0], *work], module):
        return False
    c, small = i.parent, first.operands[0]
    assert c is not None
    for op in work:
        if reindexes(op):
            small = c.attach(_in_type(op, small))
    new = c.add(i.opcode, [small], i.shape.with_type(small.shape.element_type), like=i, **i.attrs)
    for op, before in zip(work, [first.operands[0], *work], strict=False):
        if not reindexes(op):
            new = _applied(op, before, new)
    c.replace(i, new)
    return True


def _keeps_elements(op: Instruction, x: Instruction) -> bool:
    """Whether `op` moves elements of `x`, or works on each by itself with scalars."""
    if op.control_predecessors or op.control_successors or op.operands.count(x) != 1:
        return False
    if reindexes(op):
        return len(op.operands) == 1 and op.opcode != "broadcast"
    return op.op.is_elementwise and all(o is x or _is_scalar_everywhere(o) for o in op.operands)


def _is_scalar_everywhere(o: Instruction) -> bool:
    """Whether all elements of a value are one scalar, which can be spread over any shape."""
    return o.shape.is_array and (o.opcode == "broadcast" and o.operands[0].shape.rank == 0 or o.shape.rank == 0)


def _is_free(i: Instruction, work: list[Instruction], before: list[Instruction], module: Module) -> bool:
    """Whether the work may be done on either side of exchange `i`."""
    others = [o for op, x in zip(work, before, strict=False) for o in op.operands if o is not x]
    if not others:
        return True
    # who receives nothing has zeros, which the work would change
    if i.opcode == "collective-permute" and len(device_pairs(i, module)) < module.replica_count * module.num_partitions:
        return False
    if i.opcode == "collective-permute":
        groups = (tuple(range(module.replica_count * module.num_partitions)),)
    else:
        groups = device_groups(i, module)
    if sum(map(len, groups)) < module.replica_count * module.num_partitions:
        return False
    assert i.parent is not None
    equal = replicated_values(i.parent, module, groups)
    return all(o in equal for o in others)


def _applied(op: Instruction, before: Instruction, x: Instruction) -> Instruction:
    """The elementwise `op` on `x`, of another shape than what it was on before."""
    c = x.parent
    assert c is not None
    operands = [x if o is before else _spread(o, x.shape) for o in op.operands]
    return c.add(op.opcode, operands, x.shape.with_type(op.shape.element_type), like=op, **op.attrs)


def _spread(o: Instruction, shape: Shape) -> Instruction:
    """A scalar, or its broadcast, over that shape."""
    if o.shape.rank == 0:
        return o
    assert o.parent is not None
    return o.parent.add("broadcast", o.operands, shape.with_type(o.shape.element_type), like=o, dimensions=())


def _in_type(op: Instruction, x: Instruction) -> Instruction:
    """The movement `op` of the elements of `x`, of another type than those it moved before."""
    made = op.clone([x])
    made.shape = op.shape.with_type(x.shape.element_type)
    return made
