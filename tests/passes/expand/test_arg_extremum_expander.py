"""Places of extrema along rows are the same, found in two steps: ties, NaN, infinities, signed zeros, least integers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext

RNG = np.random.default_rng(5)
DTYPES = {
    "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16,
    "s32": np.int32, "u32": np.uint32, "s8": np.int8, "s64": np.int64,
}  # fmt: skip


def least(t: str, largest: bool) -> str:
    """The value that any other one is ahead of."""
    if DTYPES[t] in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        return "-inf" if largest else "inf"
    info = np.iinfo(DTYPES[t])
    return str(info.min if largest else info.max)


def module_of(
    t: str, rows: int, row: int, largest: bool = True, place: str = "s32", x: str = "x", d: int = 1
) -> Module:
    direction = "GT" if largest else "LT"
    ahead = f"m = pred[] compare(v, w), direction={direction}"
    if t[0] != "s" and t[0] != "u":
        ahead = f"m0 = pred[] compare(v, w), direction={direction} nan = pred[] compare(v, v), direction=NE"
        ahead += " m = pred[] or(m0, nan)"
    dims, kept = f"[{rows},{row}]", [rows, row][1 - d]
    return parse(f"""HloModule m
arg {{ v = {t}[] parameter(0) n = {place}[] parameter(1) w = {t}[] parameter(2) k = {place}[] parameter(3)
  {ahead} a = {t}[] select(m, v, w) q = pred[] compare(v, w), direction=EQ b = pred[] compare(n, k), direction=LT
  c = pred[] and(q, b) e = pred[] or(m, c) i = {place}[] select(e, n, k) ROOT r = ({t}[], {place}[]) tuple(a, i) }}
ENTRY e {{ x = {t}{dims} parameter(0) it = {place}{dims} iota(), iota_dimension={d}
  low = {t}[] constant({least(t, largest)}) zero = {place}[] constant(0)
  {"" if x == "x" else f"y = {t}{dims} {x}"}
  ROOT r = ({t}[{kept}], {place}[{kept}]) reduce({"x" if x == "x" else "y"}, it, low, zero), dimensions={{{d}}}, to_apply=arg }}""")


def expands(module: Module) -> bool:
    changed = PassContext().run_pass(registry.get("arg-extremum-expander"), module)
    verify(module)
    return changed


def array(t: str, shape: tuple[int, int]) -> np.ndarray:
    """Few values, so that there are ties, and rows of one value each."""
    x = RNG.integers(0, 5, shape).astype(DTYPES[t])
    if x.dtype.kind not in "iu":
        some = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -2.5], DTYPES[t])
        x[::3] = some[RNG.integers(0, 7, x[::3].shape)]
        x[1::3] = some[RNG.integers(1, 7, x[1::3].shape)]
        x[:3] = some[:3, None]
    else:
        info = np.iinfo(x.dtype)
        x[0], x[1] = info.min, info.max
    return x


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize(("rows", "row", "place"), [(16, 9, "s32"), (37, 33, "s32"), (19, 200, "s64"), (20, 40, "s8")])
def test_values(t: str, rows: int, row: int, place: str, largest: bool) -> None:
    module = module_of(t, rows, row, largest, place)
    x = array(t, (rows, row))
    value, found = evaluate(module, x)
    got = compile(module).run([x])
    np.testing.assert_array_equal(got[0].astype(np.float64), value.astype(np.float64))
    np.testing.assert_array_equal(got[1], found)
    changed = expands(module)
    assert changed == (row > 32 or x.dtype.itemsize > 2)
    np.testing.assert_array_equal(evaluate(module, x)[1], found)


@pytest.mark.parametrize(
    "module",
    [
        module_of("f32", 16, 8),
        module_of("f32", 15, 40),
        module_of("f32", 40, 40, d=0),
        module_of("f32", 16, 40, x="cosine(x)"),
        module_of("f32", 16, 10_000),
    ],
    ids=["short", "few", "columns", "function", "long"],
)
def test_others_stay(module: Module) -> None:
    assert not expands(module)


def test_computed_elements() -> None:
    module, x = module_of("f32", 64, 40, x="multiply(x, x)"), array("f32", (64, 40))
    want = evaluate(module, x)
    np.testing.assert_array_equal(compile(module).run([x])[1], want[1])
    assert expands(module)
