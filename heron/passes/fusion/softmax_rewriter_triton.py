"""softmax-rewriter-triton: reductions of rows and what is computed of the rows with them become one block kernel."""

from __future__ import annotations

from heron import targets
from heron.analysis.blocks.config import ROWS
from heron.analysis.blocks.row_plans import row_plans, row_tiling
from heron.analysis.blocks.tiling import Refusal
from heron.analysis.cost.estimate import clock_of
from heron.analysis.fusion.roles import is_consumer
from heron.hlo.facts import having, is_generated, is_view
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.build import fuse
from heron.passes.fusion.model.tiled import absent, has_form, is_row_reduce, keeps_rows, locked, needed, programs
from heron.records import dataclass
from heron.targets import Target

#: ops that move nothing
_SAME = having(Trait.VIEW, Trait.GENERATED)


@register
@dataclass(frozen=True)
class SoftmaxRewriterTriton(Pass):
    """Fuses chains of diamonds: values that are reduced, and meet what they were reduced to, spread again.

    A softmax is two of them, a norm one or two: the largest element or the mean of a row, taken off the row; the sum of
    what that gives, by which it is divided. A program of the kernel holds rows whole. Rows along the last dimensions
    are one kernel by `normalization-fusion`, too, and its emitter keeps them in registers: that is the time to beat.
    Rows that lie across memory would be a kernel for each reduction. A fusion is made when it is quicker by the factor
    ``lead``, which is what the model may be wrong by, and nothing inside is read elsewhere.

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    t = f32[4096] reduce(f32[64,4096] x, zero), dimensions={0}, to_apply=sum
    b = f32[64,4096] broadcast(t), dimensions={1}
    ROOT d = f32[64,4096] divide(x, b)
    ->
    ...
    body {
      x = f32[64,4096] parameter(0)
      zero = f32[] constant(0)
      t = f32[4096] reduce(x, zero), dimensions={0}, to_apply=sum
      b = f32[64,4096] broadcast(t), dimensions={1}
      ROOT d = f32[64,4096] divide(x, b)
    }

    ROOT f = f32[64,4096] fusion(x), kind=kCustom, calls=body
    """

    name = "softmax-rewriter-triton"
    max_instructions: int = 96
    lead: float = 1.2
    constraints = (
        Constraint("layout-assignment", "softmax-rewriter-triton", "tiles follow the order of values in memory"),
        Constraint("softmax-rewriter-triton", "priority-fusion", "loops around reductions would be kernels already"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        if absent(ctx):
            return False
        target, changed = ctx.target or targets.get("sm_90"), False
        for c in module.computations_to_rewrite():
            if any(i.opcode == "reduce" for i in c.instructions):
                changed |= self._run(c, target, ctx)
        return changed

    def _run(self, c: Computation, target: Target, ctx: PassContext) -> bool:
        changed, taken = False, set[Instruction]()
        for root in reversed(_behind_diamonds(c)):
            if root in taken or root.parent is not c or any(map(is_consumer, root.users)):
                continue  # what readers compute themselves need not be stored
            members = self._members(root)
            if not _has_diamond(root, members):
                taken.update(i for i in members if i.shape.num_elements == root.shape.num_elements)
                continue
            taken |= members
            changed |= self._fuse(root, members, target, ctx)
        return changed

    def _members(self, root: Instruction) -> set[Instruction]:
        """The instructions behind the root that tiles support and that nothing else reads."""
        members, order = {root}, [root]
        for i in order:
            for o in i.operands:
                if o in members or len(members) >= self.max_instructions or not _is_part(o):
                    continue
                if o.opcode == "constant" or is_generated(o) or _serves(o, members):
                    members.add(o)
                    order.append(o)
                # what is read by several members is looked at again when the last of them is in
        return needed(root, members)

    def _fuse(self, root: Instruction, members: set[Instruction], target: Target, ctx: PassContext) -> bool:
        apart, bytes_alone = _seconds_apart(root, members, target)
        if apart < self.lead * bytes_alone:  # cheap to know, so ahead of tiles
            why = "other emitters' kernels keep rows in registers, too"
            ctx.decide(False, why, subject=root.name, cost_before=apart * 1e6, cost_after=bytes_alone * 1e6)
            return False
        tiling = row_tiling(root, members)
        plans = tiling if isinstance(tiling, Refusal) else row_plans(tiling, target)
        if isinstance(plans, Refusal):
            ctx.decide(False, f"'{plans.instruction.name}': {plans.why}", subject=root.name)
            return False
        best = plans[0]
        ok = apart >= self.lead * best.seconds
        why = f"tiles of {best.config}, {programs(root.shape.dims, best.config)} programs"
        ctx.decide(
            ok,
            why if ok else f"other emitters' kernels are not {self.lead:g} times as slow: {why}",
            subject=root.name,
            cost_before=apart * 1e6,
            cost_after=best.seconds * 1e6,
        )
        if not ok or not ctx.may_fire("diamonds", "softmax_rewriter_triton.py", root):
            return False
        made = fuse([root], members, prefix="softmax_")
        made.attrs["kind"] = "kCustom"
        made.extras["backend_config"] = (locked(made, ctx, target) or best.config).text(ROWS)
        ctx.trace.became[root.name] = made.name
        return True


def _behind_diamonds(c: Computation) -> list[Instruction]:
    """Elementwise ops on what was reduced and spread again: where a fusion may end."""
    reduced, spread = set[Instruction](), set[Instruction]()
    found: list[Instruction] = []
    for i in c.post_order():
        if i.opcode == "reduce":
            if is_row_reduce(i):
                reduced.add(i)
        elif i.opcode not in _SAME and not i.op.is_elementwise:
            continue
        elif not spread.isdisjoint(i.operands):
            spread.add(i)
            if i.op.is_elementwise and has_form(i):
                found.append(i)
        elif not reduced.isdisjoint(i.operands):
            (spread if i.opcode == "broadcast" else reduced).add(i)
    return found


def _is_part(i: Instruction) -> bool:
    if i.opcode == "constant":
        return i.shape.is_scalar
    return is_row_reduce(i) or has_form(i) and (i.op.is_elementwise or (is_view(i) or is_generated(i)))


def _serves(i: Instruction, members: set[Instruction]) -> bool:
    return not i.is_root and all(u in members for u in i.users)


def _has_diamond(root: Instruction, members: set[Instruction]) -> bool:
    """Whether rows of the root's size are reduced inside, and the result is spread again."""
    spread = any(i.opcode == "broadcast" and i.operands[0] in members and i.operands[0].shape.rank for i in members)
    size = root.shape.num_elements
    return spread and any(i.opcode == "reduce" and i.operands[0].shape.num_elements == size for i in members)


def _seconds_apart(root: Instruction, members: set[Instruction], target: Target) -> tuple[float, float]:
    """Seconds of other emitters' kernels: one that keeps rows where these are the last dimensions, else one for each
    reduction that needs another one and one for the result, each of which reads it all. And those that one kernel takes
    at least."""
    clock = clock_of(target)
    read = sum(o.shape.byte_size for o in {o for i in members for o in i.operands} - members)
    reduces = [i for i in members if i.opcode == "reduce"]
    kept = all(map(keeps_rows, reduces))
    kernels = 1 if kept else _depth(reduces, members) + 1
    reading, writing = clock.launch + read / clock.bandwidth, root.shape.byte_size / clock.bandwidth
    return kernels * reading + writing, reading + writing


def _depth(reduces: list[Instruction], members: set[Instruction]) -> int:
    """The length of the longest chain of reductions."""
    depth: dict[Instruction, int] = {}
    work = list(reduces)
    while work:
        i = work[-1]
        waiting = [o for o in i.operands if o in members and o not in depth]
        if waiting:
            work += waiting
            continue
        depth[i] = max((depth[o] for o in i.operands if o in depth), default=0) + (i.opcode == "reduce")
        work.pop()
    return max(depth[i] for i in reduces)
