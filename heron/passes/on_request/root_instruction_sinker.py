"""root-instruction-sinker: results come last."""

from __future__ import annotations

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class RootInstructionSinker(Pass):
    """Moves the root of every scheduled computation to the end of its order.

    Who reads a schedule can then take the last instruction for the result: what is live at the end is live there. A
    root that others use gets a bitcast behind it, a tuple its elements in a new tuple. No pipeline has it: liveness
    goes by the root, wherever it stands.

    HloModule example, is_scheduled=true

    r = f32[4] exponential(f32[4] x)
    ROOT s = f32[4] add(r, r)
    unused = f32[4] negate(s)
    ->
    HloModule example, is_scheduled=true

    r = f32[4] exponential(x)
    s = f32[4] add(r, r)
    unused = f32[4] negate(s)
    ROOT t = f32[4] bitcast(s)
    """

    name = "root-instruction-sinker"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c, order in (module.schedule or {}).items():
            changed |= order[-1] is not c.root and _sink(c, order)
        return changed


def _sink(c: Computation, order: list[Instruction]) -> bool:
    root = c.root
    if not root.users and not root.control_successors:
        order.remove(root)
        order.append(root)
        return True
    if root.shape.is_tuple:
        elements = [
            c.add("get-tuple-element", [root], s, like=root, index=n)
            for n, s in enumerate(root.shape.tuple_shapes or ())
        ]
        new = [*elements, c.add("tuple", elements, root.shape, like=root)]
    elif root.shape.is_array:
        new = [c.add("bitcast", [root], root.shape, like=root)]
    else:
        return False  # a token can be handed on by nothing
    order += new
    c.root = new[-1]
    return True
