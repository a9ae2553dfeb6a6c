"""The conformance runner itself: it must see what differs."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo.ir import types
from tests.conformance.case import Case, Closeness, agreement, unit
from tests.conformance.runner import expect_agreement, judge, packed, xla_values

ADD = " p = f32[3] parameter(0)\n q = f32[3] parameter(1)\n ROOT r = f32[3] add(p, q)"
SUM = " p = f32[2,3] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[2] reduce(p, z), dimensions={1}, to_apply=sum"
SORT = " p = f32[4] parameter(0)\n i = s32[4] iota(), iota_dimension=0\n ROOT r = (f32[4], s32[4]) sort(p, i), dimensions={0}, to_apply=less"
LESS = "less {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=LT\n}"
SUMMER = "sum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b)\n}"


def test_packed_cases_agree() -> None:
    cases = [
        Case("add", "f32", ADD),
        Case("add", "f32", ADD, label="again"),
        Case("reduce", "f32", SUM, before=SUMMER, close=Closeness(ulps=2)),
        Case("sort", "f32", SORT, before=LESS),
    ]
    assert len(packed(cases).entry.parameters) == 6
    expect_agreement(cases)


def test_a_wrong_value_is_seen() -> None:
    case = Case("add", "f32", ADD, [np.ones(3, np.float32), np.ones(3, np.float32)])
    assert judge(case, [np.full(3, 2, np.float32)], [np.full(3, 2, np.float32)]).verdict == "agree"
    outcome = judge(case, [np.full(3, 2, np.float32)], [np.array([2, 3, 2], np.float32)])
    assert outcome.verdict == "differ" and "gives 2.0, XLA has 3.0" in outcome.words


def test_one_refused_case_leaves_the_others_their_values() -> None:
    unknown = ' p = f32[2] parameter(0)\n ROOT r = f32[2] custom-call(p), custom_call_target="nobody_knows_this"'
    values = xla_values([Case("custom-call", "f32", unknown), Case("add", "f32", ADD)])
    assert isinstance(values[0], str) and "nobody_knows_this" in values[0]
    assert not isinstance(values[1], str) and values[1][0].shape == (3,)


@pytest.mark.parametrize(
    ("ours", "theirs", "close", "agrees"),
    [
        (1.0, 1.0 + 2**-23, Closeness(), False),
        (1.0, 1.0 + 2**-23, Closeness(ulps=1), True),
        (1.0, 1.0 + 2**-22, Closeness(ulps=1), False),
        (0.0, -0.0, Closeness(), False),
        (0.0, -0.0, Closeness(zeros=False), True),
        (np.nan, np.nan, Closeness(), True),
        (np.nan, -np.nan, Closeness(bits=True), False),
        (np.inf, 3e38, Closeness(ulps=1e9), False),
        (2.0**-149, 2.0**-148, Closeness(ulps=1), True),
        (2.0**-149, 0.0, Closeness(ulps=0.5), False),
    ],
)
def test_closeness(ours: float, theirs: float, close: Closeness, agrees: bool) -> None:
    a, b = np.array([ours], np.float32), np.array([theirs], np.float32)
    assert agreement(a, b, types.F32, close).tolist() == [agrees]


def test_units_in_the_last_place() -> None:
    assert unit(np.array([1.0, 1.5, 2.0, 0.0]), types.F32).tolist() == [2**-23, 2**-23, 2**-22, 2**-149]
    assert unit(np.array([448.0]), types.F8E4M3FN).tolist() == [32.0]
