"""Results of size checks at run time: numbers that a program computes in addition to its outputs."""

from __future__ import annotations

from typing import NamedTuple

from heron.analysis.dynamic_sizes import Check
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.dynamic.model.padded import Numbers, chosen, number
from heron.passes.rewriting.expander import home

LENGTH = 3


class Report(NamedTuple):
    """The number of the first check that failed, from 1, or 0; and the two sizes it compared. All ``s32[]``."""

    failed: Instruction
    left: Instruction
    right: Instruction

    def then(self, later: Report) -> Report:
        """This report where it has something to say, else the later one."""
        says = self.failed.ne(number(home(self.failed), 0))
        return Report(*(chosen(says, a, b) for a, b in zip(self, later, strict=True)))


def nothing(c: Computation) -> Report:
    """No check failed."""
    zero = number(c, 0)
    return Report(zero, zero, zero)


def report_of(numbers: Numbers, check: Check, n: int) -> Report:
    """The finding of check number `n`."""
    c, left, right = numbers.c, numbers[check.left], numbers[check.right]
    holds = left.eq(right) if check.relation == "equal" else left.le(right)
    return Report(chosen(holds, number(c, 0), number(c, n)), left, right)


def first_of(reports: list[Report]) -> Report | None:
    """The finding of the first check that fails; None if there are no checks."""
    found: Report | None = None
    for report in reports:
        found = report if found is None else found.then(report)
    return found
