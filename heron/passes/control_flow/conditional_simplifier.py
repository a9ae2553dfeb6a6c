"""conditional-simplifier: conditionals whose branch is known or not worth branching for, and values nobody needs."""

from __future__ import annotations

from heron.analysis.values.splat import splat_value
from heron.hlo.facts import having
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.types import PRED
from heron.passes.control_flow.model.branches import (
    give_tuples,
    give_values,
    given_by_all,
    keep_results,
    select_branches,
    used_results,
)
from heron.passes.control_flow.model.loop_state import reads
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.framework.base import Pass
from heron.passes.framework.canonical import Forms
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import inline
from heron.passes.rewriting.tuples import part_of
from heron.records import dataclass

#: neither computes nor moves much by itself
_FREE = having(Trait.GIVEN, Trait.TUPLE, Trait.VIEW) | {"broadcast"}
#: not elementwise, but cheap enough to be done in vain (as XLA has it)
_CHEAP = _FREE | {"concatenate", "dynamic-slice", "slice", "transpose", "reduce"}

#: flops of an op that takes a CPU longer than a branch does: exponentials and beyond
_DEAR = 12

#: sweeps over a module; each of them makes a conditional smaller, or is the last
_SWEEPS = 1000


@register
@dataclass(frozen=True)
class ConditionalSimplifier(Pass):
    """Inlines the branch of a conditional that is known, or that does what all do, and drops what is not needed.

    Of the result that is what nobody reads, what all branches give alike and what they hand through from before; of the
    operands what the branch does not read. Two small branches of elementwise ops become selects: ``select_elements``
    is how many elements both together may compute for that. On a CPU, branches with exponentials and the like stay.

    less {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT l = pred[] compare(a, b), direction=LT
    }

    yes {
      p = (f32[4], f32[4]) parameter(0)
      x = f32[4] get-tuple-element(p), index=0
      y = f32[4] get-tuple-element(p), index=1
      s = f32[4] sort(x), dimensions={0}, to_apply=less
      ROOT r = (f32[4], f32[4], f32[4]) tuple(s, y, x)
    }

    no {
      p = (f32[4], f32[4]) parameter(0)
      x = f32[4] get-tuple-element(p), index=0
      y = f32[4] get-tuple-element(p), index=1
      ROOT r = (f32[4], f32[4], f32[4]) tuple(x, y, y)
    }

    t = (f32[4], f32[4]) tuple(f32[4] v, f32[4] w)
    c = (f32[4], f32[4], f32[4]) conditional(pred[] p, t, t), branch_computations={yes, no}
    a = f32[4] get-tuple-element(c), index=0
    b = f32[4] get-tuple-element(c), index=1
    ROOT r = f32[4] add(a, b)
    ->
    yes {
      p = (f32[4]) parameter(0)
      x = f32[4] get-tuple-element(p), index=0
      s = f32[4] sort(x), dimensions={0}, to_apply=less
      ROOT r = (f32[4]) tuple(s)
    }

    no {
      p = (f32[4]) parameter(0)
      x = f32[4] get-tuple-element(p), index=0
      ROOT r = (f32[4]) tuple(x)
    }

    u = (f32[4]) tuple(v)
    n = (f32[4]) tuple(v)
    c = (f32[4]) conditional(p, u, n), branch_computations={yes, no}
    a = f32[4] get-tuple-element(c), index=0
    ROOT r = f32[4] add(a, w)
    """

    name = "conditional-simplifier"
    looks_for = frozenset({"conditional"})
    select_elements: int = 1 << 14

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for _ in range(_SWEEPS):
            if not self._sweep(module, ctx):
                break
            changed = True
        else:
            ctx.note(f"{self.name}: stopped after {_SWEEPS} sweeps over the module")
        if changed:
            module.remove_unused_computations()
        return changed

    def _sweep(self, module: Module, ctx: PassContext) -> bool:
        """Simplify every conditional once."""
        branches_well = ctx.target is not None and not ctx.target.is_gpu
        changed = False
        for i in [i for i in module.instructions() if i.opcode == "conditional"]:
            if i.parent is not None and i.parent.module is module:
                changed |= _inline_known(i) or self._select(i, branches_well) or _simplify(i)
        return changed

    def _select(self, i: Instruction, branches_well: bool) -> bool:
        if i.operands[0].shape.element_type is not PRED or any(not s.is_array for _, s in i.shape.leaves()):
            return False
        branches = i.branch_computations
        if not all(_is_cheap(j) for c in branches for j in c.instructions):
            return False
        elements = sum(_elements(j) for c in branches for j in c.instructions if j.opcode not in _FREE)
        if elements > self.select_elements:
            return False
        if branches_well and any(j.op.flops >= _DEAR for c in branches for j in c.instructions):
            return False
        select_branches(i)
        return True


def _elements(i: Instruction) -> int:
    return max([i.shape.num_elements, *(o.shape.num_elements for o in i.operands)])


def _is_cheap(i: Instruction) -> bool:
    ordered = i.control_predecessors or i.control_successors or i.op.has_side_effect
    return not ordered and (i.op.is_elementwise or i.opcode in _CHEAP)


# -- the branch ------------------------------------------------------------------------------------------------------
def _inline_known(i: Instruction) -> bool:
    n = _known_branch(i)
    if n is not None:
        inline(i, i.branch_computations[n], [i.operands[1 + n]])
    return n is not None


def _known_branch(i: Instruction) -> int | None:
    """The number of the branch that always runs, or of one that does what they all do."""
    branches: tuple[Computation, ...] = i.branch_computations
    value = splat_value(i.operands[0])
    if value is None:
        forms = Forms()
        same = len(set(i.operands[1:])) == 1 and len({forms.of(c) for c in branches}) == 1
        return 0 if same else None
    if i.operands[0].shape.element_type is PRED:
        return 0 if value else 1
    return int(value) if 0 <= int(value) < len(branches) else len(branches) - 1


# -- results and operands --------------------------------------------------------------------------------------------
def _simplify(i: Instruction) -> bool:
    changed = _drop_results(i) if i.shape.is_tuple else _forward_whole(i)
    return changed or (i.parent is not None and _drop_operands(i))


def _forward_whole(i: Instruction) -> bool:
    """A result that every branch hands through alike is that value."""
    value = given_by_all(i, [c.root for c in i.branch_computations])
    if value is None or i.has_side_effect:
        return False
    assert i.parent is not None
    i.parent.replace(i, value)
    return True


def _drop_results(i: Instruction) -> bool:
    """Keep only elements of the result that are read, and differ from each other and from what was there before."""
    used = used_results(i)
    if used is None:
        return False
    count = len(i.shape.tuple_shapes or ())
    keep: list[int] = []
    same: dict[int, int] = {}
    firsts: dict[tuple[Instruction, ...], int] = {}
    forwarded: dict[int, Instruction] = {}
    are_tuples = all(c.root.opcode == "tuple" for c in i.branch_computations)
    for n in sorted(used):
        given = [c.root.operands[n] for c in i.branch_computations] if are_tuples else []
        value = given_by_all(i, given)
        first = firsts.setdefault(tuple(given), n) if given else n
        if value is not None:
            forwarded[n] = value
        elif first != n:
            same[n] = first
        else:
            keep.append(n)
    if len(keep) == count:
        return False
    caller = i.parent
    assert caller is not None
    for n, read in used.items():
        if n in forwarded or n in same:
            for r in read:
                caller.replace(r, forwarded[n] if n in forwarded else part_of(i, (same[n],)))
    if i.parent is caller:  # some of it is read still, or it has effects
        give_tuples(i)
        keep_results(i, keep)
    return True


def _drop_operands(i: Instruction) -> bool:
    """Hand each branch only what it reads."""
    wanted: dict[int, list[int]] = {}
    for number, c in enumerate(i.branch_computations):
        parameter = c.parameters[0]
        found = reads(parameter)
        if found is None:
            continue
        needed = sorted(n for n, read in found.items() if any(r.users or r.is_root for r in read))
        shapes = parameter.shape.tuple_shapes
        if len(needed) < len(shapes) if shapes is not None else not needed:
            wanted[number] = needed
    if not wanted:
        return False
    own_computations(i)
    for number, needed in wanted.items():
        give_values(i, number, needed)
    return True
