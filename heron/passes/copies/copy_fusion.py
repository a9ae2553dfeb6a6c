"""copy-fusion: copies become part of kernels, of one of their own or of the one that reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heron.analysis.fusion.in_place import in_place_pairs
from heron.analysis.fusion.iteration_space import is_shaped
from heron.analysis.graph.reachability import Reachability
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.horizontal_fusion import heights
from heron.passes.fusion.model.join import join_kernels
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CopyFusion(Pass):
    """Puts copies into kernels, so that less is launched and less memory touched.

    Of an array that is copied only to be updated, most of which the update overwrites, one kernel writes every element
    once: the update where it goes, the old elements elsewhere; what computes the update goes into the kernel, too.
    ``least_update``: the share of the array that the update must overwrite for this.

    With ``join``, copies in one computation that need nothing of each other become one kernel, with fills
    (kernels that read nothing) beside them. Limits: ``max_arguments`` and ``max_outputs`` of a kernel.

    a = f32[8] copy(f32[8] x)
    b = s32[] copy(s32[] y)
    ROOT t = (f32[8], s32[]) tuple(a, b)
    ->
    body {
      p = f32[8] parameter(0)
      q = s32[] parameter(1)
      c = f32[8] copy(p)
      d = s32[] copy(q)
      ROOT r = (f32[8], s32[]) tuple(c, d)
    }
    f = (f32[8], s32[]) fusion(x, y), kind=kLoop, calls=body
    a = f32[8] get-tuple-element(f), index=0
    b = s32[] get-tuple-element(f), index=1
    ROOT t = (f32[8], s32[]) tuple(a, b)
    """

    name = "copy-fusion"
    looks_for = frozenset({"copy"})
    constraints = (
        Constraint("copy-insertion", "copy-fusion", "it joins the copies that had to be made"),
        Constraint("copy-fusion", "memory-scheduler", "the kernels it makes must be scheduled"),
    )
    join: bool = True
    least_update: float = 0.5
    max_arguments: int = 480
    max_outputs: int = 24

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            copies = [i for i in c.instructions if _is_local(i)]
            if not copies:
                continue
            for copy in copies:
                changed |= self._into_update(copy, ctx)
            if self.join:
                changed |= self._join(c, ctx)
        if changed:
            module.schedule = None
        return changed

    # -- copies that are updated -------------------------------------------------------------------------------------
    def _into_update(self, copy: Instruction, ctx: PassContext) -> bool:
        """Let the update that reads `copy` write a whole array; False where it does not pay or cannot be."""
        update = next(iter(copy.users), None)
        if update is None or len(copy.users) > 1 or not self._covers(update, copy):
            return False
        assert copy.parent is not None
        group = [copy, *_makers(update, copy), update]
        reach = Reachability(copy.parent)
        if any(s is not update and reach.reaches(s, update) for i in group[:-1] for s in i.control_successors):
            ctx.decide(False, "something must run between the copy and the update", subject=copy.name)
            return False
        names = ", ".join(i.name for i in group)
        made = _joined(group, ctx)
        ctx.decide(True, "one kernel writes every element once", subject=made.name, object=names)
        return True

    def _covers(self, update: Instruction, copy: Instruction) -> bool:
        """Whether `update` is a kernel that overwrites, of its operand `copy` alone, enough."""
        if update.opcode != "fusion" or not update.shape.is_array:
            return False
        root = update.calls.root
        if root.opcode != "dynamic-update-slice" or update.operands.count(copy) > 1:
            return False
        if [update.operands[p.operand] for p in in_place_pairs(update)] != [copy]:
            return False
        return root.operands[1].shape.num_elements >= self.least_update * root.shape.num_elements

    # -- copies beside each other ------------------------------------------------------------------------------------
    def _join(self, c: Computation, ctx: PassContext) -> bool:
        order = c.post_order()
        height = heights(order)
        levels: dict[int, list[Instruction]] = {}
        for i in order:
            is_read = bool(i.users) or i is c.root
            if is_read and i.shape.is_array and i.shape.num_elements and (_is_local(i) or _fills(i)):
                levels.setdefault(height[i], []).append(i)
        changed = False
        for level in levels.values():
            for group in self._packed(level):
                if len(group) > 1 and any(i.opcode == "copy" for i in group):
                    names = ", ".join(i.name for i in group)
                    made = _joined(group, ctx)
                    ctx.decide(True, f"{len(group)} copies and fills in one kernel", subject=made.name, object=names)
                    changed = True
        return changed

    def _packed(self, level: Sequence[Instruction]) -> Iterator[list[Instruction]]:
        most = min(self.max_outputs, self.max_arguments // 2)
        for n in range(0, len(level), most):
            yield list(level[n : n + most])


def _makers(update: Instruction, copy: Instruction) -> list[Instruction]:
    """Kernels that make nothing but what `update` writes, element by element: they can be part of it."""
    found = []
    for i in dict.fromkeys(update.operands):
        if i is copy or i.opcode != "fusion" or not i.shape.is_array:
            continue
        if len(i.users) == 1 and not i.has_side_effect and not is_shaped(i):
            found.append(i)
    return found


def _is_local(i: Instruction) -> bool:
    """Whether an array is copied within the device's memory."""
    return i.opcode == "copy" and i.shape.is_array and not (i.shape.is_on_host or i.operands[0].shape.is_on_host)


def _fills(i: Instruction) -> bool:
    """Whether a kernel makes an array out of nothing, each element by itself."""
    is_fill = i.opcode == "fusion" and not i.operands and not i.has_side_effect and not is_shaped(i)
    return is_fill and not i.shape.is_on_host


def _joined(group: list[Instruction], ctx: PassContext) -> Instruction:
    """One kernel in place of a group, which must run before and after what the group did."""
    before = [p for i in group for p in i.control_predecessors if p not in group]
    after = [s for i in group for s in i.control_successors if s not in group]
    names = [i.name for i in group]
    # numbers that are copied go into the kernel with their copies
    numbers = (o for i in group for o in i.operands if o.opcode == "constant" and o.shape.is_scalar)
    names += [o.name for o in numbers if all(user in group for user in o.users)]
    made = join_kernels(group)
    for p in dict.fromkeys(before):
        made.add_control_predecessor(p)
    for s in dict.fromkeys(after):
        s.add_control_predecessor(made)
    ctx.trace.became.update(dict.fromkeys(names, made.name))
    return made
