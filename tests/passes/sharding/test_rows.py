"""Programs drawn at random, and what rows need that are sorted by a network of devices."""

from __future__ import annotations

import numpy as np
import pytest

from heron.passes.sharding.partition.special import sort as sorts
from tests.passes.sharding.indexing import PROGRAMS, check

CASES = 40


@pytest.mark.parametrize("name", PROGRAMS)
def test_partitioned_is_global(name):
    for seed in range(CASES):
        check(name, seed)


def test_sort_by_a_network(monkeypatch):
    """Whether it pays or not."""
    monkeypatch.setattr(sorts, "_pays", lambda *given: True)
    for seed in range(CASES):
        check("sorts", seed)


@pytest.mark.parametrize("count", range(1, 18))
def test_network(count):
    """All lists of zeros and ones are sorted, and so are all others."""
    lines = np.random.default_rng(count).integers(0, 2, (2000, count))
    for stage in sorts.network(count):
        assert len({n for pair in stage for n in pair}) == 2 * len(stage)
        for a, b in stage:
            lines[:, [a, b]] = np.sort(lines[:, [a, b]], 1)
    assert (np.diff(lines, axis=1) >= 0).all()
