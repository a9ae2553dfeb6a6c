"""Several reductions in one loop: their accumulators side by side."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from heron.codegen.elemental import FunctionEmitter
from heron.codegen.elemental.reducer import Reducer


def split(reducers: Sequence[Reducer], values: Sequence[SSAValue]) -> list[Sequence[SSAValue]]:
    """Accumulators of all reducers, reducer by reducer."""
    out: list[Sequence[SSAValue]] = []
    at = 0
    for r in reducers:
        out.append(values[at : at + len(r.types)])
        at += len(r.types)
    return out


def starts(e: FunctionEmitter, reducers: Sequence[Reducer]) -> list[SSAValue]:
    """The start values of partial results, for all reducers."""
    return [v for r in reducers for v in r.start(e)]


def merged(
    e: FunctionEmitter, reducers: Sequence[Reducer], a: Sequence[SSAValue], b: Sequence[SSAValue]
) -> list[SSAValue]:
    """Two partial results of all reducers as one."""
    parts = zip(reducers, split(reducers, a), split(reducers, b), strict=True)
    return [v for r, x, y in parts for v in r.merge(e, x, y)]


def lose_digits(reducers: Sequence[Reducer]) -> bool:
    """Whether to cut long chains of steps."""
    return any(r.adds_floats for r in reducers)
