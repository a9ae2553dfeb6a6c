"""Floats sorted in the partial order: stable, both zeros equal; rows with NaNs become what the comparator makes of them."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.analysis.fusion.sort_keys import keys_of
from heron.codegen.emitters.sort import cpu_radix
from heron.compiling import compile

ROWS, LENGTH = 7, 130
SPECIAL = (0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45)


def program(t: str, before: str) -> str:
    dims = f"[{ROWS},{LENGTH}]"
    return f"""HloModule m

before {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  {before}
}}

ENTRY e {{
  x = {t}{dims} parameter(0)
  p = s32{dims} iota(), iota_dimension=1
  ROOT s = ({t}{dims}, s32{dims}) sort(x, p), dimensions={{1}}, is_stable=true, to_apply=before
}}
"""


ASCENDING = "ROOT r = pred[] compare(a, b), direction=LT"
DESCENDING = "ROOT r = pred[] compare(a, b), direction=GT"
TWO_KEYS = """l = pred[] compare(a, b), direction=LT
  q = pred[] compare(a, b), direction=EQ
  g = pred[] compare(i, j), direction=GT
  n = pred[] and(q, g)
  ROOT r = pred[] or(l, n)"""
COMPUTED = """c = T[] abs(a)
  d = T[] abs(b)
  ROOT r = pred[] compare(c, d), direction=LT"""
ORDERS = {"ascending": ASCENDING, "descending": DESCENDING, "two keys": TWO_KEYS, "computed": COMPUTED}


def values(t: str, nans: bool) -> np.ndarray:
    rng = np.random.default_rng(3)
    x = rng.integers(-9, 9, (ROWS, LENGTH)).astype(np.float32 if t == "f32" else np.float64)
    x[1::2, ::7] = rng.choice(SPECIAL, x[1::2, ::7].shape)
    if nans:
        x[::3, 5::11] = np.nan
    return x


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("order", ORDERS)
def test_rows_without_nans(t: str, order: str) -> None:
    module = heron.parse(program(t, ORDERS[order].replace("T[]", f"{t}[]")))
    made = compile(module, "cpu")
    assert "radix" in made.kernels[-1].notes["form"] and "NaNs" in made.kernels[-1].notes["form"]
    x = values(t, nans=False)
    assert [a.tobytes() for a in made(x)] == [np.asarray(a).tobytes() for a in heron.evaluate(module, x)]


@pytest.mark.parametrize("order", ORDERS)
def test_rows_with_nans_are_what_the_comparator_makes_of_them(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = program("f32", ORDERS[order].replace("T[]", "f32[]"))
    x = values("f32", nans=True)
    sorted_ = compile(heron.parse(text), "cpu")(x)
    monkeypatch.setattr(cpu_radix, "is_worth", lambda sort, keys: False)
    merging = compile(heron.parse(text), "cpu")
    assert merging.kernels[-1].notes["form"].startswith("merge")
    assert [a.tobytes() for a in sorted_] == [a.tobytes() for a in merging(x)]


def test_partial_keys_are_only_found_where_they_are_asked_for() -> None:
    sort = next(i for i in heron.parse(program("f32", TWO_KEYS)).instructions() if i.opcode == "sort")
    assert keys_of(sort.to_apply) is None
    found = keys_of(sort.to_apply, partial=True)
    assert found is not None and [(k.partial, k.descending) for k in found] == [(True, False), (False, True)]


def test_narrow_floats_in_the_partial_order_are_merged() -> None:
    made = compile(heron.parse(program("f16", ASCENDING)), "cpu")
    assert made.kernels[-1].notes["form"].startswith("merge")
