"""dynamic-padder: bounded dynamic dimensions as fixed ones, padded and masked."""

from __future__ import annotations

from collections.abc import Callable

from heron.analysis.dynamic_sizes import DynamicSizes, dynamic_places
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.copies.flatten_call_graph import FlattenCallGraph
from heron.passes.dynamic.model.control_flow import Result, padded_conditional, padded_while
from heron.passes.dynamic.model.edges import at_edge, enter, is_cut, leave
from heron.passes.dynamic.model.padded import Numbers, Padded, refused
from heron.passes.dynamic.model.report import Report, first_of, report_of
from heron.passes.dynamic.model.size_check_insertion import Watch
from heron.passes.dynamic.rules import padded_form
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import is_static
from heron.records import dataclass


@register
@dataclass(frozen=True)
class DynamicPadder(Pass):
    """Gives every array the size of its bound and carries the actual sizes along as numbers.

    Elements beyond the size are never read for a result: sums and products see identities or zeros there, sorts put
    them last, and elements after them are moved up. Only the entry's parameters and result stay dynamic, behind a
    ``PadToStatic`` and before a ``SliceToDynamic``. Where sizes must agree and that does not follow from the program,
    `Options.shape_checks` says whether the program looks when it runs, the compile fails, or nobody looks.

    add {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    ROOT r = f32[] reduce(f32[<=8] x, zero), dimensions={0}, to_apply=add
    ->
    whole = (f32[8], s32[]) custom-call(x), custom_call_target="PadToStatic"
    y = f32[8] get-tuple-element(whole), index=0
    size = s32[] get-tuple-element(whole), index=1
    place = s32[8] iota(), iota_dimension=0
    limit = s32[8] broadcast(size), dimensions={}
    inside = pred[8] compare(place, limit), direction=LT
    none = f32[] constant(-0)
    nones = f32[8] broadcast(none), dimensions={}
    z = f32[8] select(inside, y, nones)
    ROOT r = f32[] reduce(z, zero), dimensions={0}, to_apply=add
    """

    name = "dynamic-padder"
    constraints = (
        Constraint("call-inliner", "dynamic-padder", "calls are no place to hand sizes over"),
        Constraint("async-to-sync", "dynamic-padder", "what is begun is a call"),
        Constraint("batchnorm-expander", "dynamic-padder", "a batch norm divides by how many elements count"),
        Constraint("topk-decomposer", "dynamic-padder", "what does not count is last of a sort, not of a topk"),
        Constraint("dynamic-padder", "layout-assignment", "code is made for fixed sizes"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        edge = at_edge(module)
        if all(i in edge or is_static(i) for i in module.instructions()):
            return False
        FlattenCallGraph().run(module, ctx)  # each loop hands sizes over in its own way
        found, entry = DynamicSizes(module), module.entry
        work = _Work(found, Watch(module, found, ctx))
        shape = entry.root.shape

        def entered(numbers: Numbers) -> None:
            for p in entry.parameters:
                if dynamic_places(p.shape):
                    enter(p, numbers)

        value, report = work.pad(entry, entered)
        entry.root = leave(value, shape)
        if report is not None:
            look = work.watch.look(report)
            for cut in (i for i in entry.instructions if is_cut(i)):
                cut.add_control_predecessor(look)
        work.sweep()
        module.remove_unused_computations()
        return True


class _Work:
    """Pads computations and remembers what was replaced."""

    def __init__(self, found: DynamicSizes, watch: Watch) -> None:
        self.found, self.watch = found, watch
        self.replaced: list[Instruction] = []
        self.done: set[Computation] = set()

    def pad(self, c: Computation, entered: Callable[[Numbers], None] = lambda _: None) -> Result:
        """Give all of a computation fixed sizes; `entered` makes its dynamic parameters' values.

        Gives the root's value, and what the checks find where there are any. Raises PASS020 for an op without a rule.
        """
        self.done.add(c)
        order, root = c.post_order(), c.root
        values: dict[Instruction, Padded] = {}
        numbers = Numbers(c, self.found, values)
        entered(numbers)
        reports: list[Report] = []
        for i in order:
            checks = self.watch.at(i)
            carries = self.watch.carries(i)
            if is_static(i) and not carries:
                self._pad_inside(i)
            elif i.opcode != "parameter":
                operands = [values.get(o) or numbers.static(o) for o in i.operands]
                values[i], report = self._padded(i, operands, numbers, carries)
                reports += [report] if report is not None else []
                self.replaced.append(i)
                if not dynamic_places(i.shape):
                    i.replace_uses_with(values[i].x)
            reports += [report_of(numbers, check, n) for n, check in checks]
        return values.get(root) or numbers.static(c.root), first_of(reports)

    def _padded(self, i: Instruction, operands: list[Padded], numbers: Numbers, carries: bool) -> Result:
        match i.opcode:
            case "while":
                return padded_while(i, operands[0], self._branch, carries)
            case "conditional":
                return padded_conditional(i, operands, self._branch, carries)
            case "call" | "fusion" | "async-start":
                raise refused(i, "it is a call")
        return numbers.padded(padded_form(i, operands), i), None

    def _branch(self, c: Computation, entered: Callable[[Numbers], None]) -> Result:
        """A computation that is to take its only parameter in another form."""
        self.replaced += c.parameters
        return self.pad(c, entered)

    def _pad_inside(self, i: Instruction) -> None:
        """Computations that are called with fixed sizes may make others themselves."""
        for callee in i.called:
            if callee not in self.done:
                callee.root = self.pad(callee)[0].x

    def sweep(self) -> None:
        """Remove what was replaced, users first."""
        for i in reversed(self.replaced):
            if i.parent is not None and not i.users and not i.is_root:
                i.parent.remove(i)
