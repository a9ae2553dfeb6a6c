"""attention-fusion: two products with a softmax between them become one kernel, and so does each gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from heron import targets
from heron.analysis.blocks.cost import Freedom, Plan, plans
from heron.analysis.blocks.tiling import Refusal, Tiling
from heron.analysis.cost.estimate import clock_of
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Constraint, Pass
from heron.passes.context import PassContext
from heron.passes.fusion.apart import rest, several_apart
from heron.passes.fusion.attention import Part, Rows, depends, is_of_places, matrices, parts
from heron.passes.fusion.build import fuse
from heron.passes.fusion.softmax import softmax_of
from heron.passes.fusion.tiled import absent, exits, locked, needed, programs
from heron.passes.registry import register
from heron.targets import Target


@register
@dataclass(frozen=True)
class AttentionFusion(Pass):
    """Fuses a product whose operand's rows were reduced and came from another product: attention as one kernel.

    Between the products may be scales, masks of any kind, biases, conversions, and reductions of rows: a softmax, or
    its gradient; behind the second one what all of its result goes through. The matrix between the products, with a row
    for each query and a column for each key, never goes to memory; the decision says how many bytes that saves. Rows
    are held whole, or gone through in steps, where every reduction is a loop that does the first product again: values
    are those of the program. Several products may need the matrix: a forward pass, and the gradients of queries, keys
    and values. Each then is a kernel that computes of it what it needs, and what rows are reduced to is a further
    result of the first of them. Under the option ``math=reassociate`` one loop may do it all, the sums so far scaled
    whenever a larger element comes. Which way, which tiles, and whether at all, says a model of the machine.

    largest {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT m = f32[] maximum(a, b)
    }

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    s = f32[512,512] dot(bf16[512,64] q, bf16[512,64] k), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    least = f32[] constant(-inf)
    m = f32[512] reduce(s, least), dimensions={1}, to_apply=largest
    mb = f32[512,512] broadcast(m), dimensions={0}
    c = f32[512,512] subtract(s, mb)
    e = f32[512,512] exponential(c)
    zero = f32[] constant(0)
    t = f32[512] reduce(e, zero), dimensions={1}, to_apply=sum
    tb = f32[512,512] broadcast(t), dimensions={0}
    p = f32[512,512] divide(e, tb)
    pb = bf16[512,512] convert(p)
    ROOT o = f32[512,64] dot(pb, bf16[512,64] v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    ...
    ROOT f = f32[512,64] fusion(q, k, v), kind=kCustom, calls=body
    """

    name = "attention-fusion"
    max_instructions: int = 96
    max_inputs: int = 24
    weigh: bool = True
    constraints = (
        Constraint("layout-assignment", "attention-fusion", "tiles follow the order of values in memory"),
        Constraint("dot-decomposer", "attention-fusion", "products with one batch, row, column and sum each"),
        Constraint("attention-fusion", "gemm-fusion", "what is around one product may be part of attention"),
        Constraint("attention-fusion", "gemm-rewriter", "libraries get the products that are left"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for group in reversed(matrices(c, self.max_instructions)):
                if all(rows.dot.parent is c for rows in group):
                    changed |= self._fuse(group, c, ctx)
        return changed

    def _fuse(self, group: list[Rows], c: Computation, ctx: PassContext) -> bool:
        target, order = ctx.target or targets.get("sm_90"), {i: n for n, i in enumerate(c.post_order())}
        found = absent(ctx) or parts(group, order)
        choices = found if isinstance(found, str) else self._choices(found, order, target, ctx)
        if isinstance(choices, str):
            for rows in group:
                ctx.decide(False, choices, subject=rows.dot.name)
            return False
        before, after = self._microseconds(choices, target)
        if self.weigh and after >= before:
            for choice in choices:
                why = f"by model it is slower: {choice}"
                ctx.decide(False, why, subject=choice.dot.name, cost_before=before, cost_after=after)
            return False
        if not ctx.may_fire("attention-fusion", "attention_fusion.py", group[0].dot):
            return False
        saved = sum(2 * i.shape.byte_size for i in set().union(*(rows.sources for rows in group)))
        shares = f"one of {len(choices)} that compute the same matrix"
        for n, choice in enumerate(choices):
            more = shares if n else f"{saved} bytes less written and read"
            made = fuse([choice.root, *choice.gives], choice.members, prefix="attention_")
            made.attrs["kind"] = "kCustom"
            made.extras["backend_config"] = (locked(made, ctx, target) or choice.plan.config).text()
            ctx.trace.became[choice.dot.name] = made.name
            why = f"{choice}; {more}"
            costs = (None, None) if n else (before, after)  # of all of them
            ctx.decide(True, why, subject=choice.dot.name, object=made.name, cost_before=costs[0], cost_after=costs[1])
        return True

    def _choices(
        self, found: list[Part], order: dict[Instruction, int], target: Target, ctx: PassContext
    ) -> list[_Choice] | str:
        """The quickest fusion for each product; why there is none for one."""
        choices: list[_Choice] = []
        for part in found:
            best = self._best(part, order, target, ctx)
            if isinstance(best, str):
                return best
            choices.append(best)
        return choices

    def _best(self, part: Part, order: dict[Instruction, int], target: Target, ctx: PassContext) -> _Choice | str:
        """The quickest fusion that ends in the product, or in what follows it; why there is none."""
        online = ctx.options.allows("reassociating") and softmax_of(part.dot, part.members) is not None
        free = Freedom(steps=True, online=online, parts=ctx.options.allows("finite-only"))
        found: list[tuple[Instruction, set[Instruction], Plan]] = []
        refused = ""
        for root, behind in exits(part.dot, order, self.max_instructions):
            members = needed(root, self._also(behind, part.members))
            inputs = _inputs(members)
            if len(inputs) > self.max_inputs or part.gives and depends(inputs, part.gives, order):
                continue
            ways = plans(tiling := Tiling(root, members), target, free, part.gives)
            if tiling.refusals or isinstance(ways, Refusal):
                refusal = tiling.refusals[0] if tiling.refusals else ways
                refused = f"'{refusal.instruction.name}': {refusal.why}"  # type: ignore[union-attr]
            else:
                found.append((root, members, ways[0]))
        if not found:
            return refused or "it would have too many inputs"
        (last, most, _), clock = found[-1], clock_of(target)

        def total(x: tuple[Instruction, set[Instruction], Plan]) -> float:
            return x[2].seconds + rest(last, most - x[1], clock)

        root, members, plan = min(found, key=total)
        return _Choice(part.dot, root, members, plan, part.gives)

    def _also(self, behind: set[Instruction], rows: set[Instruction]) -> set[Instruction]:
        """The members, with what costs nothing to compute where it is read."""
        members = behind | rows
        stack = [o for i in members for o in i.operands]
        while stack:
            o = stack.pop()
            if o not in members and is_of_places(o):
                members.add(o)
                stack += o.operands
        return members

    def _microseconds(self, choices: list[_Choice], target: Target) -> tuple[float, float]:
        """Of libraries with kernels around them, and of block kernels; until what they give is read."""
        clock, union = clock_of(target), set[Instruction]().union(*(x.members for x in choices))
        reading = sum(rest(x.root, set(), clock) for x in choices)
        before = several_apart([x.root for x in choices], union, target)
        return before * 1e6, (sum(x.plan.seconds for x in choices) + reading) * 1e6


class _Choice(NamedTuple):
    dot: Instruction
    root: Instruction
    members: set[Instruction]
    plan: Plan
    gives: tuple[Instruction, ...]

    def __str__(self) -> str:
        config = self.plan.config
        way = "in one loop" if config.online else "in steps" if config.row else "whole"
        numbers = f", with {', '.join(repr(i.name) for i in self.gives)}" if self.gives else ""
        return f"rows {way}, tiles of {config}, {programs(self.root.shape.dims, config)} programs{numbers}"


def _inputs(members: set[Instruction]) -> set[Instruction]:
    return {o for i in members for o in i.operands} - members
