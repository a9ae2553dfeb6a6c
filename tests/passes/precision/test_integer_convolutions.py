"""integer-convolution-upcaster: the largest sums there can be are exact, and wrap as integers do."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get


def _text(x: str, k: str, t: str, features: int) -> str:
    return f"""HloModule m
ENTRY main {{
  x = {x}[2,6,{features}] parameter(0)
  k = {k}[3,{features},4] parameter(1)
  ROOT r = {t}[2,6,4] convolution(x, k), window={{size=3 pad=1_1}}, dim_labels=b0f_0io->b0f
}}"""


@pytest.mark.parametrize("end", [np.min, np.max])
@pytest.mark.parametrize(
    ("types", "features", "wide"),
    [
        ("s8 s8 s32", 16, "f32"),
        ("s8 s8 s32", 341, "f32"),
        ("s8 s8 s32", 342, "f64"),
        ("u8 s8 s32", 200, "f64"),
        ("s8 s8 s8", 16, "f32"),
        ("u8 u8 u16", 33, "f32"),
        ("s16 s16 s32", 7, "f64"),
        ("s16 u16 s64", 7, "f64"),
        ("s4 s8 s32", 5, "f32"),
        ("s32 s8 s32", 5, "f64"),
    ],
)
def test_sums_of_the_largest_values(types: str, features: int, wide: str, end: object) -> None:
    x, k, t = types.split()
    module = heron.parse(_text(x, k, t, features))
    inputs = []
    for p in module.entry.parameters:
        e = p.shape.element_type
        low, high = (-(1 << (e.bits - 1)), (1 << (e.bits - 1)) - 1) if e.is_signed else (0, (1 << e.bits) - 1)
        a = np.full(p.shape.dims, low if end is np.min else high, np.int64)
        a.flat[::7] = high
        inputs.append(a.astype(e.dtype))
    wanted = heron.evaluate(module, *inputs)[0]
    np.testing.assert_array_equal(heron.compile(module, "cpu")(*inputs), wanted)
    assert PassContext().run_pass(get("integer-convolution-upcaster"), module)
    (made,) = [i for i in module.entry.instructions if i.opcode == "convolution"]
    assert made.shape.element_type.name == wide
    np.testing.assert_array_equal(heron.evaluate(module, *inputs)[0], wanted)


@pytest.mark.parametrize("types", ["s32 s32 s32", "s64 s8 s32", "f32 f32 s32", "pred pred s32", "s8 s8 f32"])
def test_others_stay(types: str) -> None:
    x, k, t = types.split()
    module = heron.parse(_text(x, k, t, 4))
    assert not PassContext().run_pass(get("integer-convolution-upcaster"), module)
