"""Reductions by a computation: how the partial results of devices meet, and how much is sent for that."""

import pytest

from tests.passes.sharding.one_op import transfers

PLACE = "ROOT r = s32[{rows}] get-tuple-element(m), index=1 @[{{}}]@"
BOTH = """v = f32[{rows}] get-tuple-element(m), index=0 @[{{}}]@
  n = s32[{rows}] get-tuple-element(m), index=1 @[{{}}]@
  w = s32[{rows}] bitcast-convert(v) @[{{}}]@
  ROOT r = s32[{rows}] xor(w, n) @[{{}}]@"""


def largest(devices: int, rows: int, end: str) -> list[tuple[str, tuple[int, ...]]]:
    """The collectives of a largest element and its place in each row, along a dimension split over all devices."""
    body = f"""  x = f32[{rows},24] parameter(0) @[{{}}, {{{ALL[devices]}}}]@
  k = s32[{rows},24] iota(), iota_dimension=1 @[{{}}, {{{ALL[devices]}}}]@
  low = f32[] constant(-inf)
  most = s32[] constant(2147483647)
  m = (f32[{rows}], s32[{rows}]) reduce(x, k, low, most), dimensions={{1}}, to_apply=largest
  {end.format(rows=rows)}"""
    return [(i.opcode, i.shape.dims) for i in transfers(devices, body)]


#: the axes of the mesh of as many devices
ALL = {2: "'x'", 4: "'x','y'", 8: "'x','y'"}


@pytest.mark.parametrize("end", [PLACE, BOTH])
@pytest.mark.parametrize("devices", [4, 8])
def test_each_device_combines_a_piece(devices: int, end: str) -> None:
    sent = largest(devices, 16, end)
    assert [dims for opcode, dims in sent if opcode == "all-gather"] == [(16,)] * (1 + (end is BOTH))
    assert [opcode for opcode, _ in sent].count("all-to-all") == 2


def test_all_results_of_two_devices_are_gathered() -> None:
    """That sends as much as an exchange of pieces, in fewer collectives."""
    assert {opcode for opcode, _ in largest(2, 16, BOTH)} == {"all-gather"}


def test_one_result_of_two_devices_is_shared_out() -> None:
    assert sorted(opcode for opcode, _ in largest(2, 16, PLACE)) == ["all-gather", "all-to-all", "all-to-all"]


def test_results_without_as_many_pieces_are_gathered() -> None:
    assert {opcode for opcode, _ in largest(4, 6, BOTH)} == {"all-gather"}
