"""Copy insertion, schedules and buffers never corrupt a value, whatever loops, branches and updates do."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.buffers.compiled import COPIES, FUSED, TWO_ROUNDS, assert_survives
from tests.buffers.programs import random_program

WAYS = (COPIES, TWO_ROUNDS, FUSED)


def check(rng: Random, names: tuple[str, ...]) -> None:
    text = random_program(rng)
    count = text.rpartition("ENTRY")[2].count("= f32[4]{0} parameter(")
    inputs = [np.linspace(-1, 2 + n, 4, dtype=np.float32) for n in range(count)]
    assert_survives(text, names, [*inputs, np.asarray(rng.randint(0, 3), np.int32)])


@given(st.randoms(use_true_random=False))
@settings(max_examples=50, suppress_health_check=list(HealthCheck))
def test_plain(rng: Random) -> None:
    check(rng, COPIES)


@given(st.randoms(use_true_random=False))
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_fused(rng: Random) -> None:
    check(rng, FUSED)


@pytest.mark.parametrize("seed", range(60))
def test_seeds(seed: int) -> None:
    check(Random(seed), WAYS[seed % 3])
