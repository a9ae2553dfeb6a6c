"""``--differs``: two machines give other values for one program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from heron import targets
from heron.backends.compiler import machine_for
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.passes.framework.bisect import Bisection
from heron.passes.framework.checks import difference, excess
from heron.records import dataclass
from heron.reduce.checks import running
from heron.reduce.checks.crashes import failure
from heron.reduce.checks.finding import FINE, REFERENCE, Check, Finding

#: multiples of the tolerance by which a smaller program must differ, if the first one did: what is just beyond the
#: tolerance may be rounding, made large by a cancellation that the edits left over
_CLEARLY = 50.0


@dataclass(frozen=True)
class Differs(Check):
    """The outputs on ``target`` differ from those on ``against`` by more than passes may change values.

    With ``errors``, one for each output, they differ by more than twice that.
    """

    target: str = "cpu"
    against: str = running.EVALUATOR
    settings: Options = field(default_factory=Options)
    errors: tuple[float, ...] | None = None
    kinds = ("differs",)

    def look(self, module: Module, inputs: Sequence[np.ndarray]) -> Finding:
        try:
            wanted = running.outputs(self.against, module.clone(), inputs, self.settings)
        except Exception as error:
            return replace(failure(error, f"{self.against}: "), kind=REFERENCE)
        try:
            found = running.outputs(self.target, module, inputs, self.settings)
        except Exception as error:
            return failure(error, f"{self.target}: ")
        if self.errors is None:
            amounts = [excess(a, b) for a, b in zip(wanted, found, strict=True)]
        else:
            amounts = [_beyond(a, b, 2 * error) for a, b, error in zip(wanted, found, self.errors, strict=True)]
        worst = int(np.argmax(amounts)) if amounts else 0
        if not amounts or amounts[worst] <= 1:
            return Finding(FINE)
        told = difference(wanted[worst], found[worst]) or "by less than passes may change values"
        text = f"output {worst} on {self.target} is not what {_the(self.against)} gives: {told}"
        wrong = tuple(n for n, amount in enumerate(amounts) if amount > 1)
        return Finding("differs", amount=amounts[worst], text=text, outputs=wrong)

    def bar(self, first: Finding) -> float:
        return min(first.amount, _CLEARLY)

    def options(self) -> str:
        return f"--differs --target {self.target} --against {self.against}"

    def blame(self, module: Module, inputs: Sequence[np.ndarray]) -> str:
        if self.target in (running.EVALUATOR, running.XLA):
            return ""
        return culprit(module, inputs, self.target, self.settings)


def _beyond(wanted: np.ndarray, found: np.ndarray, error: float) -> float:
    """The distance of `found` from `wanted` as a multiple of the error that it may have."""
    if wanted.dtype != found.dtype or wanted.shape != found.shape:
        return np.inf
    if not error:
        same = (wanted == found) | ((wanted != wanted) & (found != found))
        return 0.0 if np.all(same) else np.inf
    off = np.abs(wanted.astype(np.float64) - found.astype(np.float64)) / error
    return float(np.nan_to_num(off, nan=np.inf).max(initial=0.0))


def _the(machine: str) -> str:
    return "the evaluator" if machine == running.EVALUATOR else machine


def culprit(module: Module, inputs: Sequence[np.ndarray], target: str, options: Options) -> str:
    """The first pass of the target's pipelines that changes the values, with its rewrite; empty when none does."""
    machine = targets.get(running.target_name(target))
    wanted = evaluate(module, *inputs)

    def check(changed: Module) -> str | None:
        found = evaluate(changed, *inputs)
        return next(filter(None, (difference(a, b) for a, b in zip(wanted, found, strict=True))), None)

    steps: list[Any] = list(machine_for(machine, options).pipelines().values())
    found = Bisection(module, steps, check, options, machine).search()
    if found is None:
        return ""
    return f"{found.pass_name}, rule {found.rule} ({found.source_line})" if found.rule else found.pass_name
