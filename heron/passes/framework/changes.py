"""Changes of a module since a pass last ran, so that a pass in a loop need not look at everything again."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module

#: readers of an array up to which a change of one is looked at for the others
_FEW_READERS = 4


def changed_since(module: Module, time: int) -> set[Instruction]:
    """The instructions changed after `time`; one that calls a computation with changes has changed itself."""
    found = {i for c in module.computations for i in c.instructions if i.version > time}
    work = {i.parent for i in found if i.parent is not module.entry}
    callers = module.callers() if work else {}
    while work:
        c = work.pop()
        assert c is not None
        fresh = [i for i in callers[c] if i not in found]
        found.update(fresh)
        work.update(i.parent for i in fresh if i.parent is not module.entry)
    return found


def around(changed: Iterable[Instruction], reach: int) -> set[Instruction]:
    """The instructions whose near neighbourhood holds a changed one.

    That is up to `reach` steps up their operands, or one of their users, or another reader of an operand that has few.
    """
    found = set(changed)
    ring = set(found)
    for _ in range(reach):
        ring = {user for i in ring for user in i.users} - found
        if not ring:
            break
        found |= ring
    operands = {o for i in changed for o in i.operands}
    found |= operands
    found.update(user for o in operands if len(o.users) <= _FEW_READERS for user in o.users)
    return found


def in_order(c: Computation, wanted: set[Instruction]) -> list[Instruction]:
    """The instructions of `wanted` in the order of `c`."""
    return [i for i in c.instructions if i in wanted]


def diff(before: str, after: str, names: tuple[str, str] = ("before", "after")) -> str:
    """The difference of two texts, as a unified diff with one line of context."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, n=1, lineterm="")
    return "\n".join(lines)
