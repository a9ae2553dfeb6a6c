"""Loops that look up bytes in tables take one at a time: vectors of 64 lanes are 64 look-ups, each code of its own."""

from __future__ import annotations

import numpy as np
import pytest

import heron

TABLE = """HloModule m
ENTRY e {{
  table = {type}[256] parameter(0)
  bytes = u8[100000] parameter(1)
  turned = u8[100000] not(bytes)
  wide = s32[100000] convert(turned)
  places = s32[100000,1] reshape(wide)
  found = {type}[100000] gather(table, places), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}},
    index_vector_dim=1, slice_sizes={{1}}
  ROOT y = {type}[100000] {then}
}}"""
ONE = '!"llvm.loop.vectorize.width", i32 1}'


@pytest.mark.parametrize(
    ("element", "then", "is_scalar"),
    [
        ("u8", "negate(found)", True),
        ("s16", "add(found, found)", True),
        ("f32", "negate(found)", False),  # the machine looks up numbers of 32 bits in vectors
        ("bf16", "tanh(found)", False),  # the rest is for vectors
        ("u8", "not(bytes)", False),
    ],
)
def test_which_loops(element: str, then: str, is_scalar: bool) -> None:
    text = heron.compile(heron.parse(TABLE.format(type=element, then=then))).stage("llvm")
    assert (ONE in text) == is_scalar


def test_values() -> None:
    rng = np.random.default_rng(0)
    arguments = [rng.integers(0, 256, n).astype(np.uint8) for n in (256, 100_000)]
    module = heron.parse(TABLE.format(type="u8", then="negate(found)"))
    (expected,) = heron.evaluate(module, *arguments)
    np.testing.assert_array_equal(heron.compile(module)(*arguments), expected)
