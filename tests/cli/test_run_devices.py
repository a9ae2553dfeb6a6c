"""``heron run`` on several devices: programs that are partitioned already, and those with shardings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_eval_devices import SHIFT, first_values
from tests.support import heron


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_each_device_has_its_files(tmp_path: Path, target: str) -> None:
    program = tmp_path / "shift.hlo"
    program.write_text(SHIFT)
    for n in range(3):
        np.savez(tmp_path / f"in-{n}.npz", np.full(2, n, np.float32))
    inputs, outputs = tmp_path / "in-{}.npz", tmp_path / "out-{}.npz"
    result = heron("run", program, "--target", target, "--inputs", inputs, "--save", outputs, "--json")
    assert result.code == 0 and first_values(result.out) == [2, 0, 1]
    again = heron("run", program, "--expect", outputs)
    assert again.code == 0 and again.out.count("all 1 outputs agree") == 3
    assert "device 2 (replica 0, partition 2)" in again.out and "cpu, 3 devices: compiled" in again.out


def test_devices_that_are_asked_for(tmp_path: Path) -> None:
    program = tmp_path / "shift.hlo"
    program.write_text(SHIFT)
    both = json.loads(heron("run", program, "--devices", "2x3", "--random", "0", "--json").out)["devices"]
    assert [(d["replica"], d["partition"]) for d in both] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    refused = heron("run", program, "--devices", "2", "--random", "0")
    assert refused.code == 2 and "HLO" in refused.err


def test_saved_programs(tmp_path: Path) -> None:
    program, saved = tmp_path / "shift.hlo", tmp_path / "shift.heron"
    program.write_text(SHIFT)
    assert heron("compile", program, "-o", saved).code == 0
    result = heron("run", saved, "--random", "0")
    assert result.code == 0 and "loaded" in result.out and "device 2" in result.out


def test_compile_for_devices(tmp_path: Path) -> None:
    program = tmp_path / "shift.hlo"
    program.write_text(SHIFT.replace(", num_partitions=3", ""))
    made = heron("compile", program, "--devices", "3", "--to", "thunks")
    assert made.code == 0 and "collective-permute 1 x 3 devices" in made.out


SHARDED = """module @m {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {AXIS}]>}) -> tensor<8x8xf32> {
    %0 = stablehlo.negate %a : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}"""


def test_devices_of_a_program_whose_shardings_alone_say_that_there_are_several(tmp_path: Path) -> None:
    """They are its partitions: as replicas they would each do all of the work, and nobody would read the shardings."""
    program = tmp_path / "m.mlir"
    program.write_text(SHARDED.replace("AXIS", '"y"'))
    right = heron("run", program, "--devices", "4", "--random", "0", "--json")
    assert right.code == 0 and json.loads(right.out)["outputs"][0]["shape"] == [8, 8]
    wrong = heron("run", program, "--devices", "8", "--random", "0")
    assert wrong.code == 2 and "HLO027" in wrong.err and "a mesh of 4 devices in a program for 8" in wrong.err
    program.write_text(SHARDED.replace("AXIS", '"z"'))
    unknown = heron("run", program, "--devices", "4", "--random", "0")
    assert unknown.code == 2 and "an axis of the mesh (x, y), found '\"z\"'" in unknown.err
