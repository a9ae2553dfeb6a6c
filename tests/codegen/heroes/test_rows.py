"""The rows emitter on the CPU against the evaluator: normalisations of several shapes and types, and what is none."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from heron import targets
from heron.codegen.emit import emit_fusion
from tests.codegen.run_kernel import check, root_fusion

RNG = np.random.default_rng(8)
DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}


def softmax(
    t: str,
    dims: str,
    kept: str,
    by: str,
    over: str,
    extra: str = "",
    root: str = "ROOT d = S divide(e, u)",
    result: str = "S",
) -> str:
    body = f"""
  x = S parameter(0)
  low = {t}[] constant(-inf)
  zero = {t}[] constant(0)
  m = K reduce(x, low), dimensions={{{over}}}, to_apply=largest
  w = S broadcast(m), dimensions={{{by}}}
  s = S subtract(x, w)
  e = S exponential(s)
  t = K reduce(e, zero), dimensions={{{over}}}, to_apply=sum
  u = S broadcast(t), dimensions={{{by}}}
  {extra}
  {root}"""
    text = f"""HloModule m
sum {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] add(a, b) }}
largest {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] maximum(a, b) }}
f {{ {body} }}
ENTRY e {{ x = S parameter(0) ROOT r = {result} fusion(x), kind=kLoop, calls=f }}"""
    return text.replace(" S ", f" {t}[{dims}] ").replace(" K ", f" {t}[{kept}] ").replace("(S", f"({t}[{dims}]")


SHAPES = [((5, 64), 1), ((3, 4, 130), 2), ((2, 3, 9, 11), 2), ((1, 100), 1), ((1, 7, 1, 80), 3)]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(("shape", "kept"), SHAPES)
@pytest.mark.parametrize("t", DTYPES)
def test_softmax(t: str, shape: tuple[int, ...], kept: int, parts: int) -> None:
    dims, rows = (",".join(map(str, d)) for d in (shape, shape[:kept]))
    by, over = (",".join(map(str, d)) for d in (range(kept), range(kept, len(shape))))
    source = softmax(t, dims, rows, by, over)
    assert emit_fusion(root_fusion(source), "k", targets.get("cpu")).emitter == "rows"
    check(source, [RNG.normal(size=shape).astype(DTYPES[t])], rtol=3e-2 if t == "bf16" else 1e-5, parts=parts)


def test_outputs_along_the_row_and_once_a_row() -> None:
    """log-sum-exp beside it, in front of it, and the shifted row."""
    extra = "l = K log(t)\n  g = K add(m, l)\n  d = S divide(e, u)"
    result = "(f32[6], f32[6,70], f32[6,70], f32[6])"
    source = softmax("f32", "6,70", "6", "0", "1", extra, f"ROOT r = {result} tuple(g, d, s, m)", result)
    assert emit_fusion(root_fusion(source), "k", targets.get("cpu")).emitter == "rows"
    check(source, [RNG.normal(size=(6, 70)).astype(np.float32)], rtol=1e-5, parts=2)


def test_what_is_read_at_other_rows_is_not_done_by_rows() -> None:
    """The reversed rows' sums, and in a square the sums of the columns' numbers."""
    for spread in ("v = f32[80] reverse(t), dimensions={0}\n  y = f32[80,80] broadcast(v), dimensions={0}",
                   "y = f32[80,80] broadcast(t), dimensions={1}"):  # fmt: skip
        source = softmax("f32", "80,80", "80", "0", "1", spread, "ROOT d = S divide(e, y)")
        assert emit_fusion(root_fusion(source), "k", targets.get("cpu")).emitter != "rows"


def test_elsewhere_each_element_is_done_by_itself() -> None:
    source = softmax("f32", "3,64", "3", "0", "1")
    kernel = emit_fusion(root_fusion(source), "k", targets.get("sm_90"))
    assert kernel.emitter == "loop" and "CPU" in kernel.notes["reason"]
