"""sort and topk against XLA:CPU."""

from __future__ import annotations

import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo.text import parse
from tests.conformance.case import Case
from tests.conformance.runner import expect_agreement
from tests.conformance.tables import of_type, table
from tests.hlo.ops.agree import program

ODD = [0.0, -0.0, np.inf, -np.inf, 1, -1, 2, 1, -1, 0.5, -0.0, 0.0, np.inf, 3, 2, 1e-30]


# -- comparators -----------------------------------------------------------------------------------------------------
def _compare(direction: str, order: str = "", with_positions: bool = False) -> str:
    """``less``: compares the first operand's elements."""
    positions = " c = s32[] parameter(2)\n d = s32[] parameter(3)\n" if with_positions else ""
    kind = f", type={order}" if order else ""
    return (
        f"less {{\n a = T[] parameter(0)\n b = T[] parameter(1)\n{positions}"
        f" ROOT r = pred[] compare(a, b), direction={direction}{kind}\n}}\n"
    )


TWO_KEYS = """less {
 a = T[] parameter(0)
 b = T[] parameter(1)
 c = s32[] parameter(2)
 d = s32[] parameter(3)
 first = pred[] compare(a, b), direction=LT
 equal = pred[] compare(a, b), direction=EQ
 second = pred[] compare(c, d), direction=GT
 ROOT r = pred[] JOIN
}
"""
SWAPPED = _compare("GT").replace("compare(a, b)", "compare(b, a)")
JOINS = {
    "or of and": "or(first, both)",
    "and in front": "or(both, first)",
    "select": "select(equal, second, first)",
}


def _two_keys(join: str) -> str:
    both = " both = pred[] and(equal, second)\n" if "both" in join else ""
    return TWO_KEYS.replace(" ROOT", both + " ROOT").replace("JOIN", join)


#: by the distance from 1: another function of each side than its value
DERIVED = """less {
 a = T[] parameter(0)
 b = T[] parameter(1)
 one = T[] constant(1)
 c = T[] subtract(a, one)
 d = T[] subtract(b, one)
 e = T[] multiply(c, c)
 f = T[] multiply(d, d)
 ROOT r = pred[] compare(e, f), direction=LT
}
"""
#: no comparison of two sides at all: negatives before the rest
PARTITION = """less {
 a = T[] parameter(0)
 b = T[] parameter(1)
 z = T[] constant(0)
 c = pred[] compare(a, z), direction=LT
 d = pred[] compare(b, z), direction=GE
 ROOT r = pred[] and(c, d)
}
"""
BY_REAL_PART = """less {
 a = T[] parameter(0)
 b = T[] parameter(1)
 c = s32[] parameter(2)
 d = s32[] parameter(3)
 e = PART[] real(a)
 f = PART[] real(b)
 ROOT r = pred[] compare(e, f), direction=LT
}
"""
TWO = """ p = T[{s}] parameter(0)
 q = s32[{s}] parameter(1)
 ROOT r = (T[{s}], s32[{s}]) sort(p, q), dimensions={{{d}}}, is_stable=true, to_apply=less"""


# -- sort ------------------------------------------------------------------------------------------------------------
def _one(shape: str, dim: int, stable: bool = False) -> str:
    extra = ", is_stable=true" if stable else ""
    return f" p = T[{shape}] parameter(0)\n ROOT r = T[{shape}] sort(p), dimensions={{{dim}}}{extra}, to_apply=less"


SHAPES = {
    "a vector": _one("37", 0),
    "the last dimension": _one("3,17", 1),
    "the first dimension": _one("17,3", 0),
    "the middle": _one("2,9,3", 1, True),
    "one element": _one("2,1", 1),
    "two elements": _one("2,3", 0),
    "nothing": _one("0", 0),
    "no lines": _one("0,3", 1),
}


def sort_cases() -> list[Case]:
    cases = table("sort", "f32 bf16 f16 f64 s8 u8 s16 u16 s32 u32 s64 u64 pred", SHAPES, _compare("LT"))
    cases += table("sort", "f32 f64 s32 u8", {"descending": SHAPES["the middle"]}, _compare("GT"))
    positions = {f"with positions, {s}": TWO.format(s=s, d=d) for s, d in (("37", 0), ("3,17", 1), ("5,4", 0))}
    cases += table("sort", "f32 bf16 s32 u8 pred", positions, _compare("LT", with_positions=True))
    for label, join in JOINS.items():
        bodies = {f"by two keys, {label}": TWO.format(s="2,300", d=1)}
        cases += table("sort", "s8 f32 pred", bodies, _two_keys(join))
        descending = _two_keys(join).replace("direction=LT", "direction=GT")
        cases += table("sort", "s8", {f"descending {k}": v for k, v in bodies.items()}, descending)
    cases += table("sort", "f32 s32", {"by a function": _one("2,21", 1, True)}, DERIVED)
    cases += table("sort", "f32 s32", {"in two parts": _one("2,21", 1, True)}, PARTITION)
    cases += table("sort", "f32 u8", {"sides exchanged": _one("2,21", 1)}, SWAPPED)
    cases += table("sort", "c64", {"by real parts": TWO.format(s="11", d=0)}, BY_REAL_PART.replace("PART", "f32"))
    x = np.array(ODD, np.float32)
    for direction in ("LT", "GT"):
        for order in ("FLOAT", "TOTALORDER"):
            for t in ("f32", "bf16", "f16", "f64"):
                body = of_type(TWO.format(s=str(len(ODD)), d=0), t)
                before = of_type(_compare(direction, order, with_positions=True), t)
                arrays = [x.astype(_dtype(t)), np.arange(len(ODD), dtype=np.int32)]
                cases.append(Case("sort", t, body, arrays, f"odd floats, {direction} {order}", before))
    return cases


def _dtype(t: str) -> np.dtype:
    from heron.hlo.ir.types import by_name

    return by_name(t).dtype


def test_sort() -> None:
    expect_agreement(sort_cases())


def test_nan_by_total_order() -> None:
    """-NaN comes first, NaN last, stably."""
    cases = []
    for t in ("f32", "bf16", "f64"):
        x = np.array([1, np.nan, -np.inf, -np.nan, 0, np.nan, -0.0, np.inf, -np.nan], np.float32)
        x[[3, 8]] = np.copysign(np.nan, -1)
        before = of_type(_compare("LT", "TOTALORDER", with_positions=True), t)
        body = of_type(TWO.format(s="9", d=0), t)
        cases.append(Case("sort", t, body, [x.astype(_dtype(t)), np.arange(9, dtype=np.int32)], "nan", before))
    expect_agreement(cases)


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_many_by_two_keys(join: str) -> None:
    """Comparators of several keys, and enough elements that many are equal in the first."""
    n = 100_000
    module = parse(program(of_type(TWO.format(s=str(n), d=0), "f32"), of_type(_two_keys(join), "f32")))
    random = np.random.default_rng(0)
    a = random.integers(0, 1000, n).astype(np.float32)
    b = random.integers(0, 1000, n).astype(np.int32)
    first, second = evaluate(module, a, b)
    order = np.lexsort((-b, a))
    np.testing.assert_array_equal(first, a[order])
    np.testing.assert_array_equal(second, b[order])


# -- topk ------------------------------------------------------------------------------------------------------------
def topk_cases() -> list[Case]:
    bodies = {}
    for largest in ("true", "false"):
        for shape, k, result in (("9", 4, "4"), ("3,9", 4, "3,4"), ("2,2,5", 5, "2,2,5"), ("3,4", 0, "3,0")):
            bodies[f"{k} of {shape}, {largest}"] = (
                f" p = T[{shape}] parameter(0)\n"
                f" ROOT r = (T[{result}], s32[{result}]) topk(p), k={k}, largest={largest}"
            )
    cases = table("topk", "f32 bf16 s32 u32 s8", bodies)
    x = np.array([1, 3, 3, -0.0, 0.0, np.inf, -np.inf, np.nan, 3, 0.0, -0.0], np.float32)
    for largest in ("true", "false"):
        body = f" p = f32[11] parameter(0)\n ROOT r = (f32[9], s32[9]) topk(p), k=9, largest={largest}"
        cases.append(Case("topk", "f32", body, [x], f"ties and nan, {largest}"))
    return cases


def test_topk() -> None:
    expect_agreement(topk_cases())
