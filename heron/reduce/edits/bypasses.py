"""Replace an instruction, in any computation, by one of its operands of the same shape."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.module import Module
from heron.reduce.draft import Draft
from heron.reduce.edits.kind import Kind


def _atoms(module: Module) -> list[str]:
    return [
        f"{i.name}/{n}"
        for c in reversed(module.post_order())
        for i in reversed(c.post_order())
        for n, o in enumerate(i.operands)
        if o.shape.bare is i.shape.bare
    ]


def _bypass(draft: Draft, atoms: Sequence[str]) -> bool:
    done = False
    for atom in atoms:
        name, _, place = atom.rpartition("/")
        i = draft.find(name)
        if i is not None and (i.users or i.is_root):
            i.drop_control_edges()
            i.replace_uses_with(i.operands[int(place)])
            done = True
    return done


BYPASSES = Kind("bypass", _atoms, _bypass)
