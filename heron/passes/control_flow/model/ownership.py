"""Computations of a loop, conditional or call for it alone.

Several instructions may run one computation. A pass that changes it by what it knows about one of them (where its state
starts, which results are read) must first make it that one's own, and only then look for what it changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.building import own_body


def own_computations(i: Instruction) -> Mapping[Instruction, Instruction]:
    """Copy what `i` runs where another instruction, or another place of this one, runs it too.

    Gives what stands now for each instruction that `i` ran: a copy, or the instruction itself where none was needed.
    """
    assert i.parent is not None and i.parent.module is not None
    callers = i.parent.module.callers()
    return copy_taken(i, {c for c in i.called if any(other is not i for other in callers[c])})


def copy_taken(i: Instruction, taken: set[Computation]) -> Mapping[Instruction, Instruction]:
    """Copy each computation that `i` runs and that is `taken`; what it runs now is taken from then on.

    Gives what stands now for each instruction that `i` ran.
    """
    assert i.parent is not None and i.parent.module is not None
    module = i.parent.module
    now: dict[Instruction, Instruction] = {}

    def own(c: Computation) -> Computation:
        copy = module.add_computation(c.clone()) if c in taken else c
        taken.update((c, copy))
        for old, new in zip(c.instructions, copy.instructions, strict=True):
            now.setdefault(old, new)
            if new is not old:
                own_body(new)
        return copy

    before = i.called
    for name, value in list(i.attrs.items()):
        if isinstance(value, Computation):
            i.attrs[name] = own(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Computation):
            i.attrs[name] = tuple(map(own, value))
    if i.called != before:
        i.mark_changed()
    return now
