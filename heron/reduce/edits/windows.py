"""Keep a run of the entry's instructions: what they read becomes parameters, what others read of them is the result.

This is the edit that makes large programs small. Half of a program is as quick to judge as half of a program.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.reduce.draft import Draft, can_be_given
from heron.reduce.edits.kind import Kind


def _atoms(module: Module) -> list[str]:
    return [i.name for i in module.entry.post_order() if i.opcode != "parameter" and not is_fixed(i)]


def is_fixed(i: Instruction) -> bool:
    """Whether `i` is a constant, or made of constants alone: it goes wherever it is read."""
    return i.opcode == "constant" or (facts.is_generated(i) and all(map(is_fixed, i.operands)))


def _keep(draft: Draft, names: Sequence[str]) -> bool:
    entry = draft.module.entry
    kept = {i for n in names if (i := draft.find(n)) is not None}
    order = entry.post_order()
    results = [i for i in order if i in kept and (i is entry.root or any(u not in kept for u in i.users))]
    results = [i for i in results if all(s.is_array for _, s in i.shape.leaves())]
    if not results:
        return False
    for i in order:
        if i in kept or i.opcode == "parameter" or is_fixed(i) or not any(u in kept for u in i.users):
            continue
        if not can_be_given(i) or not draft.cut(i):
            return False
    draft.set_root(entry, results)
    return True


def around(module: Module, places: Sequence[Sequence[str]]) -> list[str]:
    """The entry's instructions by their steps from these places. A place is the first of its names that there is."""
    by_name = {i.name: i for i in module.instructions()}
    callers = module.callers()
    starts = []
    for names in places:
        at = next((by_name[n] for n in names if n in by_name), None)
        while at is not None and at.parent is not None and at.parent is not module.entry:
            at = next(iter(callers.get(at.parent, ())), None)
        if at is not None and at.parent is module.entry:
            starts.append(at)
    found, waiting = dict.fromkeys(starts), deque(dict.fromkeys(starts))
    while waiting:
        i = waiting.popleft()
        new = [n for n in (*i.operands, *i.users) if n not in found and n.opcode != "parameter" and not is_fixed(n)]
        found.update(dict.fromkeys(new))
        waiting += new
    return [i.name for i in found if i.opcode != "parameter"]


WINDOWS = Kind("window", _atoms, _keep, narrows=True)
