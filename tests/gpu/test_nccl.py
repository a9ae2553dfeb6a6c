"""Collectives by NCCL, of a device with itself: one GPU is enough."""

from __future__ import annotations

import pytest

from heron.targets import libraries
from tests.gpu.device import Gpu


def test_one_device(gpu: Gpu) -> None:
    if not gpu.rehearse and (why := libraries.missing("nccl")):
        pytest.skip(f"no NCCL: {why}")
    gpu.run("tests.gpu.nccl")
