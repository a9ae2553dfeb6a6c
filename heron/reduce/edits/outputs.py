"""Drop outputs of the entry."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.module import Module
from heron.reduce.draft import Draft
from heron.reduce.edits.kind import Kind


def _atoms(module: Module) -> list[str]:
    root = module.entry.root
    return [str(n) for n in range(len(root.operands))] if root.opcode == "tuple" else []


def _drop(draft: Draft, places: Sequence[str]) -> bool:
    entry, gone = draft.module.entry, {int(n) for n in places}
    kept = [o for n, o in enumerate(entry.root.operands) if n not in gone]
    if kept:
        draft.set_root(entry, kept)
    return bool(kept)


OUTPUTS = Kind("outputs", _atoms, _drop)
