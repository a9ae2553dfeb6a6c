"""Parts of the GPU path that no real program reaches, each by a program of its own."""

from __future__ import annotations

import pytest

from tests.gpu.device import Gpu
from tests.gpu.reach import PROGRAMS


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_reach(gpu: Gpu, name: str) -> None:
    gpu.run("tests.gpu.reach", name)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_reach_in_full(gpu: Gpu, name: str) -> None:
    if gpu.rehearse:
        pytest.skip("too large for a rehearsal")
    gpu.run("tests.gpu.reach", name, "--full")
