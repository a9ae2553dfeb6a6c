"""The comparison of values after a pass: close floats are fine, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from heron.passes.framework.checks import difference, excess

VALUES = np.array([1, 2, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize(
    ("at", "value"), [(0, np.nan), (0, np.inf), (0, 1.001), (2, 5), (2, -np.inf), (2, np.nan), (4, 5), (4, np.inf)]
)
def test_other_values_differ(at: int, value: float) -> None:
    new = VALUES.copy()
    new[at] = value
    assert difference(VALUES, new) is not None and excess(VALUES, new) > 1
    assert excess(VALUES, new) == np.inf or at == 0


def test_rounding_is_fine() -> None:
    new = VALUES * np.float32(1 + 1e-6)
    assert difference(VALUES, new) is None and 0 < excess(VALUES, new) < 1
    assert excess(VALUES, VALUES.copy()) == 0


def test_integers_shapes_and_types_are_exact() -> None:
    ints = np.arange(4)
    assert excess(ints, ints.copy()) == 0 and excess(ints, ints + 1) == np.inf
    assert excess(ints, ints[:3]) == np.inf and excess(ints, ints.astype(np.float64)) == np.inf
    assert excess(np.zeros(0, np.float32), np.zeros(0, np.float32)) == 0
