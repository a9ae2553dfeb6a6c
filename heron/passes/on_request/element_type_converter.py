"""element-type-converter: one element type computed as another."""

from __future__ import annotations

from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.types import by_name
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.precision.model.widen import in_wider
from heron.passes.rewriting.expander import home
from heron.records import dataclass

#: what only hands values on, is at the edge of the program, or is about the type itself
_LEFT = having(Trait.FREE, Trait.CONVERTS) | {"custom-call", "copy-start", "rng-bit-generator"}


@register
@dataclass(frozen=True)
class ElementTypeConverter(Pass):
    """Converts operands of type ``eliminate`` to ``replace_with`` before every op, and results back after it.

    For backends that lack a type altogether: movement is converted too. Ops that call computations stay, as their
    computations are converted inside. ``replace_with`` must hold all values of ``eliminate``. No pipeline has it:
    heron's backends lack none.

    ROOT r = bf16[4] negate(bf16[4] x)
    ->
    a = f32[4] convert(x)
    n = f32[4] negate(a)
    ROOT r = bf16[4] convert(n)
    """

    name = "element-type-converter"
    eliminate: str = "bf16"
    replace_with: str = "f32"

    def run(self, module: Module, ctx: PassContext) -> bool:
        low, high = by_name(self.eliminate), by_name(self.replace_with)
        changed = False
        for i in list(module.instructions()):
            if i.opcode in _LEFT or i.called or i.op.has_side_effect or not _has(i, low):
                continue
            home(i).replace(i, in_wider(i, low, high))
            changed = True
        return changed


def _has(i: Instruction, low: object) -> bool:
    return any(s.element_type is low for x in (i, *i.operands) for _, s in x.shape.leaves())
