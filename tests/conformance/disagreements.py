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
        case: a pattern of case names, as in a shell.
        ours: the evaluator's value in one of them.
        xla: XLA's value there.
        reason: why the evaluator's is the right one.
        where: which elements; a name in `PLACES`, or "" for all. Elementwise cases only.
    """

    case: str
    ours: str
    xla: str
    reason: str
    where: str = ""

    def covers(self, case: Case) -> bool:
        return fnmatchcase(case.name, self.case)

    def elements(self, case: Case, shape: tuple[int, ...]) -> np.ndarray:
        """The elements of an output of `case` that may differ."""
        if not self.where:
            return np.ones(shape, bool)
        return np.broadcast_to(PLACES[self.where](*case.inputs), shape)


@dataclass(frozen=True)
class Refusal:
    """Cases XLA:CPU does not compile, and what it says."""

    case: str
    reason: str

    def covers(self, case: Case) -> bool:
        return fnmatchcase(case.name, self.case)


@cache
def disagreements() -> tuple[Disagreement, ...]:
    return tuple(Disagreement(**d) for d in _read("disagreements.toml").get("disagreement", []))


@cache
def refusals() -> tuple[Refusal, ...]:
    return tuple(Refusal(**r) for r in _read("disagreements.toml").get("refused", []))


def refused(case: Case) -> Refusal | None:
    return next((r for r in refusals() if r.covers(case)), None)


@cache
def _read(name: str) -> dict:
    return tomllib.loads((FOLDER / name).read_text())


# -- which elements -------------------------------------------------------------------------------------------------
Place = Callable[..., np.ndarray]


def _any_part(test: Callable[[np.ndarray], np.ndarray]) -> Place:
    """Elements for which an operand, or one of its parts, passes `test`."""

    def found(*operands: np.ndarray) -> np.ndarray:
        result = np.zeros((), bool)
        for x in operands:
            parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
            for part in parts:
                result = result | test(part)
        return result

    return found


def _denormal(x: np.ndarray) -> np.ndarray:
    import ml_dtypes

    return (x != 0) & (np.abs(x.astype(np.float64)) < float(ml_dtypes.finfo(x.dtype).smallest_normal))


PLACES: dict[str, Place] = {
    "denormal": _any_part(_denormal),
    "nan": _any_part(lambda x: np.isnan(x.astype(np.float64))),
    "infinite": _any_part(lambda x: np.isinf(x.astype(np.float64))),
    "not finite": _any_part(lambda x: ~np.isfinite(x.astype(np.float64))),
    "zero": _any_part(lambda x: x == 0),
}
