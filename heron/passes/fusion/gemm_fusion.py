"""gemm-fusion: a product and what is computed around it become one kernel, done tile by tile."""

from __future__ import annotations

from dataclasses import replace

from heron import targets
from heron.analysis.blocks.cost import Freedom, Plan, plans
from heron.analysis.blocks.tiling import Refusal, Tiling
from heron.analysis.cost.estimate import clock_of
from heron.hlo.facts import is_generated
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.measured import OWN, is_asked
from heron.passes.framework.registry import register
from heron.passes.fusion.model.build import fuse
from heron.passes.fusion.model.hints import compute_by, computed_by
from heron.passes.fusion.model.product_choice import who_computes
from heron.passes.fusion.model.split_sum import LEAD, extra_bytes, plans_in_parts
from heron.passes.fusion.model.tiled import (
    FREE,
    MOVES,
    absent,
    exits,
    has_form,
    needed,
    programs,
    unfit,
    unknown_floats,
    unpacks,
)
from heron.passes.fusion.model.unfused_cost import kernel, rest, seconds_apart
from heron.records import dataclass
from heron.targets import Target


@register
@dataclass(frozen=True)
class GemmFusion(Pass):
    """Fuses products of types that matrix units multiply with what their operands and results go through.

    Before a product that may be conversions, scales, transposes, slices, concatenations of its operands; behind it
    biases, activations, residuals, conversions, up to the one value that all of it leads to: several products go
    together when only that one value is wanted. A tile of the result is computed by one program of the grid, from tiles
    of all the rest, which `analysis.blocks` finds; what cannot be cut into tiles stays outside. The sizes of tiles come
    from a model of the machine. A fusion is made when the model says that it is quicker than a library's product with
    kernels around it; the decision has both times in microseconds. Where few tiles have a long sum, and two kernels are
    clearly quicker than one, the config says in how many parts: `splitk-rewriter` does it.

    xc = bf16[64,128] convert(s8[64,128] x)
    d = bf16[64,64] dot(xc, bf16[128,64] w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = bf16[64,64] negate(d)
    ->
    ...
    body {
      x = s8[64,128] parameter(0)
      xc = bf16[64,128] convert(x)
      w = bf16[128,64] parameter(1)
      d = bf16[64,64] dot(xc, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT r = bf16[64,64] negate(d)
    }

    ROOT f = bf16[64,64] fusion(s8[64,128] x, bf16[128,64] w), kind=kCustom, calls=body
    """

    name = "gemm-fusion"
    max_instructions: int = 96
    max_inputs: int = 24
    constraints = (
        Constraint("layout-assignment", "gemm-fusion", "tiles follow the order of values in memory"),
        Constraint("dot-decomposer", "gemm-fusion", "products with one batch, row, column and sum each"),
        Constraint("gemm-fusion", "gemm-rewriter", "libraries get the products that are left"),
        Constraint("gemm-fusion", "priority-fusion", "loops around a product would be kernels already"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        target, why_none = ctx.target or targets.get("sm_90"), absent(ctx)
        for c in module.computations_to_rewrite():
            for dot in [i for i in c.post_order() if i.opcode == "dot"]:
                if dot.parent is not c:  # in a fusion already
                    continue
                if why_none:
                    ctx.decide(False, why_none, subject=dot.name)
                    continue
                changed |= self._fuse(dot, c, target, ctx)
        return changed

    def _fuse(self, dot: Instruction, c: Computation, target: Target, ctx: PassContext) -> bool:
        why_not = unfit(dot, target=target) or (f"it is to be computed by {who}" if (who := computed_by(dot)) else "")
        if why_not:
            ctx.decide(False, why_not, subject=dot.name)
            return False
        free = Freedom(engine=ctx.options.tma)
        found, refused = self._candidates(dot, c, target, free, even_alone=is_asked(ctx))
        if not found:
            ctx.decide(False, refused or "nothing around it can be taken in", subject=dot.name)
            return False
        apart = found[-1].apart
        best, seconds = min(((x, _total(x, found[-1], target)) for x in found), key=lambda pair: pair[1])
        parts, in_parts = _in_parts(dot, found[0], found[-1], target, free)
        if parts is not None:
            clearly = in_parts * LEAD < min(seconds, apart)
            why = f"its sum in {parts.plan.config.split} parts, and a kernel that adds them"
            why += "" if clearly else f", are not {LEAD} x quicker"
            costs = min(seconds, apart) * 1e6, in_parts * 1e6
            ctx.decide(clearly, why, rule="split-k", subject=dot.name, cost_before=costs[0], cost_after=costs[1])
            best, seconds = (parts, in_parts) if clearly else (best, seconds)
        config = who_computes(best.root, best.members, replace(best.plan, seconds=seconds), apart, dot, ctx, target)
        if config == OWN:
            compute_by(dot, OWN)
        if isinstance(config, str):
            return config == OWN
        if not ctx.may_fire("gemm-fusion", "gemm_fusion.py", dot):
            return False
        made = fuse([best.root], best.members, prefix="gemm_fusion_")
        made.attrs["kind"] = "kCustom"
        made.extras["backend_config"] = config.text()
        ctx.trace.became[dot.name] = made.name
        count = best.plan.programs if config.split > 1 else programs(made.shape.dims, config)
        why = f"tiles of {config}, {count} programs"
        ctx.decide(True, why, subject=dot.name, object=made.name, cost_before=apart * 1e6, cost_after=seconds * 1e6)
        return True

    def _candidates(
        self, dot: Instruction, c: Computation, target: Target, free: Freedom, even_alone: bool
    ) -> tuple[list[_Candidate], str]:
        """The fusions there could be, by growing root, or why there is none. ``even_alone``: of the product by itself,
        too, at which the model finds the library quicker."""
        found: list[_Candidate] = []
        refused = ""
        order = {i: n for n, i in enumerate(c.post_order())}
        for root, behind in exits(dot, order, self.max_instructions):
            members = self._with_operands(root, behind, target)
            if len(members) == 1 and not even_alone:
                continue
            weighed = _weigh(root, members, target, free)
            if isinstance(weighed, Refusal):
                refused = f"'{weighed.instruction.name}': {weighed.why}"
            else:
                found.append(weighed)
        return found, refused

    # -- what is taken in ----------------------------------------------------------------------------------------------
    def _with_operands(self, root: Instruction, behind: set[Instruction], target: Target) -> set[Instruction]:
        """Also what the members are computed from, as far as it serves them alone or costs nothing."""
        members = set(behind)
        stack = [o for i in behind for o in i.operands]
        while stack and len(members) < self.max_instructions:
            o = stack.pop()
            if o in members or unknown_floats(o, target) or not self._goes_before(o, members):
                continue
            members.add(o)
            stack += o.operands
            if len({x for m in members for x in m.operands} - members) > self.max_inputs:
                members.discard(o)
        return needed(root, members)

    def _goes_before(self, o: Instruction, members: set[Instruction]) -> bool:
        if o.opcode == "constant":
            return o.shape.is_scalar
        if not has_form(o) and not unpacks(o):
            return False
        serves = not o.is_root and all(u in members for u in o.users)
        if o.opcode in FREE or o.opcode == "convert":
            return serves or is_generated(o) or _shrinks(o)
        if o.opcode == "concatenate":
            return serves and all(_feeds_product(u) for u in o.users)
        return serves and (o.op.is_elementwise or o.opcode in MOVES)


def _feeds_product(user: Instruction) -> bool:
    return user.opcode in ("dot", "concatenate")


def _shrinks(i: Instruction) -> bool:
    """Whether what an op is computed from is no larger than what it gives: others may compute it, too."""
    return i.operands[0].shape.byte_size <= i.shape.byte_size


# -- whether it is worth it --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Candidate:
    root: Instruction
    members: set[Instruction]
    plan: Plan
    apart: float


def _total(x: _Candidate, last: _Candidate, target: Target) -> float:
    """Seconds of a fusion, and of what the last one has that it has not, until the last one's root is read."""
    return x.plan.seconds + rest(last.root, last.members - x.members, clock_of(target))


def _in_parts(
    dot: Instruction, first: _Candidate, last: _Candidate, target: Target, free: Freedom
) -> tuple[_Candidate | None, float]:
    """A product whose operands are computed as it needs them, its sum in parts, and the seconds until the readers of
    the last candidate's root have that. Plain products are left to libraries, which cut sums themselves."""
    if first.root is not dot or all(o not in first.members or o.opcode in FREE for o in dot.operands):
        return None, 0.0
    ways = plans_in_parts(dot, first.members, target, free)
    if not ways:
        return None, 0.0
    clock, behind = clock_of(target), last.members - first.members
    done = kernel(last.root, behind, clock) if behind else clock.launch + 2 * dot.shape.byte_size / clock.bandwidth
    done += len(last.root.users) * last.root.shape.byte_size / clock.bandwidth
    timed = ((w.seconds + extra_bytes(dot, w.config.split) / clock.bandwidth, w) for w in ways)
    seconds, plan = min(timed, key=lambda pair: pair[0])
    return _Candidate(dot, first.members, plan, first.apart), seconds + done


def _weigh(root: Instruction, members: set[Instruction], target: Target, free: Freedom) -> _Candidate | Refusal:
    tiling = Tiling(root, members)
    if tiling.refusals:
        return tiling.refusals[0]
    found = plans(tiling, target, free)
    if isinstance(found, Refusal):
        return found
    return _Candidate(root, members, found[0], seconds_apart(root, members, target))
