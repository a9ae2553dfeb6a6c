"""`heron cost --mesh`: the time of a run on many devices, against figures worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import heron

#: rows of x and columns of w meet: each device has a summand of y, 1 MiB
PROGRAM = """HloModule product
ENTRY e {
  x = f32[512,4096] parameter(0)
  w = f32[4096,512] parameter(1)
  ROOT y = f32[512,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
SPLIT = ("--in", "x=-,model", "--in", "w=model", "--out", "0=-,-")
MIB = 1 << 20


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "product.hlo"
    path.write_text(PROGRAM)
    return str(path)


def cost(*arguments: str) -> dict:
    shown = heron("cost", *arguments, "--json")
    assert shown.code == 0, shown.err
    return json.loads(shown.out)


@pytest.mark.parametrize(
    ("devices", "seconds"),
    [
        # 2 (n - 1) / n of a MiB at 450 GB/s, and 2 (n - 1) times 1 µs
        (2, MIB / 450e9 + 2e-6),
        (8, 2 * 7 / 8 * MIB / 450e9 + 14e-6),
        # and an eighth of that over InfiniBand: 2 (4 - 1) / 4 of it at 50 GB/s, and 6 times 5 µs
        (32, 2 * 7 / 8 * MIB / 450e9 + 14e-6 + 2 * 3 / 4 * MIB / 8 / 50e9 + 30e-6),
    ],
)
def test_a_sum_over_devices(program: str, devices: int, seconds: float):
    found = cost(program, "--target", "sm_90", "--mesh", f"model={devices}", *SPLIT)
    (row,) = found["collectives"]
    assert row["opcode"] == "all-reduce-start" and row["devices"] == found["devices"] == devices
    assert row["seconds"] == found["communication_seconds"] == pytest.approx(seconds)
    assert found["wire_bytes"] == pytest.approx(2 * (devices - 1) / devices * MIB)
    # all but the microsecond in which it is launched: the result is all that is left to do
    assert found["exposed_seconds"] == pytest.approx(seconds - 1e-6)
    assert found["seconds"] == pytest.approx(found["compute_seconds"] + found["exposed_seconds"])
    assert [r["name"] for r in row["links"]] == ["NVLink", "InfiniBand"][: 1 + (devices > 8)]
    # two parameters' parts, the product and its sum
    assert found["memory"]["peak"] == 2 * 8 * MIB // devices + 2 * MIB


def test_a_collective_of_a_cpu_hides_nothing(program: str):
    found = cost(program, "--target", "x86-64-v3", "--mesh", "model=4", *SPLIT)
    assert found["exposed_seconds"] == found["communication_seconds"] == pytest.approx(1.5 * MIB / 10e9 + 6 * 5e-6)


def test_a_table_for_many_devices(program: str):
    shown = heron("cost", program, "--target", "sm_90", "--mesh", "model=8", *SPLIT, "--scale", "model")
    rows = [line.split() for line in shown.out.splitlines()[3:]]
    assert [row[0] for row in rows] == "8 16 32 64 128 256 512 1,024 2,048 4,096".split()
    found = json.loads(
        heron("cost", program, "--target", "sm_90", "--mesh", "model=8", *SPLIT, "--scale", "model", "--json").out
    )
    assert [row["devices"] for row in found] == [2**n for n in range(3, 13)]
    times = [row["communication_seconds"] for row in found]
    assert times == sorted(times)
    compute = [row["compute_seconds"] for row in found]
    assert compute[0] > compute[1] > compute[2] > compute[-1]


def test_numbers_of_devices_that_do_not_fit(program: str):
    shown = heron("cost", program, "--target", "sm_90", "--mesh", "rows=8", "--in", "x=rows", "--scale", "rows")
    assert shown.code == 0 and "not on 1,024 devices: the axes do not divide dimension 0" in shown.out
    error = heron("cost", program, "--mesh", "data=3,model=8", *SPLIT, "--scale", "model")
    assert error.code != 0 and "CLI061" in error.err and "have 3 devices together" in error.err
    error = heron("cost", program, "--mesh", "data=3,model=8", *SPLIT, "--devices", "12")
    assert error.code != 0 and "CLI061" in error.err and "have 8 devices together" in error.err
    error = heron("cost", program, "--mesh", "model=8", *SPLIT, "--scale", "modle")
    assert error.code != 0 and "has no axis 'modle'" in error.err
    error = heron("cost", program, "--mesh", "model=8", "--as-given")
    assert error.code != 0 and "CLI064" in error.err


def test_parameters_are_split_by_themselves(program: str):
    found = cost(program, "--target", "sm_90", "--mesh", "model=8", "--auto")
    assert found["auto"]["options"] and found["devices"] == 8
    assert found["seconds"] < cost(program, "--target", "sm_90")["seconds"]


def test_devices_alone_are_one_axis(program: str):
    found = cost(program, "--target", "sm_90", "--devices", "8", "--in", "x=devices")
    assert found["mesh"] == "mesh['devices'=8]" and found["collectives"] == []
