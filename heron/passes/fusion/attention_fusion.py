"""attention-fusion: two products with a softmax between them become one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from heron import targets
from heron.analysis.blocks.cost import Freedom, Plan, plans
from heron.analysis.blocks.tiling import Refusal, Tiling
from heron.analysis.cost.estimate import clock_of
from heron.hlo import types
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Constraint, Pass
from heron.passes.context import PassContext
from heron.passes.fusion.apart import rest, seconds_apart
from heron.passes.fusion.build import fuse
from heron.passes.fusion.softmax import softmax_of
from heron.passes.fusion.tiled import PRODUCTS, absent, exits, has_form, is_row_reduce, locked, needed, programs, unfit
from heron.passes.registry import register
from heron.targets import Target

#: the rows' products are also of types that matrix units would round: these are done by plain arithmetic
_PRODUCTS = PRODUCTS | {types.F32: (types.F32,)}

#: what attention has before its second product, and what else may stand there beside elementwise ops
_MARKS = frozenset({"dot", "reduce", "exponential"})
_BETWEEN = frozenset({"reduce", "broadcast", "reshape", "bitcast", "transpose", "slice"})


@register
@dataclass(frozen=True)
class AttentionFusion(Pass):
    """Fuses a product whose operand's rows were reduced and came from another product: attention as one kernel.

    Between the products may be scales, masks of any kind, biases, conversions, and reductions of rows: a softmax, or
    its gradient; behind the second one what all of its result goes through. The matrix between the products, with a row
    for each query and a column for each key, never goes to memory; the decision says how many bytes that saves. Rows
    are held whole, or gone through in steps, where every reduction is a loop that does the first product again: values
    are those of the program. Under the option ``math=reassociate`` one loop may do it all, the sums so far scaled
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
            dots = [i for i in c.post_order() if i.opcode == "dot"] if _may_attend(c) else []
            for dot in reversed(dots):
                if dot.parent is c:
                    changed |= self._fuse(dot, c, ctx)
        return changed

    def _fuse(self, dot: Instruction, c: Computation, ctx: PassContext) -> bool:
        found = self._rows(dot)
        if found is None:
            return False
        target, why_not = ctx.target or targets.get("sm_90"), absent(ctx) or found.why_not
        best = None if why_not else self._best(dot, found.members, c, target, ctx)
        if not isinstance(best, _Choice):
            ctx.decide(False, why_not or str(best), subject=dot.name)
            return False
        saved = sum(2 * i.shape.byte_size for i in found.members if i.opcode == "dot" and i is not dot)
        before, after = best.apart * 1e6, best.plan.seconds * 1e6
        config = best.plan.config
        way = "in one loop" if config.online else "in steps" if config.row else "whole"
        why = f"rows {way}, tiles of {config}, {programs(best.root.shape.dims, config)} programs"
        if self.weigh and after >= before:
            why = f"by model it is slower: {why}"
            ctx.decide(False, why, subject=dot.name, cost_before=before, cost_after=after)
            return False
        if not ctx.may_fire("attention-fusion", "attention_fusion.py", dot):
            return False
        made = fuse([best.root], best.members, prefix="attention_")
        made.attrs["kind"] = "kCustom"
        made.extras["backend_config"] = (locked(made, ctx, target) or config).text()
        ctx.trace.became[dot.name] = made.name
        why = f"{why}; {saved} bytes less written and read"
        ctx.decide(True, why, subject=dot.name, object=made.name, cost_before=before, cost_after=after)
        return True

    def _best(
        self, dot: Instruction, rows: set[Instruction], c: Computation, target: Target, ctx: PassContext
    ) -> _Choice | str:
        """The quickest fusion that ends in the product, or in what follows it; why there is none."""
        order = {i: n for n, i in enumerate(c.post_order())}
        online = ctx.options.allows("reassociating") and softmax_of(dot, rows) is not None
        free = Freedom(steps=True, online=online, parts=ctx.options.allows("finite-only"))
        found: list[tuple[Instruction, set[Instruction], Plan]] = []
        refused = ""
        for root, behind in exits(dot, order, self.max_instructions):
            members = needed(root, self._also(behind, rows))
            ways = plans(tiling := Tiling(root, members), target, free)
            if tiling.refusals or isinstance(ways, Refusal):
                refusal = tiling.refusals[0] if tiling.refusals else ways
                refused = f"'{refusal.instruction.name}': {refusal.why}"  # type: ignore[union-attr]
            elif len(_inputs(members)) <= self.max_inputs:
                found.append((root, members, ways[0]))
        if not found:
            return refused or "it would have too many inputs"
        (last, most, _), clock = found[-1], clock_of(target)
        apart = seconds_apart(last, most, target)

        def total(x: tuple[Instruction, set[Instruction], Plan]) -> float:
            return x[2].seconds + rest(last, most - x[1], clock)

        root, members, plan = min(found, key=total)
        return _Choice(root, members, plan, apart - rest(last, most - members, clock))

    def _also(self, behind: set[Instruction], rows: set[Instruction]) -> set[Instruction]:
        """The members, with what costs nothing to compute where the ops behind the product read it."""
        members, stack = behind | rows, [o for i in behind for o in i.operands]
        while stack:
            o = stack.pop()
            if o not in members and _is_of_places(o):
                members.add(o)
                stack += o.operands
        return members

    def _rows(self, dot: Instruction) -> _Rows | None:
        """What the rows of a product's operand are computed from, up to the operands of the first product; None when
        no product is reduced there."""
        members, stack = {dot}, [o for o in dot.operands if _attends(o, self.max_instructions)]
        why_not = unfit(dot, _PRODUCTS) if stack else ""
        while stack:
            o = stack.pop()
            if o in members or not _is_part(o):
                continue
            members.add(o)
            if len(members) > self.max_instructions:
                return None
            if o.opcode == "dot":
                why_not = why_not or unfit(o, _PRODUCTS)
            else:
                stack += o.operands
        opcodes = [i.opcode for i in members]
        if opcodes.count("dot") < 2 or not _MARKS.issubset(opcodes):
            return None
        if not why_not:
            others = (i for i in members if i is not dot and not _serves(i, members) and not _is_of_places(i))
            read = min(others, key=lambda i: i.name, default=None)
            why_not = f"'{read.name}' is read elsewhere, too" if read is not None else ""
        return _Rows(members, why_not)


class _Rows(NamedTuple):
    """The instructions of a fusion up to its last product, and why it cannot be."""

    members: set[Instruction]
    why_not: str


class _Choice(NamedTuple):
    root: Instruction
    members: set[Instruction]
    plan: Plan
    apart: float


def _may_attend(c: Computation) -> bool:
    """Whether there are two products and a reduction, without which no time is spent."""
    opcodes = [i.opcode for i in c.instructions if i.opcode in ("dot", "reduce")]
    return opcodes.count("dot") > 1 and "reduce" in opcodes


def _is_part(i: Instruction) -> bool:
    """Whether an op may stand between the products."""
    if i.opcode == "constant":
        return i.shape.is_scalar
    return i.opcode == "dot" or is_row_reduce(i) or has_form(i) and i.opcode != "concatenate"


def _attends(operand: Instruction, most: int) -> bool:
    """Whether an operand may be computed from another product by way of a softmax. Only opcodes are looked at."""
    found, seen, stack = set[str](), {operand}, [operand]
    while stack and len(seen) < most:
        i = stack.pop()
        found.add(i.opcode)
        if found >= _MARKS:
            return True
        if i.opcode in ("dot", "parameter", "constant") or not (i.op.is_elementwise or i.opcode in _BETWEEN):
            continue
        for o in i.operands:
            if o not in seen:
                seen.add(o)
                stack.append(o)
    return False


def _is_of_places(i: Instruction) -> bool:
    """Whether a value depends on places alone, as masks do: it costs nothing to compute anew."""
    seen, stack = {i}, [i]
    while stack:
        at = stack.pop()
        if at.opcode not in ("iota", "constant") and not (at.operands and has_form(at)):
            return False
        if at.opcode == "constant" and not at.shape.is_scalar:
            return False
        for o in at.operands:
            if o not in seen:
                seen.add(o)
                stack.append(o)
    return True


def _serves(i: Instruction, members: set[Instruction]) -> bool:
    return not i.is_root and all(u in members for u in i.users)


def _inputs(members: set[Instruction]) -> set[Instruction]:
    return {o for i in members for o in i.operands} - members
