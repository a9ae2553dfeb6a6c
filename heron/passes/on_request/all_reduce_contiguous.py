"""all-reduce-contiguous: the operands of an all-reduce lie one behind the other in memory."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_free
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllReduceContiguous(Pass):
    """Replaces an all-reduce of several arrays by one of a single list that holds the elements of all.

    Networks that exchange one piece of memory at a time then do one exchange. The copies into the list and out of it
    cost memory traffic.

    HloModule example, replica_count=2

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    r = (f32[4], f32[2,3]) all-reduce(f32[4] x, f32[2,3] y), to_apply=sum
    p = f32[4] get-tuple-element(r), index=0
    q = f32[2,3] get-tuple-element(r), index=1
    ROOT t = (f32[2,3], f32[4]) tuple(q, p)
    ->
    HloModule example, replica_count=2

    z = f32[6] reshape(y)
    l = f32[10] concatenate(x, z), dimensions={0}
    r = f32[10] all-reduce(l), to_apply=sum
    p = f32[4] slice(r), slice={[0:4]}
    s = f32[6] slice(r), slice={[4:10]}
    q = f32[2,3] reshape(s)
    ROOT t = (f32[2,3], f32[4]) tuple(q, p)
    """

    name = "all-reduce-contiguous"
    constraints = (Constraint("all-reduce-combiner", "all-reduce-contiguous", "that makes what this looks for"),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode != "all-reduce" or not i.shape.is_tuple or not is_free(i):
                    continue
                if len({o.shape.element_type for o in i.operands}) != 1 or any(
                    any(o.shape.dynamic) for o in i.operands
                ):
                    continue
                _replace(i)
                ctx.decide(True, f"{len(i.operands)} arrays as one", subject=i.name)
                changed = True
        return changed


def _replace(i: Instruction) -> None:
    c, element = i.parent, i.operands[0].shape.element_type
    assert c is not None
    lists = [reshape(o, [o.shape.num_elements]) for o in i.operands]
    total = sum(x.shape.num_elements for x in lists)
    whole = c.add("concatenate", lists, array(element, [total]), like=i, dimensions=(0,)) if lists[1:] else lists[0]
    reduced = c.add("all-reduce", [whole], whole.shape, like=i, **i.attrs)
    parts: list[Instruction] = []
    at = 0
    for o in i.operands:
        end = at + o.shape.num_elements
        part = c.add("slice", [reduced], array(element, [end - at]), slice=((at, end, 1),)) if lists[1:] else reduced
        parts.append(reshape(part, o.shape.dims))
        at = end
    for user in list(i.users):
        if user.opcode == "get-tuple-element":
            c.replace(user, parts[user.index])
    if i.parent is c and (i.users or i.is_root):
        c.replace(i, c.add("tuple", parts, i.shape, like=i))
