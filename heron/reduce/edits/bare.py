"""Take away what instructions carry: metadata, shardings, control edges and the like; and fields of the header."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.module import Module
from heron.reduce.draft import Draft
from heron.reduce.edits.kind import Kind


def _carriers(module: Module) -> list[str]:
    return [i.name for i in module.instructions() if i.metadata or i.extras or i.control_predecessors]


def _strip(draft: Draft, names: Sequence[str]) -> bool:
    for name in names:
        i = draft.find(name)
        if i is not None:
            i.drop_control_edges()
            i.extras.clear()
            i.metadata = None
    return True


def _fields(module: Module) -> list[str]:
    return sorted(module.header)


def _without_fields(draft: Draft, names: Sequence[str]) -> bool:
    for name in names:
        draft.module.header.pop(name, None)
    return True


BARE = Kind("bare", _carriers, _strip)
HEADER = Kind("header", _fields, _without_fields)
