"""reduce, reduce-window and select-and-scatter against XLA:CPU."""

from __future__ import annotations

from itertools import product

import numpy as np

from tests.conformance.case import Case
from tests.conformance.reducers import ARGMAX, CALLED, FIRST, SECOND, SUM_AND_MAX, binary, comparison
from tests.conformance.runner import expect_agreement
from tests.conformance.tables import STEPS, of_type, table

BEFORE_ALL = binary("add") + FIRST + CALLED
BEFORE = BEFORE_ALL + binary("maximum") + ARGMAX + SUM_AND_MAX + SECOND
BEFORE += comparison("ge", "GE") + comparison("gt", "GT") + comparison("le", "LE")


# -- reduce ----------------------------------------------------------------------------------------------------------
def _reduce(shape: str, result: str, dims: str, by: str, init: str = "0") -> str:
    return (
        f" p = T[{shape}] parameter(0)\n z = T[] constant({init})\n"
        f" ROOT r = T[{result}] reduce(p, z), dimensions={{{dims}}}, to_apply={by}"
    )


SHAPES = {
    "all of a vector": _reduce("7", "", "0", "add"),
    "the last dimension": _reduce("3,5", "3", "1", "add"),
    "the first dimension": _reduce("3,5", "5", "0", "add", "1"),
    "two, out of order": _reduce("2,3,4", "3", "2,0", "add", "1"),
    "no dimension": _reduce("2,3", "2,3", "", "add"),
    "a scalar": _reduce("", "", "", "add"),
    "nothing": _reduce("3,0", "3", "1", "add", "1"),
    "to nothing": _reduce("0,3", "0", "1", "add", "1"),
    "dimensions of one": _reduce("1,4,1", "4", "0,2", "add"),
    "no identity over dimensions of one": _reduce("1,4,1", "4", "0,2", "add", "1"),
    "through a call": _reduce("3,5", "3", "1", "called", "1"),
    "the first that is not zero": _reduce("3,5", "3", "1", "first"),
}
COMPARED = {
    "argmax": """ p = T[6,3] parameter(0)
 i = s32[6,3] iota(), iota_dimension=0
 z = T[] constant(0)
 k = s32[] constant(-1)
 ROOT r = (T[3], s32[3]) reduce(p, i, z, k), dimensions={0}, to_apply=argmax""",
    "sum and maximum": """ p = T[6,3,2] parameter(0)
 i = s32[6,3,2] iota(), iota_dimension=1
 z = T[] constant(1)
 k = s32[] constant(0)
 ROOT r = (T[3], s32[3]) reduce(p, i, z, k), dimensions={2,0}, to_apply=both""",
    "argmax of nothing": """ p = T[0,3] parameter(0)
 i = s32[0,3] iota(), iota_dimension=0
 z = T[] constant(5)
 k = s32[] constant(-1)
 ROOT r = (T[3], s32[3]) reduce(p, i, z, k), dimensions={0}, to_apply=argmax""",
}
#: one-op reducers by kind of type
OPCODES = {
    "f32 bf16 f64": "multiply maximum minimum",
    "s32 u32 s8 u8": "multiply maximum minimum and or xor",
    "pred": "and or xor maximum minimum",
    "c64": "multiply",
}


def reduce_cases() -> list[Case]:
    cases = table("reduce", "f32 bf16 f64 s32 u8 c64", SHAPES, BEFORE_ALL, STEPS)
    cases += table("reduce", "f32 bf16 f64 s32 u8", COMPARED, BEFORE, STEPS)
    for types, opcodes in OPCODES.items():
        bodies = {
            f"by {o}, {label}": _reduce(shape, result, dims, o, "1" if types != "pred" else "true")
            for o in opcodes.split()
            for label, shape, result, dims in (("rows", "3,5", "3", "1"), ("all", "2,3", "", "0,1"))
        }
        cases += table("reduce", types, bodies, "".join(map(binary, opcodes.split())), STEPS)
    return cases


def test_reduce() -> None:
    expect_agreement(reduce_cases())


def test_nan_is_greatest_and_least() -> None:
    """maximum and minimum keep NaN wherever it stands; zeros are ordered by sign."""
    x = np.array([[1, np.nan, 2], [np.nan, -1, 0], [0.0, -0.0, -0.0], [-0.0, 0.0, 0.0], [np.inf, 1, -np.inf]])
    cases = []
    for t, dtype in (("f32", np.float32), ("f64", np.float64)):
        for o, init in (("maximum", "-inf"), ("minimum", "inf")):
            body = of_type(_reduce("5,3", "5", "1", o, init), t)
            cases.append(Case("reduce", t, body, [x.astype(dtype)], f"nan by {o}", of_type(binary(o), t)))
    expect_agreement(cases)


# -- reduce-window ---------------------------------------------------------------------------------------------------
def _windows(shape: str, result: str, window: str, by: str = "add", init: str = "0") -> str:
    return (
        f" p = T[{shape}] parameter(0)\n z = T[] constant({init})\n"
        f" ROOT r = T[{result}] reduce-window(p, z), window={{{window}}}, to_apply={by}"
    )


WINDOWS = {
    "plain": _windows("7", "5", "size=3"),
    "stride": _windows("7,6", "3,2", "size=3x3 stride=2x3"),
    "padding": _windows("5,4", "6,5", "size=3x2 pad=2_1x1_1"),
    "padding with an initial value that shows": _windows("5", "7", "size=3 pad=2_2", init="1"),
    "negative padding": _windows("7,4", "3,4", "size=3x1 pad=-1_-1x0_0"),
    "padding of both signs": _windows("6", "6", "size=3 pad=-2_4", init="1"),
    "base dilation": _windows("4", "9", "size=3 pad=1_0 lhs_dilate=3", init="1"),
    "window dilation": _windows("9", "3", "size=3 rhs_dilate=3"),
    "all of these": _windows("5,4", "4,3", "size=3x2 stride=2x3 pad=1_1x2_-1 lhs_dilate=2x3 rhs_dilate=2x2", init="1"),
    "windows in padding alone": _windows("2", "6", "size=2 stride=2 pad=5_5", init="1"),
    "window larger than the array": _windows("2", "0", "size=3"),
    "size one": _windows("3,1", "3,1", "size=1x1", init="1"),
    "no elements": _windows("0,3", "1,2", "size=2x2 pad=1_1x0_0", init="1"),
    "no elements, none out": _windows("0,3", "0,3", "size=1x1"),
    "cumulative sum": _windows("9", "9", "size=9 pad=8_0"),
    "cumulative sum from the end": _windows("2,9", "2,9", "size=1x9 pad=0_0x0_8"),
    "the first that is not zero": _windows("7", "8", "size=4 pad=2_2", "first"),
    "through a call": _windows("7,3", "7,2", "size=3x2 pad=1_1x0_0", "called"),
    "four dimensions": _windows("2,5,4,3", "2,2,2,3", "size=1x3x2x1 stride=1x2x2x1"),
    "scalar": " p = T[] parameter(0)\n z = T[] constant(0)\n ROOT r = T[] reduce-window(p, z), to_apply=add",
}
ORDERED_WINDOWS = {
    "maxima": _windows("7,6", "4,6", "size=3x3 stride=2x1 pad=1_1x1_1", "maximum", "-5"),
    "argmax": """ p = T[7,3] parameter(0)
 i = s32[7,3] iota(), iota_dimension=0
 z = T[] constant(-9)
 k = s32[] constant(99)
 ROOT r = (T[4,3], s32[4,3]) reduce-window(p, i, z, k), window={size=3x1 stride=2x1 pad=1_1x0_0}, to_apply=argmax""",
    "sum and maximum": """ p = T[7,4] parameter(0)
 i = s32[7,4] iota(), iota_dimension=1
 z = T[] constant(1)
 k = s32[] constant(2)
 ROOT r = (T[4,6], s32[4,6]) reduce-window(p, i, z, k), to_apply=both,
   window={size=3x2 stride=2x1 pad=1_1x-1_1 lhs_dilate=1x2 rhs_dilate=1x1}""",
}


def window_cases() -> list[Case]:
    cases = table("reduce-window", "f32 bf16 f64 s32 u8 c64", WINDOWS, BEFORE_ALL, STEPS)
    return cases + table("reduce-window", "f32 bf16 s32 s8", ORDERED_WINDOWS, BEFORE, STEPS)


def test_reduce_window() -> None:
    expect_agreement(window_cases())


# -- select-and-scatter ----------------------------------------------------------------------------------------------
def _select(shape: str, source: str, window: str, select: str = "ge", scatter: str = "add", init: str = "0") -> str:
    return (
        f" p = T[{shape}] parameter(0)\n s = T[{source}] parameter(1)\n z = T[] constant({init})\n"
        f" ROOT r = T[{shape}] select-and-scatter(p, s, z), window={{{window}}}, select={select}, scatter={scatter}"
    )


SELECTIONS = {
    "apart": _select("6,4", "3,2", "size=2x2 stride=2x2"),
    "overlapping": _select("7,6", "3,4", "size=3x3 stride=2x1"),
    "padding": _select("5,6", "3,4", "size=3x3 stride=2x2 pad=1_1x1_2"),
    "padding of both signs": _select("7", "6", "size=3 pad=-1_2"),
    "strictly greater": _select("7,6", "5,4", "size=3x3", "gt"),
    "least": _select("7,6", "5,4", "size=3x3", "le"),
    "an initial value": _select("7", "5", "size=3", init="3"),
    "maxima": _select("7", "5", "size=3", scatter="maximum", init="1"),
    "replaced": _select("7", "2", "size=2 stride=3", scatter="second"),
    "first that is not zero": _select("9", "7", "size=3", scatter="first"),
    "no windows": _select("2", "0", "size=3"),
    "no elements": _select("0", "0", "size=1"),
    "size one": _select("4", "4", "size=1"),
    "four dimensions": _select("2,4,4,3", "2,2,2,3", "size=1x2x2x1 stride=1x2x2x1"),
}


def select_cases() -> list[Case]:
    cases = table("select-and-scatter", "f32 bf16 f64 s32 u8", SELECTIONS, BEFORE, STEPS)
    tied = np.array([1, 1, 0, 2, 2, 2, 0, 0, 0], np.float32)
    for select in ("ge", "gt", "le"):
        body = of_type(_select("9", "7", "size=3", select), "f32")
        source = np.arange(1, 8, dtype=np.float32)
        cases.append(
            Case("select-and-scatter", "f32", body, [tied, source], f"ties by {select}", of_type(BEFORE, "f32"))
        )
    tied = np.array([[0, 1, 0, 1], [1, 0, 0, 1], [1, 1, 0, 0]], np.float32)
    source = np.arange(1, 5, dtype=np.float32).reshape(2, 2)
    for select, pad in product(("ge", "gt"), ("0_1x0_1", "1_0x1_0")):
        body = of_type(_select("3,4", "2,2", f"size=3x4 pad={pad}", select), "f32")
        label = f"ties by {select}, padding {pad}"
        cases.append(Case("select-and-scatter", "f32", body, [tied, source], label, of_type(BEFORE, "f32")))
    return cases


def test_select_and_scatter() -> None:
    expect_agreement(select_cases())
