"""A few sequences; ``python -m tests.state`` runs many."""

from __future__ import annotations

import pytest

from tests import children
from tests.state import programs, sequence
from tests.state.__main__ import run

#: sequences whose programs compile fast
_NUMBERS = (8,)


def test_a_process_that_begins_with_several_compiles_at_once() -> None:
    name = "cpu softmax"
    ((_, wanted),) = children.results(programs.alone, [name], fresh=True)
    reports = dict(children.results(sequence.first_together, [(name, wanted)] * 2, fresh=True))
    assert list(reports.values()) == ["", ""]


@pytest.mark.parametrize("number", _NUMBERS)
def test_sequences(number: int) -> None:
    ((_, report),) = run([number])
    assert isinstance(report, sequence.Report), report
    assert not report.problem, report.steps
