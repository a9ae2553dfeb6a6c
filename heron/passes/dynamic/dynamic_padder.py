"""dynamic-padder: bounded dynamic dimensions as fixed ones, padded and masked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Constraint, Pass
from heron.passes.building import is_static
from heron.passes.context import PassContext
from heron.passes.dynamic.control_flow import padded_conditional, padded_while
from heron.passes.dynamic.edges import at_edge, enter, leave
from heron.passes.dynamic.padded import Padded, dynamic_places, refused
from heron.passes.dynamic.rules import padded_form
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class DynamicPadder(Pass):
    """Gives every array the size of its bound and carries the actual sizes along as numbers.

    What stands beyond the size is never read for a result: sums and products see identities or zeros there, sorts put
    it last, and what comes after it is moved up. Only the entry's parameters and result stay dynamic, behind a
    ``PadToStatic`` and before a ``SliceToDynamic``.

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
        Constraint("dynamic-padder", "layout-assignment", "code is made for fixed sizes"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        edge = at_edge(module)
        if all(i in edge or is_static(i) for i in module.instructions()):
            return False
        work, entry = _Work(), module.entry
        shape = entry.root.shape

        def entered() -> dict[Instruction, Padded]:
            return {p: enter(p) for p in entry.parameters if dynamic_places(p.shape)}

        entry.root = leave(work.pad(entry, entered), shape)
        work.sweep()
        module.remove_unused_computations()
        return True


class _Work:
    """Pads computations and remembers what was replaced."""

    def __init__(self) -> None:
        self.replaced: list[Instruction] = []
        self.done: set[Computation] = set()

    def pad(self, c: Computation, entered: Callable[[], dict[Instruction, Padded]] = dict) -> Padded:
        """Give all of a computation fixed sizes; `entered` makes its dynamic parameters' values. Gives the root's.

        Raises PASS020 for an op that has no rule.
        """
        order, root = c.post_order(), c.root
        values = entered()
        for i in order:
            if is_static(i):
                self._pad_inside(i)
            elif i.opcode != "parameter":
                values[i] = self._padded(i, [values.get(o) or Padded(o) for o in i.operands])
                self.replaced.append(i)
                if not dynamic_places(i.shape):
                    i.replace_uses_with(values[i].x)
        return values.get(root) or Padded(c.root)

    def _padded(self, i: Instruction, operands: list[Padded]) -> Padded:
        if i.opcode == "while":
            return padded_while(i, operands[0], self._branch)
        if i.opcode == "conditional":
            return padded_conditional(i, operands, self._branch)
        if i.opcode in ("call", "fusion", "async-start"):
            raise refused(i, "it is a call")
        return padded_form(i, operands)

    def _branch(self, c: Computation, entered: Callable[[], dict[Instruction, Padded]]) -> Padded:
        """A computation that is to take its only parameter in another form."""
        self.replaced += c.parameters
        return self.pad(c, entered)

    def _pad_inside(self, i: Instruction) -> None:
        """Computations that are called with fixed sizes may make others themselves."""
        for callee in i.called:
            if callee not in self.done:
                self.done.add(callee)
                callee.root = self.pad(callee).x

    def sweep(self) -> None:
        """Remove what was replaced, users first."""
        for i in reversed(self.replaced):
            if i.parent is not None and not i.users and not i.is_root:
                i.parent.remove(i)
