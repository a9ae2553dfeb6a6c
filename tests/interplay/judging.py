"""Whether what a target gives is right.

The reference is the program run part by part (`references.stepwise`). A program all of whose parts are exact must give
it to the last bit. Otherwise an output may be off by the units of rounding its parts allow, measured on its largest
element. What is further off is either wrong, or the question has no sharp answer: a root of a difference, a sort of keys
that rounding made equal. The two are told apart by asking XLA the same question again, each part with inputs and results
moved by a unit of rounding, several times: a right answer is no further from the reference than a few times as far as
these answers lie apart. No tolerance grows for any other reason. Where these answers have no digit in common, nothing can
be said: the outcome is *undecided*, which the report counts.

A result may also be that of the whole program under XLA: fused, a program may round where its parts do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tests.interplay.program import Program
from tests.interplay.references import epsilon, joint, stepwise

#: how often XLA is asked again, and how many times the spread of its answers a result may be off
SAMPLES, FACTOR = 12, 4
#: of the largest element: answers further apart decide nothing
UNDECIDED = 0.05


@dataclass(frozen=True)
class Verdict:
    """`kind` is right, wrong or undecided; `output` says which one is off and `detail` how."""

    kind: str
    output: int = -1
    detail: str = ""


@dataclass
class Judge:
    """Knows a program's right answers; computes those it needs."""

    program: Program
    text: str
    inputs: Sequence[np.ndarray]

    @cached_property
    def reference(self) -> list[np.ndarray]:
        return stepwise(self.program, self.inputs)

    @cached_property
    def samples(self) -> list[list[np.ndarray]]:
        rng = np.random.default_rng(self.program.seed)
        return [stepwise(self.program, self.inputs, rng) for _ in range(SAMPLES)]

    @cached_property
    def whole(self) -> list[np.ndarray]:
        one = self.program.devices == 0
        return joint(self.text if one else replace(self.program, devices=0).lowered(), self.inputs)

    def verdict(self, found: Sequence[np.ndarray]) -> Verdict:
        if len(found) != len(self.reference):
            return Verdict("wrong", detail=f"{len(found)} outputs, {len(self.reference)} expected")
        worst = Verdict("right")
        for k, ours in enumerate(found):
            verdict = self._output(k, np.asarray(ours))
            if verdict.kind == "wrong":
                return verdict
            worst = verdict if verdict.kind == "undecided" else worst
        return worst

    def _output(self, k: int, ours: np.ndarray) -> Verdict:
        theirs = self.reference[k]
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return Verdict("wrong", k, f"{ours.dtype}{list(ours.shape)}, expected {theirs.dtype}{list(theirs.shape)}")
        allowed = 0.0 if self.program.exact else self.program.ulps * rounding(theirs)
        error = distance(ours, theirs)
        if error <= allowed:
            return Verdict("right")
        known: list[Callable[[], list[np.ndarray]]] = [lambda: self.reference, lambda: self.whole]
        spread = 0.0
        if not self.program.exact:
            spread = max(distance(s[k], theirs) for s in self.samples)
        for answer in known:
            if distance(ours, answer()[k]) <= allowed + FACTOR * spread:
                return Verdict("right" if spread <= UNDECIDED * size(theirs) else "undecided", k)
        return Verdict(
            "wrong", k, f"off by {error:.3g}; allowed {allowed:.3g}, XLA's own answers are {spread:.3g} apart"
        )


def _wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference of two elements; infinite where only one is finite, or they are other infinities."""
    if not a.size:
        return 0.0
    if a.dtype.kind in "biu":
        return float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)))) if (a != b).any() else 0.0
    with np.errstate(all="ignore"):
        x, y = _wide(a), _wide(b)
        if a.dtype.kind == "c":
            return max(distance(x.real, y.real), distance(x.imag, y.imag))
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        return float(np.max(np.where(same, 0, np.where(np.isfinite(x) & np.isfinite(y), np.abs(x - y), np.inf))))


def size(a: np.ndarray) -> float:
    """The largest finite magnitude."""
    with np.errstate(all="ignore"):
        wide = np.abs(_wide(a))
    return float(np.max(wide[np.isfinite(wide)], initial=0))


def rounding(a: np.ndarray) -> float:
    """A unit of rounding of the largest element; 0 for integers."""
    inexact = a.dtype.kind in "fc" or "float" in a.dtype.name
    return epsilon(a.real.dtype if a.dtype.kind == "c" else a.dtype) * size(a) if inexact else 0.0
