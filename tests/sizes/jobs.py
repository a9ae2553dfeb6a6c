"""Cases by number, for child processes: cases hold functions, which cannot be sent to one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from tests.sizes import huge
from tests.sizes.case import Case
from tests.sizes.families import all_cases
from tests.sizes.run import Outcome, run


@cache
def known(is_huge: bool) -> Sequence[Case]:
    """The huge cases, or all others; each name once."""
    return list({c.name: c for c in (huge.cases() if is_huge else all_cases())}.values())


def one(job: tuple[bool, int, tuple[str, ...]]) -> list[Outcome]:
    """Run a case, given by whether it is huge and its number, on some targets."""
    is_huge, number, targets = job
    case = known(is_huge)[number]
    return huge.run(case) if is_huge else run(case, targets)
