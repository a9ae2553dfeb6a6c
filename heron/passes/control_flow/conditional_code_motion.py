"""conditional-code-motion: what all branches end with comes after them, what only one branch needs goes into it."""

from __future__ import annotations

from collections.abc import Iterable

from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.control_flow.model.branches import (
    add_results,
    add_values,
    give_values,
    given_by_all,
    is_given_by_all,
    keep_results,
    used_results,
)
from heron.passes.control_flow.model.loop_state import reads
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.framework.base import Pass
from heron.passes.framework.canonical import Forms
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import is_movable, own_body
from heron.records import dataclass

_NAMES = having(Trait.TUPLE) | {"parameter"}
#: ops that only move elements, but may end a branch as elementwise ops do
_MOVES = having(Trait.REINDEXES) - having(Trait.READS_PART)


@register
@dataclass(frozen=True)
class ConditionalCodeMotion(Pass):
    """Moves work across the borders of conditionals.

    Out: an elementwise op that ends every branch, where the branches hand over no more bytes without it, is done once
    behind the conditional, so there is less code and it can fuse with what follows. In: an operand that nobody but one
    branch needs is computed there, so not at all when another one runs; constants go in to be folded. ``move_out`` and
    ``move_in`` switch each.

    yes {
      p = (f32[4], f32[4]) parameter(0)
      h = f32[4] get-tuple-element(p), index=0
      x = f32[4] get-tuple-element(p), index=1
      m = f32[4] multiply(h, x)
      n = f32[4] negate(m)
      ROOT a = (f32[4]) tuple(n)
    }

    no {
      x = f32[4] parameter(0)
      n = f32[4] negate(x)
      ROOT b = (f32[4]) tuple(n)
    }

    h = f32[4] sine(f32[4] x)
    both = (f32[4], f32[4]) tuple(h, x)
    c = (f32[4]) conditional(pred[] t, both, x), branch_computations={yes, no}
    ROOT r = f32[4] get-tuple-element(c), index=0
    ->
    yes {
      p = (f32[4], f32[4]) parameter(0)
      z = f32[4] get-tuple-element(p), index=1
      h = f32[4] sine(z)
      x = f32[4] get-tuple-element(p), index=0
      m = f32[4] multiply(h, x)
      ROOT a = (f32[4]) tuple(m)
    }

    no {
      x = f32[4] parameter(0)
      ROOT b = (f32[4]) tuple(x)
    }

    both = (f32[4], f32[4]) tuple(x, x)
    c = (f32[4]) conditional(t, both, x), branch_computations={yes, no}
    g = f32[4] get-tuple-element(c), index=0
    ROOT r = f32[4] negate(g)
    """

    name = "conditional-code-motion"
    looks_for = frozenset({"conditional"})
    move_out: bool = True
    move_in: bool = True

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in [i for c in module.post_order() for i in c.instructions if i.opcode == "conditional"]:
            while self.move_out and _move_out(i):
                changed = True
            if i.parent is None or not self.move_in:
                continue
            for number in range(len(i.branch_computations)):
                while _move_in(i, number):
                    changed = True
        return changed


# -- out -------------------------------------------------------------------------------------------------------------
def _move_out(i: Instruction) -> bool:
    """Do one of the ops that all branches end with behind the conditional."""
    used = used_results(i)
    found = _common_end(i, used) if used else None
    if used is None or found is None:
        return False
    n, columns = found
    own_computations(i)
    caller = i.parent
    assert caller is not None
    last = [c.root.operands[n] for c in i.branch_computations]
    known = {k: given_by_all(i, [v.operands[k] for v in last]) for k in range(len(last[0].operands))}
    added = add_results(i, [[v.operands[k] for k in columns] for v in last])
    carried = dict(zip(columns, added, strict=True))
    first = {tuple(v.operands[k] for v in last): carried[k] for k in columns}
    operands = [known[k] or first[tuple(v.operands[k] for v in last)] for k in known]
    new = caller.attach(last[0].clone(operands))
    own_body(new)
    for r in used[n]:
        caller.replace(r, new)
    if i.parent is caller:  # its other results are needed still
        keep_results(i, [k for k in range(len(i.shape.tuple_shapes or ())) if k != n])
    return True


def _common_end(i: Instruction, used: Iterable[int]) -> tuple[int, list[int]] | None:
    """The number of a result that all branches end with the same op for, and the operands that branches then give."""
    if any(c.root.opcode != "tuple" for c in i.branch_computations):
        return None
    for n in used:
        columns = _handed_over(i, [c.root.operands[n] for c in i.branch_computations])
        if columns is not None:
            return n, columns
    return None


def _handed_over(i: Instruction, last: list[Instruction]) -> list[int] | None:
    """The operand numbers whose values branches must give instead of `last`; None when these cannot come out."""
    first = last[0]
    if not (first.op.is_elementwise or first.opcode in _MOVES) or not first.operands:
        return None
    forms = Forms()
    for v in last:
        if v.opcode != first.opcode or v.shape is not first.shape or forms.attributes(v) != forms.attributes(first):
            return None
        if len(v.users) != 1 or sum(v.users.values()) != 1 or not is_movable(v):
            return None
        if [o.shape for o in v.operands] != [o.shape for o in first.operands]:
            return None
    needed: dict[tuple[Instruction, ...], int] = {}
    for k in range(len(first.operands)):
        column = tuple(v.operands[k] for v in last)
        if not is_given_by_all(i, column):
            needed.setdefault(column, k)
    handed = sum(first.operands[k].shape.byte_size for k in needed.values())
    return list(needed.values()) if handed <= first.shape.byte_size else None


# -- in --------------------------------------------------------------------------------------------------------------
def _move_in(i: Instruction, number: int) -> bool:
    """Compute one element of a branch's operand in the branch."""
    given = i.operands[1 + number]
    c = i.branch_computations[number]
    found = reads(c.parameters[0]) if given.opcode == "tuple" else None
    if found is None or len(i.branch_computations) == 1:
        return False
    only_here = len(given.users) == 1 and given.users[i] == 1
    for n, read in sorted(found.items()):
        value = given.operands[n]
        mine = only_here and len(value.users) == 1 and value.users[given] == 1 and value.opcode not in _NAMES
        if any(r.users or r.is_root for r in read) and (_is_constant(value) or (mine and is_movable(value))):
            break
    else:
        return False
    own_computations(i)
    c = i.branch_computations[number]
    read = (reads(c.parameters[0]) or {})[n]
    _compute_in(i, number, value, read)
    left = {k for k, r in (reads(c.parameters[0]) or {}).items() if r}
    give_values(i, number, sorted(left))
    return True


def _is_constant(i: Instruction) -> bool:
    return i.opcode == "constant" or i.opcode == "broadcast" and i.operands[0].opcode == "constant"


def _compute_in(i: Instruction, number: int, value: Instruction, read: list[Instruction]) -> None:
    c = i.branch_computations[number]
    if _is_constant(value):
        inside = c.attach(value.clone([c.attach(o.clone()) for o in value.operands]))
    else:
        inside = c.attach(value.clone(add_values(i, number, value.operands)))
        own_body(inside)
    for r in read:
        c.replace(r, inside)
