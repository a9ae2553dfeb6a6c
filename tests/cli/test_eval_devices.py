"""``heron eval`` on several devices: who gets which inputs, what is printed, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support import heron

SHIFT = """HloModule shift, num_partitions=3
ENTRY e {
  x = f32[2] parameter(0)
  ROOT r = f32[2] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,0}}
}
"""


@pytest.fixture
def shift(tmp_path: Path) -> Path:
    path = tmp_path / "shift.hlo"
    path.write_text(SHIFT)
    for n in range(3):
        np.savez(tmp_path / f"in-{n}.npz", np.full(2, n, np.float32))
    return path


def first_values(out: str) -> list[float]:
    return [d["outputs"][0]["first"][0] for d in json.loads(out)["devices"]]


def test_each_device_has_its_files(shift: Path) -> None:
    inputs, outputs = shift.parent / "in-{}.npz", shift.parent / "out-{}.npz"
    result = heron("eval", shift, "--inputs", inputs, "--save", outputs, "--json")
    assert result.code == 0 and first_values(result.out) == [2, 0, 1]
    again = heron("eval", shift, "--devices", "1x3", "--expect", outputs)
    assert again.code == 0 and again.out.count("all 1 outputs agree") == 3
    assert "device 2 (replica 0, partition 2)" in again.out
    same = heron("eval", shift, "--inputs", shift.parent / "in-1.npz", "--expect", shift.parent / "in-0.npz")
    assert same.code == 1


def test_devices_replace_what_the_program_says(shift: Path) -> None:
    given = ("--inputs", shift.parent / "in-1.npz", "--json")
    assert len(json.loads(heron("eval", shift, "--devices", "6", *given).out)["devices"]) == 6
    both = json.loads(heron("eval", shift, "--devices", "2x3", *given).out)["devices"]
    assert [(d["replica"], d["partition"]) for d in both] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--devices", "many", "--random", 0), "neither a number nor like 2x4"),
        (("--devices", "0", "--random", 0), "EVAL005"),
        (("--devices", "1", "--random", 0), "EVAL004"),
        (("--random", 0, "--save", "out.npz"), "CLI037"),
    ],
)
def test_refusals(shift: Path, arguments: tuple[object, ...], says: str) -> None:
    result = heron("eval", shift, *arguments)
    assert result.code == 2 and says in result.err
