"""A few hundred damaged StableHLO texts; many more by ``python -m tests.frontends.damage``."""

from __future__ import annotations

import pytest

from tests.frontends.damage.mutate import damaged
from tests.frontends.damage.survive import survive


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_only_errors_of_heron(first: int) -> None:
    for seed in range(first, first + 50):
        try:
            survive(damaged(seed), compiled=False)
        except Exception as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}")


def test_many_stay_programs() -> None:
    """Damage that is always refused at once would say little."""
    found = [survive(damaged(seed), compiled=False) for seed in range(100)]
    assert sum(one == "verified" for one in found) >= 10
    assert len(set(found)) > 6
