"""The shuffles of a square of vectors transpose it, whatever its width."""

from __future__ import annotations

import pytest

from heron.codegen.turning import rounds


@pytest.mark.parametrize("bits", [8, 16, 32, 64, 128])
@pytest.mark.parametrize("side", [1, 2, 4, 8, 16])
def test_rows_become_columns(side: int, bits: int) -> None:
    rows = [[(r, c) for c in range(side)] for r in range(side)]
    for shuffles in rounds(side, bits):
        rows = [[(rows[s.first] + rows[s.second])[n] for n in s.order] for s in shuffles]
    assert rows == [[(r, c) for r in range(side)] for c in range(side)]


@pytest.mark.parametrize(("side", "bits"), [(8, 32), (4, 64), (16, 16)])
def test_vectors_of_256_bits_are_shuffled_within_their_halves(side: int, bits: int) -> None:
    """After a first round, which puts halves together."""
    half = side // 2
    joined, *others = rounds(side, bits)
    assert all(list(s.order[:half]) in ([*range(half)], [*range(half, side)]) for s in joined)
    for shuffles in others:
        for s in shuffles:
            assert all((n % side < half) == (lane < half) for lane, n in enumerate(s.order))
