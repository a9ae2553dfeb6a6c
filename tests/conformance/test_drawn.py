"""Structural ops with drawn shapes and attributes, against XLA:CPU."""

from __future__ import annotations

from tests.conformance import drawn
from tests.conformance.runner import expect_agreement


def test_drawn() -> None:
    expect_agreement(drawn.cases(12))
