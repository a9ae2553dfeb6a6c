"""A part of the cases; ``python -m tests.sizes`` runs all of them."""

from __future__ import annotations

from collections import defaultdict

import pytest

from heron.hlo.text import parse
from heron.hlo.verifier import verify
from tests.sizes import huge
from tests.sizes.case import Case
from tests.sizes.jobs import known
from tests.sizes.run import run

_EVERY = 89


def _by_family() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = defaultdict(list)
    for case in known(False):
        found[case.family].append(case)
    return found


@pytest.mark.parametrize("family", _by_family())
def test_a_part_of_a_family(family: str) -> None:
    cases = _by_family()[family]
    for case in cases[len(cases) // 3 % _EVERY :: _EVERY]:
        for outcome in run(case):
            assert outcome.found == "ok", f"{case.name}: {outcome}"


def test_every_case_is_a_program() -> None:
    for case in [*known(False)[::13], *huge.cases()]:
        verify(parse(case.text))
