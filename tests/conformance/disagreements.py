"""What is known of XLA:CPU: where it does not do what HLO says (with the reason), and what it refuses."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import numpy as np

from tests.conformance.case import Case

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Disagreement:
    """Cases (a pattern of names) in which XLA:CPU gives something else.

    Attributes:
        case: patterns of case names, as in a shell.
        ours: the evaluator's value in one of them.
        xla: XLA's value there.
        reason: why the evaluator's is the right one.
        where: which elements; a name in `PLACES`, or "" for all.
    """

    case: tuple[str, ...]
    ours: str
    xla: str
    reason: str
    where: str = ""

    def covers(self, case: Case) -> bool:
        return any(fnmatchcase(case.name, pattern) for pattern in self.case)

    def elements(self, case: Case, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        """The elements of an output of `case` that may differ, from the operands and both results there."""
        if not self.where:
            return np.ones(ours.shape, bool)
        operands = [x for x in case.inputs if x.shape == ours.shape]
        return np.broadcast_to(PLACES[self.where](operands, [ours, theirs]), ours.shape)


@dataclass(frozen=True)
class Refusal:
    """Cases XLA:CPU does not compile, and what it says."""

    case: str
    reason: str

    def covers(self, case: Case) -> bool:
        return fnmatchcase(case.name, self.case)


@cache
def disagreements() -> tuple[Disagreement, ...]:
    found = _read("disagreements.toml").get("disagreement", [])
    return tuple(Disagreement(**{**d, "case": _patterns(d["case"])}) for d in found)


def _patterns(case: str | list[str]) -> tuple[str, ...]:
    return (case,) if isinstance(case, str) else tuple(case)


@cache
def refusals() -> tuple[Refusal, ...]:
    return tuple(Refusal(**r) for r in _read("disagreements.toml").get("refused", []))


def refused(case: Case) -> Refusal | None:
    return next((r for r in refusals() if r.covers(case)), None)


@cache
def _read(name: str) -> dict:
    return tomllib.loads((FOLDER / name).read_text())


# -- which elements -------------------------------------------------------------------------------------------------
Arrays = list[np.ndarray]


def _parts(arrays: Arrays) -> Arrays:
    """Real and imaginary parts, as f64, of what are floats or complex numbers."""
    flat = [part for x in arrays for part in ((x.real, x.imag) if x.dtype.kind == "c" else (x,))]
    return [x.astype(np.float64) for x in flat]


def _denormal(operands: Arrays, results: Arrays) -> np.ndarray:
    """Denormals of f32 or f64 among operands or results, or what rounds to the smallest normal number."""
    found = np.zeros((), bool)
    for x in [*operands, *results]:
        least = 2.0**-1022 if x.dtype in (np.float64, np.complex128) else 2.0**-126
        for part in _parts([x]):
            found = found | ((part != 0) & (np.abs(part) <= least))
    return found


def _any(test: Callable[[np.ndarray], np.ndarray]) -> Callable[[Arrays, Arrays], np.ndarray]:
    """Elements for which an operand or a result, or one of its parts, passes `test`."""

    def found(operands: Arrays, results: Arrays) -> np.ndarray:
        return np.logical_or.reduce(np.broadcast_arrays(*[test(x) for x in _parts(operands + results)]))

    return found


def _last(test: Callable[[np.ndarray], np.ndarray]) -> Callable[[Arrays, Arrays], np.ndarray]:
    """Elements for which the last operand passes `test`."""
    return lambda operands, _: test(operands[-1])


def _other_branch(_: Arrays, results: Arrays) -> np.ndarray:
    """Where the results are a multiple of pi apart."""
    apart = np.hypot.reduce(_parts([results[0] - results[1]])) / np.pi
    return (apart > 0.5) & (np.abs(apart - np.rint(apart)) < 1e-6)


def _cancel(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Where x*x + y*y is much smaller than its terms."""
    y, x = y.astype(np.complex128), x.astype(np.complex128)
    return np.abs(x * x + y * y) < 0.01 * (np.abs(x * x) + np.abs(y * y))


PLACES: dict[str, Callable[[Arrays, Arrays], np.ndarray]] = {
    "denormal": _denormal,
    "not finite": _any(lambda x: ~np.isfinite(x)),
    "exponent of 64 or more": _last(lambda x: x.astype(object) >= 64),
    "large exponent": _last(lambda x: np.abs(x) >= 16),
    "large or small": _any(lambda x: (x != 0) & ((np.abs(x) > 1e15) | (np.abs(x) < 1e-15))),
    "pole": lambda _, results: np.hypot.reduce(_parts(results[:1])) >= 64,
    "other branch": _other_branch,
    "below -11": _last(lambda x: x < -11),
    "squares cancel": lambda operands, _: _cancel(*operands),
    "operand 6": _last(lambda x: np.abs(x.astype(np.float32)) == 6),
}
