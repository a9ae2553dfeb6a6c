"""Conversions between all pairs of types, of values and of bits, and reduced precision, against XLA:CPU."""

from __future__ import annotations

import pytest

from tests.conformance import conversions
from tests.conformance.runner import expect_agreement
from tests.conformance.values import ALL


@pytest.mark.parametrize("source", ALL)
def test_convert(source: str) -> None:
    expect_agreement(list(conversions.conversions(source)))


@pytest.mark.parametrize("source", ALL)
def test_bitcast_convert(source: str) -> None:
    expect_agreement(list(conversions.bitcasts(source)))


@pytest.mark.parametrize("name", conversions.REDUCED)
def test_reduce_precision(name: str) -> None:
    expect_agreement(list(conversions.reductions(name)))
