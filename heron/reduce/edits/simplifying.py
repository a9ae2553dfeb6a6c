"""Run passes that leave less: of tuples, and of what loops carry and nobody reads."""

from __future__ import annotations

from collections.abc import Sequence

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from heron.reduce.draft import Draft
from heron.reduce.edits.kind import Kind

_PASSES = ("tuple-simplifier", "while-loop-simplifier", "conditional-simplifier")


def _atoms(module: Module) -> list[str]:
    return list(_PASSES)


def _run(draft: Draft, names: Sequence[str]) -> bool:
    try:
        return any([registry.get(name).run(draft.module, PassContext()) for name in names])
    except HeronError:
        return False


SIMPLIFYING = Kind("simplify", _atoms, _run, together=1)
