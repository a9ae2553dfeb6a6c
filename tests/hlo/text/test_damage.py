"""Damaged texts are read or refused, and what verifies compiles and runs; never anything else."""

from __future__ import annotations

import pytest

from tests.child import Child
from tests.hlo.text.damage import damaged, read, texts, tried


def test_reading() -> None:
    """``python -m tests.hlo.text.damage --count 10000`` tries more."""
    for seed in range(1000):
        read(damaged(texts(), seed))


@pytest.mark.parametrize("first", [0, 100])
def test_compiling_and_running(first: int) -> None:
    with Child("tests.hlo.text.damage", 60, "child") as child:
        for seed in range(first, first + 100):
            outcome, error = tried(child, damaged(texts(), seed))
            assert not error, f"{seed}: {outcome}\n{error}"
