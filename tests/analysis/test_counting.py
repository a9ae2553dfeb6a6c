"""Arrays whose elements count along a dimension."""

import pytest

from heron.analysis.values.counting import counted_dim
from heron.hlo.text import parse

FORMS = {
    "n = s32[8,3] iota(), iota_dimension=0\nROOT r = s32[8,3] copy(n)": 0,
    "n = s32[8] iota(), iota_dimension=0\nROOT r = s32[4,8,2] broadcast(n), dimensions={1}": 1,
    "n = s32[8] iota(), iota_dimension=0\nROOT r = s32[1,8,1] reshape(n)": 1,
    "n = s32[8] iota(), iota_dimension=0\nROOT r = s64[8] convert(n)": 0,
    "n = s32[300] iota(), iota_dimension=0\nROOT r = s8[300] convert(n)": None,
    "n = s8[200] iota(), iota_dimension=0\nROOT r = s32[200] convert(n)": None,
    "n = s32[8] iota(), iota_dimension=0\nROOT r = s32[2,4] reshape(n)": None,
    "n = s32[8] iota(), iota_dimension=0\nROOT r = s32[8] add(n, n)": None,
    "n = f32[8] iota(), iota_dimension=0\nROOT r = f32[8] copy(n)": None,
}


def root(body: str):
    return parse(f"HloModule m\nENTRY main {{\n{body}\n}}").entry.root


@pytest.mark.parametrize("body", FORMS)
def test_forms(body):
    assert counted_dim(root(body)) == FORMS[body]


@pytest.mark.parametrize(("direction", "expected"), [("LT", 0), ("LE", None), ("GT", None)])
def test_negative_indices_of_which_there_are_none(direction, expected):
    body = f"""n = s32[8] iota(), iota_dimension=0
      zero = s32[] constant(0)
      zeros = s32[8] broadcast(zero), dimensions={{}}
      below = pred[8] compare(n, zeros), direction={direction}
      other = s32[8] parameter(0)
      ROOT r = s32[8] select(below, other, n)"""
    assert counted_dim(root(body)) == expected
