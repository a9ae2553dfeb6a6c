"""Ops that make, move or pack values give the same bits for every element type."""

from __future__ import annotations

from tests.conformance import coverage
from tests.conformance.runner import expect_agreement


def test_every_type_is_made_and_moved() -> None:
    expect_agreement(list(coverage.cases()))
