"""Drawn calls of jax.lax, jax.numpy, jax.nn and jax.random give on heron what they give on JAX's CPU."""

from __future__ import annotations

from tests.pjrt import under_jax


def test_calls_agree() -> None:
    under_jax.run(
        """
import jax
jax.config.update("jax_enable_x64", True)
from tests.pjrt.differential import differences
found = list(differences(count=90, seed=20, at_once=45))
assert not found, found
"""
    )


def test_a_difference_is_told() -> None:
    """Another result, another error: both are findings."""
    under_jax.run(
        """
import numpy as np
from tests.pjrt import differential
one = np.float32(1)
assert "at (1,)" in differential._difference(np.array([one, one]), np.array([one, 2 * one]))
assert differential._difference(np.array([one]), np.array([1.0])) == "float32(1,) on heron, float64(1,) on the CPU"
assert differential._difference(np.array([np.nan]), np.array([np.nan])) is None
"""
    )
