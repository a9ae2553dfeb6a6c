"""Replace instructions of called computations by zeros: no parameter can take their place there."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.module import Module
from heron.passes.rewriting.building import splat
from heron.reduce.draft import Draft, can_be_given
from heron.reduce.edits.kind import Kind


def _atoms(module: Module) -> list[str]:
    return [
        i.name
        for c in reversed(module.post_order())
        if c is not module.entry
        for i in reversed(c.post_order())
        if can_be_given(i)
        and i.shape.is_array
        and i.opcode != "constant"
        and any(o.opcode != "constant" for o in i.operands)
    ]


def _zero(draft: Draft, names: Sequence[str]) -> bool:
    done = False
    for name in names:
        i = draft.find(name)
        if i is None or i.parent is None or not (i.users or i.is_root):
            continue
        i.drop_control_edges()
        i.replace_uses_with(splat(i.parent, i.shape, 0))
        done = True
    return done


BODIES = Kind("zeros", _atoms, _zero)
