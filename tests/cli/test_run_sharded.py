"""Sharded programs by ``heron run --devices``; `python -m tests.cli.sharded` runs all of them."""

from __future__ import annotations

import pytest

from tests.cli.sharded import run_sharded


@pytest.mark.parametrize("name", ["fsdp_train", "gspmd_shard_map", "reshape_split_merge", "uneven"])
def test_the_command_gives_xlas_values(name: str) -> None:
    run_sharded(name)
