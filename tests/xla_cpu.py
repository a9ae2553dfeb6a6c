"""XLA:CPU as the oracle of values. Tests that use it skip where jax is missing."""

from __future__ import annotations

import numpy as np
import pytest

from heron import peer
from heron.peer import QUICK as QUICK


def run(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """The outputs (a tuple flattened) of the module in `text`, compiled and run by XLA:CPU."""
    pytest.importorskip("jax")
    return peer.run(text, *arrays)


def run_stablehlo(source: str | bytes, *arrays: np.ndarray) -> list[np.ndarray]:
    """The outputs of a StableHLO module, text or bytecode, compiled and run by XLA:CPU."""
    pytest.importorskip("jax")
    return peer.run_stablehlo(source, *arrays)
