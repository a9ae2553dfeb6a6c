"""sort-simplifier: sorts move no more arrays than they must."""

from __future__ import annotations

from heron.analysis.values.non_negative import never_negative
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.control_flow.model.loop_state import reads
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import reshape
from heron.passes.simplify.gather_simplifier import is_simple
from heron.records import dataclass


@register
@dataclass(frozen=True)
class SortSimplifier(Pass):
    """Drops sort operands whose sorted form nobody reads and the comparator does not look at, and sorts of one element.

    An operand that is there twice is sorted once. A gather that takes an operand in the order of positions
    that were sorted along, as in `x[argsort(x)]`, gives that operand sorted.

    by_first {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      c = s32[] parameter(2)
      d = s32[] parameter(3)
      ROOT l = pred[] compare(a, b), direction=LT
    }

    s = (f32[8], s32[8]) sort(f32[8] x, s32[8] y), dimensions={0}, to_apply=by_first
    ROOT r = f32[8] get-tuple-element(s), index=0
    ->
    by_first {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT l = pred[] compare(a, b), direction=LT
    }

    ROOT s = f32[8] sort(x), dimensions={0}, to_apply=by_first
    """

    name = "sort-simplifier"
    looks_for = frozenset({"sort"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in [i for i in module.instructions() if i.opcode == "sort"]:
            if i.parent is not None:  # it may have died with one before
                changed |= _of_one(i) or _without_doubles(i) or _without_gathers(i) | _without_unread(i)
        if changed:
            module.remove_unused_computations()
        return changed


def _of_one(i: Instruction) -> bool:
    c = i.parent
    assert c is not None
    if i.operands[0].shape.dims[i.dimensions[0]] > 1:
        return False
    same = i.operands[0] if len(i.operands) == 1 else c.add("tuple", i.operands, like=i)
    c.replace(i, same)
    return True


def _without_doubles(i: Instruction) -> bool:
    """Has the first of equal operands read and compared in place of the others, which then nobody needs."""
    first = {n: i.operands.index(o) for n, o in enumerate(i.operands)}
    doubles = [n for n, m in first.items() if n != m]
    used = reads(i) if doubles else None
    if used is None:
        return False
    c, compared = i.parent, i.to_apply
    assert c is not None and c.module is not None
    seen = [p for p in compared.parameters if p.attrs["number"] // 2 in doubles and (p.users or p.is_root)]
    if seen:
        compared = c.module.add_computation(compared.clone())
        for p in [compared.parameters[p.attrs["number"]] for p in seen]:
            number, side = divmod(p.attrs["number"], 2)
            p.replace_uses_with(compared.parameters[2 * first[number] + side])
        i.attrs["to_apply"] = compared
    changed = bool(seen)
    for n in doubles:
        for read in list(used.get(n, ())):
            part = c.add("get-tuple-element", [i], read.shape, index=first[n])
            c.replace(read, part)
            changed = True
    return changed and (_without_unread(i) or changed)


def _without_gathers(i: Instruction) -> bool:
    """Reads the sorted operand in place of gathers that take it in the sorted order."""
    used, changed = reads(i) if i.shape.is_tuple and i.operands[0].shape.rank == 1 else None, False
    for n, order in (used or {}).items():
        if i.operands[n].opcode == "iota" and never_negative(i.operands[n]):
            for read in order:
                for gather in [g for m in read.users for g in m.users if m.opcode == "reshape"]:
                    changed |= gather.opcode == "gather" and _is_sorted(gather, read, i)
    return changed


def _is_sorted(gather: Instruction, order: Instruction, sort: Instruction) -> bool:
    """Reads an operand sorted where a gather takes its elements one by one in the order of positions `order`."""
    x, matrix = gather.operands
    if x not in sort.operands or matrix.operands[0] is not order or not is_simple(gather) or gather.slice_sizes != (1,):
        return False
    c, n = sort.parent, sort.operands.index(x)
    assert c is not None
    part = c.add("get-tuple-element", [sort], x.shape, index=n)
    c.replace(gather, reshape(part, gather.shape.dims))
    return True


def _without_unread(i: Instruction) -> bool:
    if not i.shape.is_tuple:
        return False
    used = reads(i)
    if used is None:
        return False
    compared = {p.attrs["number"] // 2 for p in i.to_apply.parameters if p.users or p.is_root}
    keep = [n for n in range(len(i.operands)) if n in compared or n in used]
    if len(keep) == len(i.operands):
        return False
    c = i.parent
    assert c is not None and c.module is not None
    comparator = c.module.add_computation(_comparator(i.to_apply, keep))
    kept = [i.operands[n] for n in keep]
    small = c.add("sort", kept, like=i, dimensions=i.dimensions, is_stable=i.is_stable, to_apply=comparator)
    for place, n in enumerate(keep):
        for read in used.get(n, ()):
            part = small if len(keep) == 1 else c.add("get-tuple-element", [small], read.shape, index=place)
            c.replace(read, part)
    c.remove_dead_from(i)
    return True


def _comparator(old: Computation, keep: list[int]) -> Computation:
    """The comparator of the operands `keep` alone."""
    new = old.clone()
    for p in new.parameters:
        n, side = divmod(p.attrs["number"], 2)
        if n in keep:
            p.attrs["number"] = 2 * keep.index(n) + side
            p.mark_changed()
        else:
            new.remove(p)
    return new
