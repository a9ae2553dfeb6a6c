"""collective-quantizer: values are exchanged in the narrower of two types."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register

#: collectives that hand elements on as they are, with one result of the operand's element type
_MOVING = having(Trait.MOVES_BETWEEN)


@register
@dataclass(frozen=True)
class CollectiveQuantizer(Pass):
    """Converts before an exchange where the result has fewer bits than the operand, and afterwards where it has more.

    Elements are only moved by all-gathers, all-to-alls, permutes and broadcasts, so the values are the same.

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
                moved = _narrowed(i) or _widened_later(i)
                if moved:
                    ctx.decide(True, "fewer bytes are exchanged", subject=i.name)
                    changed = True
        return changed


def _bits(i: Instruction) -> int:
    return i.shape.element_type.bits


def _narrowed(i: Instruction) -> bool:
    """Convert the operand of an exchange whose only user is a conversion to fewer bits."""
    if len(i.users) != 1 or i.is_root:
        return False
    (user,) = i.users
    if user.opcode != "convert" or _bits(user) >= _bits(i):
        return False
    c, (x,) = i.parent, i.operands
    assert c is not None
    to = user.shape.element_type
    small = c.add("convert", [x], x.shape.with_type(to), like=user)
    c.replace(user, c.add(i.opcode, [small], i.shape.with_type(to), like=i, **i.attrs))
    return True


def _widened_later(i: Instruction) -> bool:
    """Exchange the operand of a conversion to more bits, and convert the result."""
    (x,) = i.operands
    if x.opcode != "convert" or _bits(x.operands[0]) >= _bits(x):
        return False
    c, (small,) = i.parent, x.operands
    assert c is not None
    exchanged = c.add(i.opcode, [small], i.shape.with_type(small.shape.element_type), like=i, **i.attrs)
    c.replace(i, c.add("convert", [exchanged], i.shape, like=x))
    return True
