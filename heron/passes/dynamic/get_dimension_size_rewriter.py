"""get-dimension-size-rewriter: sizes that are known without looking at the array."""

from __future__ import annotations

from heron.analysis.dynamic_sizes import DynamicSizes, Size, below
from heron.hlo.facts import having
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import scalar
from heron.hlo.ir.types import S32
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import is_static
from heron.passes.rewriting.building import scalar as constant
from heron.passes.rewriting.expander import home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class GetDimensionSizeRewriter(Pass):
    """Replaces the size of a dimension by a constant where it is static, else by what it is made of.

    That is what the program set it to, or the size of what brought it in, a parameter or a loop: the arrays between
    need not be there for it. An array whose dimension is set to the one size it can have is as it was.

    a = f32[<=8,4] set-dimension-size(f32[8,4] x, s32[] n), dimensions={0}
    b = f32[4,<=8] transpose(a), dimensions={1,0}
    c = f32[4,<=16] concatenate(b, f32[4,<=8] y), dimensions={1}
    ROOT r = s32[] get-dimension-size(c), dimensions={1}
    ->
    m = s32[] get-dimension-size(y), dimensions={1}
    ROOT r = s32[] add(m, n)
    """

    name = "get-dimension-size-rewriter"
    looks_for = having(Trait.SIZES)
    constraints = (Constraint("get-dimension-size-rewriter", "dynamic-padder", "the padder reads every size it meets"),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in [i for i in module.instructions() if i.opcode == "set-dimension-size" and is_static(i)]:
            home(i).replace(i, i.operands[0])
            changed = True
        asked = [i for i in module.instructions() if i.opcode == "get-dimension-size"]
        if not asked:
            return changed
        found = DynamicSizes(module)
        for i in asked:
            size = found.whole(i.operands[0], i.dimensions[0])
            if not _is_itself(i, size):
                home(i).replace(i, _written(home(i), size))
                changed = True
        return changed


def _is_itself(i: Instruction, size: Size) -> bool:
    """Whether the size is asked of what brings it in."""
    x, index = i.operands[0], ()
    while x.opcode == "get-tuple-element":
        x, index = x.operands[0], (x.index, *index)
    return size.op == "of" and size.args == (x, (index, i.dimensions[0]))


def _written(c: Computation, size: Size) -> Instruction:
    """A size as a value of the computation."""
    made: dict[Size, Instruction] = {}
    for s in below(size):
        match s.op:
            case "number":
                made[s] = constant(c, S32, s.args[0])
            case "value":
                made[s] = s.args[0]
            case "of":
                x, (index, d) = s.args
                for n in index:
                    x = c.add("get-tuple-element", [x], index=n)
                made[s] = c.add("get-dimension-size", [x], dimensions=(d,))
            case _:
                made[s] = c.add(s.op, [made[p] for p in s.args], scalar(S32))
    return made[size]
