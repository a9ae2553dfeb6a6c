"""Put a called computation in the place of its caller: a call's, a fusion's, a branch's, a loop's body once."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.rewriting.building import inline
from heron.reduce.draft import Draft
from heron.reduce.edits.kind import Kind


def _atoms(module: Module) -> list[str]:
    return [
        f"{i.name}/{n}"
        for c in reversed(module.post_order())
        for i in c.instructions
        for n, callee in enumerate(i.called)
        if _arguments(i, n, callee) is not None
    ]


def _arguments(i: Instruction, place: int, callee: Computation) -> list[Instruction] | None:
    """The operands of `i` that its computation takes, if the computation's value can stand for `i`."""
    if callee.root.shape.bare is not i.shape.bare:
        return None
    # a conditional has an operand for each branch, behind the one that chooses
    for given in (i.operands, i.operands[place + 1 : place + 2]):
        if [o.shape.bare for o in given] == [p.shape.bare for p in callee.parameters]:
            return list(given)
    return None


def _inline(draft: Draft, atoms: Sequence[str]) -> bool:
    done = False
    for atom in atoms:
        name, _, place = atom.rpartition("/")
        i = draft.find(name)
        if i is None:
            continue
        callee = i.called[int(place)]
        arguments = _arguments(i, int(place), callee)
        if arguments is not None:
            inline(i, callee, arguments)
            done = True
    return done


INLINING = Kind("inline", _atoms, _inline)
