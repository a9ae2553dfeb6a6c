"""Make values simple: inputs become ones, and so do integer constants of called computations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron.hlo.ir import literal
from heron.hlo.ir.module import Module
from heron.reduce.draft import Draft
from heron.reduce.edits.kind import Kind


def _parameters(module: Module) -> list[str]:
    return [p.name for p in module.entry.parameters]


def _ones(draft: Draft, names: Sequence[str]) -> bool:
    for name in names:
        p = draft.find(name)
        if p is not None:
            draft.inputs[p] = [np.ones_like(x) for x in draft.inputs[p]]
    return True


def _counts(module: Module) -> list[str]:
    """Scalar integer constants of called computations: most are bounds of loops."""
    return [
        i.name
        for c in module.computations
        if c is not module.entry
        for i in c.instructions
        if i.opcode == "constant" and i.shape.is_scalar and i.shape.element_type.is_integer and i.literal.array > 1
    ]


def _once(draft: Draft, names: Sequence[str]) -> bool:
    for name in names:
        i = draft.find(name)
        if i is not None:
            i.attrs["literal"] = literal.scalar(i.shape.element_type, 1)
            i.mark_changed()
    return True


INPUTS = Kind("inputs", _parameters, _ones)
TRIPS = Kind("trips", _counts, _once)
