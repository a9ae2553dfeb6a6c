"""Conditions on sizes that a program computes while it runs: as written into a custom call, and as errors.

A program with a ``CheckSizes`` call hands it the number of the first condition that did not hold (0: all did) and the
two sizes it compares; the call's ``backend_config`` says what the conditions are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from heron.errors import HeronError

TARGET = "CheckSizes"


class SizeCheck(NamedTuple):
    """``left`` must be ``equal`` to, or ``at most``, ``right``, both formulas, for the instruction `where`."""

    what: str
    where: str
    left: str
    relation: str
    right: str

    def failed(self, left: int, right: int) -> HeronError:
        """RUN004: the sizes do not fit."""
        wrong = "is not" if self.relation == "equal" else "is more than"
        return HeronError(
            "RUN004",
            f"sizes do not fit: {self.what}",
            where=self.where,
            why=f"{_shown(self.left, left)} {wrong} {_shown(self.right, right)}",
        )


def _shown(formula: str, n: int) -> str:
    return formula if formula == str(n) else f"{n} ({formula})"


def write(checks: Sequence[SizeCheck]) -> str:
    """Checks as a call's ``backend_config``."""
    return json.dumps(checks)


def read(text: str) -> list[SizeCheck]:
    """Checks of a call's ``backend_config``. Raises HLO029 when it holds none."""
    try:
        return [SizeCheck(*map(str, check)) for check in json.loads(text)]
    except (ValueError, TypeError) as error:
        raise HeronError(
            "HLO029", f"the backend_config of '{TARGET}' is not a list of checks", why=str(error)
        ) from None


def need_none_failed(checks: Sequence[SizeCheck], failed: int, left: int, right: int) -> None:
    """Raises RUN004, the error of check number `failed`, unless that is 0."""
    if failed:
        raise checks[failed - 1].failed(left, right)
