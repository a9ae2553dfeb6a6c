"""Bounds of integers that are made of iotas and constants."""

from __future__ import annotations

import pytest

from heron.analysis.values.upper_bound import upper_bound
from heron.hlo.text import parse


@pytest.mark.parametrize(
    ("body", "bound"),
    [
        ("ROOT r = u64[9] iota(), iota_dimension=0", 8),
        ("i = u8[300] iota(), iota_dimension=0 ROOT r = u8[300] add(i, i)", None),  # wraps already
        ("i = u8[100] iota(), iota_dimension=0 ROOT r = u8[100] add(i, i)", 198),
        ("i = s8[100] iota(), iota_dimension=0 ROOT r = s8[100] add(i, i)", None),  # may be negative
        ("c = s32[] constant(-3) ROOT r = s32[2] broadcast(c), dimensions={}", None),
        ("c = u32[] constant(7) b = u32[4] broadcast(c), dimensions={} i = u32[4] iota(), iota_dimension=0"
         " ROOT r = u32[4] multiply(b, i)", 21),
        ("i = u32[999] iota(), iota_dimension=0 ROOT r = u8[999] convert(i)", None),
        ("i = u32[99] iota(), iota_dimension=0 ROOT r = u8[99] convert(i)", 98),
        ("x = u32[4] parameter(0) i = u32[4] iota(), iota_dimension=0 ROOT r = u32[4] add(x, i)", None),
        ("ROOT r = f32[4] iota(), iota_dimension=0", None),
    ],
)  # fmt: skip
def test_bound(body: str, bound: int | None) -> None:
    assert upper_bound(parse(f"HloModule m\nENTRY e {{ {body} }}").entry.root) == bound
