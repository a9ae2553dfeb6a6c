"""Loops over bytes in tables and columns take one at a time: in vectors each byte is code of its own."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.backends.cpu import quick_code
from heron.codegen.llvm.jit import host

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


COLUMNS = """HloModule m
ENTRY e {{
  x = f32[{rows},256] parameter(0)
  z = f32[{rows},1] parameter(1)
  first = f32[{rows},1] tanh(z)
  others = f32[{rows},256] tanh(x)
  all = f32[{rows},257] concatenate(first, others), dimensions={{1}}
  half = f32[] constant(0.5)
  halves = f32[{rows},257] broadcast(half), dimensions={{}}
  ROOT big = pred[{rows},257] compare(all, halves), direction=GT
}}"""


@pytest.mark.skipif(host().width < 512, reason="the machine has no masks")
def test_a_column_of_bytes_is_written_one_by_one() -> None:
    """A mask would be a test for each of them, in as many vectors as are computed at a time."""
    short, long = (heron.compile(heron.parse(COLUMNS.format(rows=rows))).stage("llvm") for rows in (40, 400))
    assert ONE in short
    assert ONE not in long and '!"llvm.loop.interleave.count", i32 1}' in long


def test_values_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_code, "_EACH", 0.0)
    rng = np.random.default_rng(0)
    for rows in (40, 400):
        arguments = [rng.normal(size=(rows, n)).astype(np.float32) for n in (256, 1)]
        module = heron.parse(COLUMNS.format(rows=rows))
        (expected,) = heron.evaluate(module, *arguments)
        np.testing.assert_array_equal(heron.compile(module)(*arguments), expected)


ROLLED = """HloModule m
ENTRY e {
  x = f32[90,90] parameter(0)
  last = f32[1,90] slice(x), slice={[89:90], [0:90]}
  rows = f32[89,90] slice(x), slice={[0:89], [0:90]}
  down = f32[90,90] concatenate(last, rows), dimensions={0}
  end = f32[90,1] slice(x), slice={[0:90], [89:90]}
  columns = f32[90,89] slice(x), slice={[0:90], [0:89]}
  right = f32[90,90] concatenate(end, columns), dimensions={1}
  ROOT r = f32[90,90] add(down, right)
}"""


def test_a_corner_has_no_vectors() -> None:
    """The first element of the first row is a loop of at most one step, between bounds that are known at run time."""
    program = heron.compile(heron.parse(ROLLED))
    text = program.stage("llvm")
    assert text.count(ONE) == 1
    assert host().width < 512 or text.count("!llvm.loop !") > 1  # where rows end with a part of a vector
    x = np.random.default_rng(0).normal(size=(90, 90)).astype(np.float32)
    np.testing.assert_array_equal(program(x), np.roll(x, 1, 0) + np.roll(x, 1, 1))
