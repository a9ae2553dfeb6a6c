"""Every real program on the device: small ones to XLA's values, with graphs and without; full ones to the CPU's."""

from __future__ import annotations

import pytest

from tests.gpu.device import Gpu
from tests.support import NAMES, program

#: the ones that compile longest first: with several processes they must not be last
BY_SIZE = sorted(NAMES, key=lambda n: -program(n, platform="cuda").stat().st_size)


@pytest.mark.parametrize("name", BY_SIZE)
def test_small(gpu: Gpu, name: str) -> None:
    gpu.check(name)


@pytest.mark.parametrize("name", BY_SIZE)
def test_full(gpu: Gpu, name: str) -> None:
    if gpu.rehearse:
        pytest.skip("too large for a rehearsal")
    gpu.check(name, "--full")


@pytest.mark.parametrize("name", BY_SIZE)
def test_small_on_streams(gpu: Gpu, name: str) -> None:
    gpu.check(name, "--streams")
