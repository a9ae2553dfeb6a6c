"""Indices pushed through reshapes."""

from __future__ import annotations

import numpy as np
import pytest

from heron.analysis.indexing import Dim
from heron.analysis.indexing.expr import dims
from heron.analysis.indexing.hlo_maps import delinearize, linearize, reshape_index


@pytest.mark.parametrize(
    ("sizes", "target", "index"),
    [
        ((7, 6, 4), (7, 24), ["d0", "d1 * 4 + d2"]),
        ((7, 24), (7, 6, 4), ["d0", "d1 floordiv 4", "d1 mod 4"]),
        ((1, 8, 1, 3), (8, 1, 3), ["d1", "0", "d3"]),
        ((4, 9), (6, 6), ["(d0 * 9 + d1) floordiv 6", "(d0 * 9 + d1) mod 6"]),
        ((3, 0), (0, 5), ["0", "0"]),
        ((), (1, 1), ["0", "0"]),
    ],
)
def test_reshape_divides_only_where_it_must(sizes: tuple[int, ...], target: tuple[int, ...], index: list[str]) -> None:
    assert [str(e) for e in reshape_index(dims(len(sizes)), sizes, target)] == index


def test_linearize_and_back() -> None:
    sizes = (3, 1, 4, 2)
    places = [e.evaluate([np.arange(24)]) for e in delinearize(Dim(0), sizes)]
    np.testing.assert_array_equal(linearize(dims(4), sizes).evaluate(places), np.arange(24))
