"""Targets: every data file loads and makes sense; names are found or refused with the nearest one."""

from __future__ import annotations

import json

import pytest

from heron import HeronError, targets
from heron.targets import WARP, libcuda
from tests.rehearsal.compiling import rehearsed


@pytest.mark.parametrize("name", targets.names())
def test_every_target_makes_sense(name: str) -> None:
    t = targets.get(name)
    assert t.name == name
    assert t == targets.get(name)
    assert hash(t) == hash(targets.get(name))
    assert t.cores > 0 and t.clock_hz > 0 and t.memory_bytes > 1 << 30 and t.memory_bandwidth > 1e9
    assert t.flops_of("f32") > 0
    assert 0 < t.l1_bytes < t.l2_bytes
    json.dumps(t.to_json())
    if t.kind == "gpu":
        assert t.machine.startswith("sm_") and t.llvm_cpu == t.machine
        assert t.threads_per_block == 1024
        assert 0 < t.static_shared_bytes <= t.shared_bytes_per_block <= t.shared_bytes_per_core <= t.l1_bytes
        assert t.threads_per_core % WARP == 0
    else:
        assert t.vector_bits in (128, 256, 512) and t.vector_registers


def test_h200() -> None:
    t = targets.get("sm_90")
    assert (t.cores, t.memory_bandwidth, t.sim, t.kind) == (132, 4_800_000_000_000, False, "gpu")


def test_simulated_is_the_same_machine() -> None:
    t, base = targets.get("sim:sm_90"), targets.get("sm_90")
    assert t.sim and t.machine == "sm_90"
    assert (t.cores, t.flops, t.grid) == (base.cores, base.flops, base.grid)


def test_cpu_is_this_machine() -> None:
    t = targets.get("cpu")
    assert (t.kind, t.llvm_cpu) == ("cpu", "")


def test_cuda_is_found_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libcuda, "library", lambda: None)
    assert targets.get("cuda").machine == "sm_90"
    assert targets.get("cuda:1").name == "cuda:1"


@pytest.mark.parametrize(("capability", "machine"), [((8, 0), "sm_80"), ((8, 7), "sm_86"), ((10, 3), "sm_100")])
def test_cuda_takes_the_nearest_known_machine(capability: tuple[int, int], machine: str) -> None:
    with rehearsed(capability=capability, name="Some GPU"):
        found = targets.get("cuda")
        assert (found.name, found.machine, found.llvm_cpu) == ("cuda", machine, machine)
        assert found.description == "Some GPU, GPU 0 of this machine"


def test_cuda_has_the_devices_own_figures() -> None:
    with rehearsed(memory=123 << 20, devices=2):
        found = targets.get("cuda:1")
        assert (found.memory_bytes, found.cores, found.memory_bandwidth) == (123 << 20, 132, 4_916_736_000_000)
        with pytest.raises(HeronError, match="TGT008") as caught:
            targets.get("cuda:2")
        assert "the CUDA driver finds 2" in str(caught.value)


def test_cuda_refuses_a_gpu_that_is_too_old() -> None:
    with rehearsed(capability=(6, 1)), pytest.raises(HeronError, match="TGT008") as caught:
        targets.get("cuda")
    assert "compute capability 6.1" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [("sm90", "sm_90"), ("sim:sm_91", "sim:sm_90"), ("CPU", ""), ("", ""), ("sim:cpu", ""), ("sim:cuda", "")],
)
def test_unknown_targets(name: str, near: str) -> None:
    with pytest.raises(HeronError) as caught:
        targets.get(name)
    assert caught.value.code == "TGT001"
    assert "targets are cpu, cuda" in str(caught.value)
    assert not near or f"did you mean '{near}'" in str(caught.value)
