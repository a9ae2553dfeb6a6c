"""sort-rewriter: long rows are sorted by the bytes of their keys."""

from __future__ import annotations

import json

from heron.analysis.fusion.radix_plan import Network, RadixPlan, plan_of
from heron.analysis.fusion.sort_keys import keys_of
from heron.hlo.calls.radix_sort import TARGET
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import U32
from heron.passes.expand.stable_sort_expander import needs_positions
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import is_static
from heron.passes.rewriting.expander import home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class SortRewriter(Pass):
    """Makes sorts along the last dimension radix sorts, where the comparator orders by keys and a model says it pays.

    Keys are integers, and floats in total order, as many as there are. A radix sort is stable, so positions that would
    be sorted along to keep the order of equals are not. It reads and writes the operands once for each byte of the
    keys; a bitonic network takes a number of kernels that grows with the square of the rows' logarithm, but just one
    where a row fits into shared memory. Positions along the rows, as argsort has them sorted along, are no operands:
    the first pass makes them. The result has scratch memory: a copy of what is sorted if keys have two bytes or more,
    and control words.

    less {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT l = pred[] compare(a, b), direction=LT, type=TOTALORDER
    }

    ROOT r = f32[4194304] sort(f32[4194304] x), dimensions={0}, is_stable=true, to_apply=less
    ->
    ...
    """

    name = "sort-rewriter"
    #: rewrite whatever can be, whether or not it pays
    always: bool = False
    constraints = (
        Constraint("sort-rewriter", "stable-sort-expander", "a radix sort is stable without positions sorted along"),
        Constraint("sort-rewriter", "sort-fusion", "what is fused is sorted by comparing"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for i in [i for i in c.instructions if i.opcode == "sort" and is_static(i)]:
                plan = self._choose(i, ctx)
                if plan is not None:
                    c.replace(i, _call(i, plan))
                    if i.parent is c:
                        c.remove(i)
                    changed = True
        return changed

    def _choose(self, i: Instruction, ctx: PassContext) -> RadixPlan | None:
        """The plan, if there is one that pays."""
        plan, why_not = _plan(i)
        if plan is None or why_not:
            ctx.decide(False, why_not, subject=i.name, object="radix sort")
            return None
        if ctx.target is None or self.always:
            return plan
        network = Network(plan.rows, plan.length, (*plan.sizes, *[4] * needs_positions(i)))
        if network.kernels == 1 and _is_cut(i):
            ctx.decide(False, "one kernel keeps only what is read of it", subject=i.name, object="radix sort")
            return None
        before, after = network.seconds(ctx.target), plan.seconds(ctx.target)
        pays = ctx.decide(
            after < before,
            f"{plan.kernels} kernels that move {plan.moved / 1e6:.1f} MB, against a bitonic network of "
            f"{network.kernels} that move {network.moved / 1e6:.1f} MB",
            subject=i.name,
            object="radix sort",
            cost_before=before * 1e6,
            cost_after=after * 1e6,
        )
        return plan if pays else None


def _is_cut(i: Instruction) -> bool:
    """Whether only slices of the results are read."""
    parts = [u for u in i.users if u.opcode == "get-tuple-element"] if i.shape.is_tuple else [i]
    return not i.is_root and all(u.opcode == "slice" for p in parts for u in p.users)


def _plan(i: Instruction) -> tuple[RadixPlan | None, str]:
    """The plan of the sort, or the reason why there is none."""
    dims = i.operands[0].shape.dims
    if i.dimensions[0] != len(dims) - 1:
        return None, "the dimension sorted is not the last one"
    if not i.operands[0].shape.num_elements or dims[-1] < 2:
        return None, "there is nothing to sort"
    keys = keys_of(i.to_apply)
    if keys is None:
        return None, "the comparator does not order by integers, or floats in total order"
    sizes = [o.shape.element_type.byte_size for o in i.operands]
    plan = plan_of(dims, sizes, sum(k.bits // 8 for k in keys), sum(sizes[n] for n in _positions(i)))
    return plan, plan.refusal()


def _positions(i: Instruction) -> list[int]:
    """The numbers of operands that are positions along the rows; none if all are."""
    last = i.operands[0].shape.rank - 1
    found = [n for n, o in enumerate(i.operands) if o.opcode == "iota" and o.iota_dimension == last and _is_whole(o)]
    return found if len(found) < len(i.operands) else []


def _is_whole(o: Instruction) -> bool:
    return o.shape.element_type.is_integer and o.shape.element_type.bits >= 8


def _call(i: Instruction, plan: RadixPlan) -> Instruction:
    """The sort's results out of the custom call."""
    c, made_there = home(i), _positions(i)
    given = [n for n in range(len(i.operands)) if n not in made_there]
    arrays = [o.shape.with_default_layout() for o in i.operands]
    spare = arrays if plan.digits > 1 else []
    result = shapes.tuple_([*arrays, *spare, shapes.array(U32, (plan.words,)).with_default_layout()])
    made = c.add(
        "custom-call", [i.operands[n] for n in given], result, like=i, custom_call_target=TARGET,
        called_computations=(i.to_apply,), operand_layout_constraints=tuple([arrays[n] for n in given]),
    )  # fmt: skip
    if made_there:
        made.extras["backend_config"] = json.dumps({"positions": [str(n) for n in made_there]})
    parts = [c.add("get-tuple-element", [made], o.shape, like=i, index=n) for n, o in enumerate(i.operands)]
    return c.add("tuple", parts, like=i) if i.shape.is_tuple else parts[0]
