"""Constraints ahead of propagation: what a `Sharding` custom call says of the value that it is given.

A constraint whose dimensions are all closed holds for its operand too, if nothing else is said of that. Where the
operand is carried by a loop or comes out of a branch, its other users take the constraint's result instead, so that the
loop stays free. At the end of a chain of constraints, later users of the first value take the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from heron.analysis.sharding.groups import is_free
from heron.analysis.sharding.program import ProgramShardings
from heron.hlo.calls.markers import BORDERS
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.records import dataclass


@dataclass(slots=True)
class Applied:
    """The outcome: whether users of values have changed, and the constraint that each value got its sharding from."""

    changed: bool = False
    sources: dict[Instruction, Instruction] = field(default_factory=dict)


def apply_constraints(module: Module, shardings: ProgramShardings) -> Applied:
    """Pass on what constraints say; the shardings of values that follow from them are put into `shardings`."""
    applied = Applied()
    callers = module.callers()
    for c in module.non_fusion_computations():
        found = [i for i in c.instructions if is_constraint(i)]
        if not found:
            continue
        order = {i: n for n, i in enumerate(c.post_order())}
        for i in sorted(found, key=order.__getitem__):
            applied.changed |= _take_the_last(i, shardings, order)
            applied.changed |= _apply(i, shardings, callers, applied.sources)
    return applied


def is_constraint(i: Instruction) -> bool:
    """Whether `i` says how its operand is sharded: a constraint, or what enters a manual computation."""
    return i.opcode == "custom-call" and i.custom_call_target == "Sharding" and not i.shape.is_tuple


def _enters_manual(i: Instruction) -> bool:
    """Whether a constraint is the border of a manual computation alone."""
    return all(u.opcode == "custom-call" and u.custom_call_target in BORDERS for u in i.users) and bool(i.users)


def _is_free(x: Instruction, shardings: ProgramShardings) -> bool:
    """Whether nothing is said of a value. A scalar has no dimensions to be open: what is written at it counts."""
    s = shardings.of(x)
    return is_free(s) and (s.rank > 0 or "sharding" not in x.extras)


def _apply(
    i: Instruction,
    shardings: ProgramShardings,
    callers: Mapping[Computation, list[Instruction]],
    sources: dict[Instruction, Instruction],
) -> bool:
    """Give the operand of a closed constraint its sharding, or make the operand's users read the constraint."""
    x, s = _captured(i.operands[0], callers), shardings.of(i)
    if any(s.is_open) or i in shardings.groups or not _is_free(x, shardings):
        return False
    if any(u is not i and is_constraint(u) and shardings.of(u) != s for u in x.users):  # they disagree
        return False
    if not _is_on_an_edge(x):
        shardings.set(x, (), s)
        sources[x] = i
        return False
    if s.unreduced:
        shardings.set(x, (), replace(shardings.of(x), unreduced=s.unreduced))
    home = x.parent
    assert home is not None
    outer = i if i.parent is home else _moved_out(i, x, shardings)
    others = [u for u in x.users if u is not outer]
    if not others and home.root is not x:
        return False
    x.replace_uses_with(outer, others)
    if home.root is x:
        home.root = outer
    return True


def _moved_out(i: Instruction, x: Instruction, shardings: ProgramShardings) -> Instruction:
    """The constraint in the computation that a branch gets its operand from; its users read that operand."""
    inner = i.parent
    assert inner is not None and x.parent is not None
    outer = x.parent.attach(i.clone([x]))
    shardings.set(outer, (), shardings.of(i))
    i.replace_uses_with(i.operands[0])
    inner.remove(i)
    return outer


def _captured(x: Instruction, callers: Mapping[Computation, list[Instruction]]) -> Instruction:
    """The value that a branch's parameter stands for, where one conditional alone has that branch; else `x`."""
    while True:
        source, index = (x.operands[0], x.index) if x.opcode == "get-tuple-element" else (x, None)
        if source.opcode != "parameter" or source.parent is None or source.parent.is_entry:
            return x
        home = source.parent
        calling = callers.get(home, [])
        if len(calling) != 1 or calling[0].opcode != "conditional":
            return x
        given = calling[0].operands[1 + calling[0].called.index(home)]
        if index is not None and given.opcode != "tuple":
            return x
        x = given if index is None else given.operands[index]


def _is_on_an_edge(x: Instruction) -> bool:
    """Whether `x` shares its sharding with others: carried by a loop, out of a branch, a barrier, a manual border."""
    while x.opcode == "get-tuple-element":
        x = x.operands[0]
    if x.opcode == "custom-call":
        return x.custom_call_target in BORDERS
    if x.opcode == "parameter":
        return x.parent is not None and not x.parent.is_entry
    return Trait.CONTROL_FLOW in x.op.traits or x.opcode == "opt-barrier"


def _take_the_last(head: Instruction, shardings: ProgramShardings, order: dict[Instruction, int]) -> bool:
    """Let users of the first value of a chain of constraints that come behind the chain take the last constraint."""
    x = head.operands[0]
    if is_constraint(x) or _enters_manual(head) or not _is_free(x, shardings):
        return False
    if any(u is not head and is_constraint(u) for u in x.users):
        return False
    tail = head
    while len(tail.users) == 1:
        (user,) = tail.users
        if not is_constraint(user) or _enters_manual(user):
            break
        tail = user
    if tail is head or any(map(is_constraint, tail.users)):
        return False
    later = [u for u in x.users if order[u] > order[tail] and not _gives_back(u)]
    if later:
        x.replace_uses_with(tail, later)
    return bool(later)


def _gives_back(u: Instruction) -> bool:
    """Whether `u` is the tuple that its computation returns."""
    home: Computation | None = u.parent
    return home is not None and home.root is u and u.opcode == "tuple"
