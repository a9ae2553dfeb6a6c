"""Generated programs, the evaluator against XLA:CPU: several programs in one compilation, errors bounded by the maker."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from heron.evaluator import evaluate
from heron.fuzz.excuses import excuse
from tests.conformance.case import Case
from tests.conformance.runner import Outcome, xla_values
from tests.hlo.generate import Program, programs

#: programs compiled together by XLA
PACK = 50


def drawn(count: int, start: int = 0) -> list[Program]:
    """That many programs, the same ones for the same start."""
    found: list[Program] = []

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def take(program: Program) -> None:
        found.append(program)

    take()
    return found[:count]


def run(count: int, start: int = 0) -> Iterator[Outcome]:
    """The outcome of each program."""
    for first in range(0, count, PACK):
        group = drawn(min(PACK, count - first), start + first)
        for n, (program, theirs) in enumerate(zip(group, xla_values(group), strict=True)):
            yield _judge(program, theirs, first + n)


def _judge(program: Program, theirs: list[np.ndarray] | str, number: int) -> Outcome:
    case = Case("generated", "programs", "", label=str(number))
    if isinstance(theirs, str):
        return Outcome(case, "differ", f"XLA refuses: {theirs}\n{program.module}")
    ours = evaluate(program.module, *program.inputs)
    for n, (a, b, error) in enumerate(zip(ours, theirs, program.errors, strict=True)):
        if not _agree(a, b, error):
            known = excuse(program.module, [n])
            if known is not None:
                return Outcome(case, "documented", known)
            return Outcome(
                case, "differ", f"output {n}: {a.reshape(-1)[:8]}, XLA has {b.reshape(-1)[:8]}\n{program.module}"
            )
    return Outcome(case, "agree")


def _agree(ours: np.ndarray, theirs: np.ndarray, error: float) -> bool:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    if not error:
        return bool((ours == theirs).all())
    return bool((np.abs(ours.astype(np.float64) - theirs.astype(np.float64)) <= 2 * error).all())
