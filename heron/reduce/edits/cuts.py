"""Replace instructions of the entry by parameters that hold their values; or make one the result."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.module import Module
from heron.reduce.draft import Draft, can_be_given
from heron.reduce.edits.kind import Kind


def _atoms(module: Module) -> list[str]:
    return [i.name for i in reversed(module.entry.post_order()) if can_be_given(i) and not i.is_root]


def _cut(draft: Draft, names: Sequence[str]) -> bool:
    return any([draft.cut(i) for n in names if (i := draft.find(n)) is not None and i.users])


def _end_at(draft: Draft, names: Sequence[str]) -> bool:
    new = draft.find(names[0])
    if new is None:
        return False
    draft.module.entry.root = new
    return True


CUTS = Kind("cut", _atoms, _cut)
ROOTS = Kind("root", _atoms, _end_at, together=1)
