"""attention-fusion: two products with a softmax between them become one kernel, and so does each gradient."""

from __future__ import annotations

from typing import NamedTuple

from heron import targets
from heron.analysis.blocks.cost import Freedom, Plan, plans
from heron.analysis.blocks.tiling import Refusal, Tiling
from heron.analysis.cost.estimate import clock_of
from heron.analysis.fusion.softmax import softmax_of
from heron.hlo.facts import is_view
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.canonical import Forms
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.attention import (
    Order,
    Part,
    Rows,
    depends,
    is_of_places,
    matrices,
    may_attend,
    moves_before,
    parts,
    why_not,
)
from heron.passes.fusion.model.build import fuse, inside_order
from heron.passes.fusion.model.tiled import absent, exits, locked, needed, programs
from heron.passes.fusion.model.unfused_cost import rest, several_apart
from heron.records import dataclass
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
    whenever a larger element comes. A model of the machine decides the way, the tiles, and whether it is done at all.

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
        changed, known = False, _Known(Forms(), {})
        for c in module.computations_to_rewrite():
            if not may_attend(c):
                continue
            order = Order(c)
            for group in reversed(matrices(order.numbers, self.max_instructions)):
                if all(rows.dot.parent is c for rows in group):
                    changed |= self._fuse(group, order, known, ctx)
        return changed

    def _fuse(self, group: list[Rows], order: Order, known: _Known, ctx: PassContext) -> bool:
        target = ctx.target or targets.get("sm_90")
        found = absent(ctx) or why_not(group, order.numbers) or self._choices(group, order, known, target, ctx)
        if isinstance(found, str):
            for rows in group:
                ctx.decide(False, found, subject=rows.dot.name)
            return False
        choices, before, after = found
        if not _are_in_order(choices, order):
            for choice in choices:
                ctx.decide(False, "kernels would have to wait for one another", subject=choice.dot.name)
            return False
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
            results = [choice.root, *choice.gives]
            made = fuse(results, choice.members, prefix="attention_")
            order.add(made, results)
            made.attrs["kind"] = "kCustom"
            made.extras["backend_config"] = (locked(made, ctx, target) or choice.plan.config).text()
            ctx.trace.became[choice.dot.name] = made.name
            costs = (None, None) if n else (before, after)  # of all of them
            why = f"{choice}; {shares if n else f'{saved} bytes less written and read'}"
            ctx.decide(True, why, subject=choice.dot.name, object=made.name, cost_before=costs[0], cost_after=costs[1])
        return True

    def _choices(
        self, group: list[Rows], order: Order, known: _Known, target: Target, ctx: PassContext
    ) -> _Found | str:
        """The quickest fusion for each product, with microseconds; why there is none for one. The answer for a group
        of the same form holds for this one: layers of a model are alike."""
        behind = [list(exits(rows.dot, order.numbers, self.max_instructions))[-1] for rows in group]
        around = set[Instruction]().union(*(rows.members for rows in group), *(between for _, between in behind))
        moves = moves_before(group, around)
        around |= moves
        part = inside_order([root for root, _ in behind], _with_places(around))
        form = known.forms.of_part(part, {i for i in around if not is_of_places(i)})
        if (before := known.found.get(form)) is not None:
            return before.moved_to(part)
        split = parts(group, order.numbers)
        if isinstance(split, str):
            return split
        choices: list[_Choice] = []
        for one in split:
            best = self._best(one, moves, order, target, ctx)
            if isinstance(best, str):
                return best
            choices.append(best)
        found = _Found(choices, *_microseconds(choices, target))
        known.found[form] = _form_of(found, part)
        return found

    def _best(
        self, part: Part, moves: set[Instruction], order: Order, target: Target, ctx: PassContext
    ) -> _Choice | str:
        """The quickest fusion that ends in the product, or in what follows it; why there is none."""
        online = ctx.options.allows("reassociating") and softmax_of(part.dot, part.members) is not None
        free = Freedom(steps=True, online=online, parts=ctx.options.allows("finite-only"))
        found: list[tuple[Instruction, set[Instruction], Plan]] = []
        refused = ""
        for root, behind in reversed(list(exits(part.dot, order.numbers, self.max_instructions))):
            if found and is_view(found[-1][0]) and found[-1][0].operands[0] is root:
                continue  # the same work
            members = needed(root, _with_places(behind | part.members | moves))
            inputs = inputs_of(members)
            if len(inputs) > self.max_inputs or depends(inputs, part.gives, order.numbers):
                continue
            ways = plans(tiling := Tiling(root, members), target, free, part.gives)
            if tiling.refusals or isinstance(ways, Refusal):
                refusal = tiling.refusals[0] if tiling.refusals else ways
                refused = f"'{refusal.instruction.name}': {refusal.why}"  # type: ignore[union-attr]
            else:
                found.append((root, members, ways[0]))
        if not found and moves:  # they may be what has no tiles
            return self._best(part, set(), order, target, ctx)
        if not found:
            return refused or "it would have too many inputs"
        (last, most, _), clock = found[0], clock_of(target)

        def total(x: tuple[Instruction, set[Instruction], Plan]) -> float:
            return x[2].seconds + rest(last, most - x[1], clock)

        root, members, plan = min(found, key=total)
        return _Choice(part.dot, root, members, plan, part.gives)


class _Choice(NamedTuple):
    """The choice for fusing a product. In a form, instructions are numbers."""

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


class _Found(NamedTuple):
    """The choices for a group, and microseconds of libraries with kernels around them and of block kernels."""

    choices: list[_Choice]
    before: float
    after: float


class _Form(NamedTuple):
    """The same, with the places of instructions in the group for the instructions."""

    choices: list[tuple[int, int, list[int], Plan, list[int]]]
    before: float
    after: float

    def moved_to(self, part: list[Instruction]) -> _Found:
        """The same choices for a group of the same form."""
        choices = [
            _Choice(part[dot], part[root], {part[n] for n in members}, plan, tuple(part[n] for n in gives))
            for dot, root, members, plan, gives in self.choices
        ]
        return _Found(choices, self.before, self.after)


class _Known(NamedTuple):
    """Results for groups, by their forms."""

    forms: Forms
    found: dict[int, _Form]


def _form_of(found: _Found, part: list[Instruction]) -> _Form:
    place = {i: n for n, i in enumerate(part)}
    choices = [
        (place[c.dot], place[c.root], [place[i] for i in c.members], c.plan, [place[i] for i in c.gives])
        for c in found.choices
    ]
    return _Form(choices, found.before, found.after)


def _with_places(members: set[Instruction]) -> set[Instruction]:
    """Some instructions, with what costs nothing to compute where they read it."""
    found, stack = set(members), [o for i in members for o in i.operands]
    while stack:
        o = stack.pop()
        if o not in found and is_of_places(o):
            found.add(o)
            stack += o.operands
    return found


def _microseconds(choices: list[_Choice], target: Target) -> tuple[float, float]:
    """Of libraries with kernels around them, and of block kernels; until what they give is read."""
    clock, union = clock_of(target), set[Instruction]().union(*(x.members for x in choices))
    reading = sum(rest(x.root, set(), clock) for x in choices)
    before = several_apart([x.root for x in choices], union, target)
    return before * 1e6, (sum(x.plan.seconds for x in choices) + reading) * 1e6


def _are_in_order(choices: list[_Choice], order: Order) -> bool:
    """Whether no fusion would have to wait for what it gives beside its root."""
    inputs = [inputs_of(c.members) for c in choices]
    for _ in range(2):
        if order.takes([s for c, read in zip(choices, inputs, strict=True) for s in order.falls(c.gives, read)]):
            return not any(depends(read, c.gives, order.numbers) for c, read in zip(choices, inputs, strict=True))
        order.renew()
    return False


def inputs_of(members: set[Instruction]) -> set[Instruction]:
    """The inputs of a fusion."""
    return {o for i in members for o in i.operands} - members
