"""sharding-propagation: a sharding for every value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from heron.analysis.sharding.chosen import may_choose
from heron.analysis.sharding.fixed import is_fixed
from heron.analysis.sharding.program import ProgramShardings
from heron.analysis.sharding.propagate import Propagated, propagate
from heron.analysis.sharding.reasons import Reasons
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.sharding.model.constraints import apply_constraints, is_constraint
from heron.records import dataclass

#: values whose reasons go into the trace
MOST_DECISIONS = 200


@register
@dataclass(frozen=True)
class ShardingPropagation(Pass):
    """Gives every value a closed sharding, found from those that the user gave; results that nobody fixed stay open.

    Axes pass between operands and results along the factors of each op's sharding rule, in levels of priority, to a
    fixed point. Dimensions that the user closed stay as they are. What is chosen for parameters and results is cut back
    to whole axes that divide them; `parameters` and `results` say for each of them whether it may be chosen where none
    is given (one entry stands for all). Without them the header's allow_spmd_sharding_propagation_to_parameters and
    …_to_output say so, and without these all may be chosen.

    HloModule example, num_partitions=4
    a = f32[8,16] parameter(0), sharding={mesh['x'=2,'y'=2], [{'x'}, {}]}
    b = f32[16,6] parameter(1), sharding={mesh['x'=2,'y'=2], [{}, {'y'}]}
    d = f32[8,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT n = f32[8,6] negate(d)
    ->
    HloModule example, num_partitions=4
    d = f32[8,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0},
        sharding={mesh['x'=2,'y'=2], [{'x'}, {'y'}]}
    ROOT n = f32[8,6] negate(d), sharding={mesh['x'=2,'y'=2], [{'x', ?}, {'y', ?}]}
    """

    parameters: tuple[bool, ...] = ()
    results: tuple[bool, ...] = ()

    name = "sharding-propagation"
    constraints = (
        Constraint("sharding-importer", "sharding-propagation", "propagation knows one form of shardings"),
        Constraint("flatten-call-graph", "sharding-propagation", "two loops with one body need not agree"),
        Constraint("constant-splitter", "sharding-propagation", "two users of a constant need not agree"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        if module.num_partitions == 1 or not any("sharding" in i.extras for i in module.instructions()):
            return False
        before = {i: i.extras.get("sharding") for i in module.instructions()}
        shardings, done, changed = find_shardings(module, self.parameters, self.results)
        shardings.write(module)
        _tell(module, done, ctx)
        return changed or any(i.extras.get("sharding") != text for i, text in before.items())


def find_shardings(
    module: Module, parameters: tuple[bool, ...] = (), results: tuple[bool, ...] = ()
) -> tuple[ProgramShardings, Propagated, bool]:
    """The shardings of all values of a module, how they came about, and whether users of constraints changed.

    For the arguments see `ShardingPropagation`. Raises HLO027.
    """
    shardings = ProgramShardings.read(module)
    applied = apply_constraints(module, shardings)
    chosen = may_choose(module)
    parameters = parameters or _of_arrays((p.shape for p in module.entry.parameters), chosen[0])
    results = results or _of_arrays([module.entry.root.shape], chosen[1])
    constrained = {x: i.name for x, i in applied.sources.items()}
    done = propagate(module, shardings, parameters, results, constrained)
    changed = _result_apart(module, shardings, done) or applied.changed
    _leave_open(module, shardings, done)
    return shardings, done, changed


def _of_arrays(shapes: Iterable[Shape], flags: list[bool]) -> tuple[bool, ...]:
    """The flags of the leaves that are arrays."""
    leaves = (leaf for s in shapes for _, leaf in s.leaves())
    return tuple(flag for leaf, flag in zip(leaves, flags, strict=True) if leaf.is_array)


def _result_apart(module: Module, shardings: ProgramShardings, done: Propagated) -> bool:
    """Make the root a copy where the result has another sharding than the value that is returned."""
    root, results = module.entry.root, done.flow.results
    if root.shape.is_tuple or not results or results[0] < 0 or Trait.TUPLE in root.op.traits:
        return False
    if done.final[results[0]] == shardings.of(root):
        return False
    if root.opcode == "copy":
        shardings.set(root, (), done.final[results[0]])
        return False
    copy = module.entry.root = module.entry.add("copy", [root], root.shape, like=root)
    copy.extras.pop("sharding", None)
    shardings.set(copy, (), done.final[results[0]])
    done.flow.leaves[copy] = results
    return True


def _leave_open(module: Module, shardings: ProgramShardings, done: Propagated) -> None:
    """Mark the dimensions of results that nobody has closed: what computes a result may still split them. One that
    takes the memory of a parameter stays as large as that."""
    root = module.entry.root
    if root.opcode != "tuple" and is_fixed(root, shardings):
        return
    for (index, leaf), slot in zip(root.shape.leaves(), done.flow.results, strict=True):
        if leaf.rank and slot >= 0 and not module.input_output_aliases.has_alias(index):
            is_open = done.before_closing[slot].is_open
            shardings.set(root, index, replace(shardings.of(root, index), is_open=is_open))


def _tell(module: Module, done: Propagated, ctx: PassContext) -> None:
    """Put the reasons for the values that a user can name into the trace: interface, constraints, loops, branches."""
    named = [
        i
        for c in module.non_fusion_computations()
        for i in c.instructions
        if i.opcode == "parameter" or is_constraint(i) or Trait.CONTROL_FLOW in i.op.traits or i is module.entry.root
    ]
    named = [i for i in named if i in done.flow.leaves]  # what runs asynchronously has no shardings of its own
    reasons = Reasons(done)
    for i in named[:MOST_DECISIONS]:
        for index, leaf in i.shape.leaves():
            if not leaf.rank:
                continue
            for step in reasons.steps(i, index):
                ctx.decide(True, str(step), subject=i.name, object=step.source)
            for refused in reasons.refusals(i, index):
                ctx.decide(False, str(refused), subject=i.name, object=refused.by)
