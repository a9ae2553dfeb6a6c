"""Comparisons: tolerances by dtype, special values, ULPs, and where the worst element is."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from heron import HeronError
from heron.cli.compare import compare, compare_all


def _f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_equal() -> None:
    c = compare(0, _f32(1, 2), _f32(1, 2))
    assert c.ok and (c.max_abs, c.max_rel, c.max_ulp, c.mismatches) == (0, 0, 0, 0)


def test_default_tolerance_scales_with_the_largest_expected() -> None:
    assert compare(0, _f32(1000, 0.009), _f32(1000, 0)).ok
    assert not compare(0, _f32(1000, 0.011), _f32(1000, 0)).ok


def test_worst_index_is_the_one_furthest_out_of_bounds() -> None:
    actual, expected = np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)
    actual[1, 2], actual[0, 1] = 1.5, 1.25
    c = compare(3, actual, expected)
    assert (c.output, c.index, c.mismatches, c.actual, c.expected) == (3, (1, 2), 2, "1.5", "1")
    assert (c.max_abs, c.max_rel) == (0.5, 0.5)


def test_given_tolerances_win() -> None:
    assert compare(0, _f32(1.05), _f32(1), rtol=0.1).ok
    assert compare(0, _f32(1.05), _f32(1), rtol=0, atol=0.1).ok
    assert not compare(0, _f32(1.0000001), _f32(1), rtol=0, atol=0).ok


@pytest.mark.parametrize(
    ("actual", "expected", "ok"),
    [
        (np.nan, np.nan, True),
        (np.inf, np.inf, True),
        (-np.inf, np.inf, False),
        (np.nan, 1.0, False),
        (1.0, np.nan, False),
        (np.inf, 1.0, False),
        (1.0, np.inf, False),
        (-0.0, 0.0, True),
    ],
)
def test_special_values(actual: float, expected: float, ok: bool) -> None:
    assert compare(0, _f32(actual, 1), _f32(expected, 1)).ok is ok


def test_ulp() -> None:
    one, next_one = np.float32(1), np.nextafter(np.float32(1), np.float32(2))
    assert compare(0, _f32(next_one), _f32(one)).max_ulp == 1
    tiny = np.nextafter(np.float32(0), np.float32(1))
    assert compare(0, _f32(tiny), _f32(-tiny)).max_ulp == 2
    assert compare(0, np.array([1.0]), np.array([np.nextafter(1, 0)])).max_ulp == 1
    bf16 = np.array([1.0, 1.0078125], ml_dtypes.bfloat16)
    assert compare(0, bf16[1:], bf16[:1]).max_ulp == 1


def test_complex() -> None:
    c = compare(0, np.array([1 + 2j], np.complex64), np.array([1 + 2.5j], np.complex64))
    assert not c.ok and c.max_abs == 0.5
    assert compare(0, np.array([1 + 2j]), np.array([1 + 2j])).ok


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.int64, np.uint64, np.bool_, ml_dtypes.int4])
def test_integers_are_exact(dtype: type) -> None:
    expected = np.array([0, 1, 1]).astype(dtype)
    actual = np.array([0, 1, 0]).astype(dtype)
    assert compare(0, expected, expected).ok
    c = compare(0, actual, expected)
    assert not c.ok and (c.index, c.mismatches, c.max_abs) == ((2,), 1, 1)


def test_large_integers_one_apart_differ() -> None:
    big = np.array([2**63 - 1], np.int64)
    assert not compare(0, big - 1, big).ok


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16, np.float16])
def test_narrow_floats(dtype: type) -> None:
    values = np.array([0.5, -2, 1]).astype(dtype)
    assert compare(0, values, values).ok
    assert not compare(0, -values, values).ok


def test_scalars_and_empty_arrays() -> None:
    assert compare(0, np.float32(1).reshape(()), np.float32(1).reshape(())).index == ()
    assert compare(0, np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)).ok


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ([_f32(1)], []),
        ([_f32(1)], [np.array([1.0])]),
        ([_f32(1)], [_f32(1, 2)]),
        ([_f32(1)], [np.array([1], np.uint32)]),
    ],
)
def test_what_cannot_be_compared(actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    with pytest.raises(HeronError) as caught:
        compare_all(actual, expected)
    assert caught.value.code == "CLI032"
