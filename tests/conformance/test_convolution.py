"""convolution against XLA:CPU: dimension numbers, windows, groups, types."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from tests.conformance.case import Case
from tests.conformance.runner import expect_agreement
from tests.conformance.tables import SUMS, of_type, table


def _line(attributes: str, result: str, x: str = "2,3,7", k: str = "4,3,3", labels: str = "bf0_oi0->bf0") -> str:
    """A convolution over one spatial dimension."""
    return (
        f" p = T[{x}] parameter(0)\n k = T[{k}] parameter(1)\n"
        f" ROOT r = T[{result}] convolution(p, k), {attributes}, dim_labels={labels}"
    )


WINDOWS = {
    "plain": _line("window={size=3}", "2,4,5"),
    "stride": _line("window={size=3 stride=2}", "2,4,3"),
    "padding": _line("window={size=3 pad=2_1}", "2,4,8"),
    "negative padding": _line("window={size=3 pad=-1_-2}", "2,4,2"),
    "padding of both signs": _line("window={size=3 pad=-2_4 stride=2}", "2,4,4"),
    "more padding than elements": _line("window={size=3 pad=9_0 stride=3}", "2,4,5"),
    "input dilation": _line("window={size=3 pad=1_1 lhs_dilate=3}", "2,4,19"),
    "input dilation cut into": _line("window={size=3 pad=-2_-1 lhs_dilate=3}", "2,4,14"),
    "window dilation": _line("window={size=3 rhs_dilate=3}", "2,4,1"),
    "reversal": _line("window={size=3 rhs_reversal=1}", "2,4,5"),
    "all of these": _line("window={size=3 stride=2 pad=-1_3 lhs_dilate=2 rhs_dilate=2 rhs_reversal=1}", "2,4,6"),
    "window larger than the input": _line("window={size=3}", "2,4,0", x="2,3,2"),
    "window of one": _line("window={size=1}", "2,4,7", k="4,3,1"),
    "no features": _line("window={size=3}", "2,4,5", x="2,0,7", k="4,0,3"),
    "no batch": _line("window={size=3}", "0,4,5", x="0,3,7"),
    "no outputs": _line("window={size=3}", "2,0,5", k="0,3,3"),
    "feature groups": _line("window={size=3}, feature_group_count=3", "2,6,5", x="2,6,7", k="6,2,3"),
    "depthwise": _line("window={size=3}, feature_group_count=3", "2,6,5", k="6,1,3"),
    "batch groups": _line("window={size=3}, batch_group_count=2", "2,6,5", x="4,3,7", k="6,3,3"),
    "batch groups, features last": _line(
        "window={size=3}, batch_group_count=2", "5,2,6", x="7,4,3", k="3,3,6", labels="0bf_0io->0bf"
    ),
    "feature groups, features first": _line(
        "window={size=3 rhs_reversal=1}, feature_group_count=2", "4,5,2", x="4,7,2", k="2,3,4", labels="f0b_i0o->f0b"
    ),
}

RANKS = {
    "no spatial dimension": """ p = T[2,3] parameter(0)
 k = T[3,4] parameter(1)
 ROOT r = T[2,4] convolution(p, k), dim_labels=bf_io->bf""",
    "no spatial dimension, groups": """ p = T[2,6] parameter(0)
 k = T[3,4] parameter(1)
 ROOT r = T[2,4] convolution(p, k), dim_labels=bf_io->bf, feature_group_count=2""",
    "two": """ p = T[2,3,7,6] parameter(0)
 k = T[4,3,3,2] parameter(1)
 ROOT r = T[2,4,7,9] convolution(p, k), dim_labels=bf01_oi01->bf01,
   window={size=3x2 stride=2x1 pad=2_3x-1_2 lhs_dilate=2x2 rhs_dilate=2x3 rhs_reversal=1x0}""",
    "two, exchanged": """ p = T[6,2,3,7] parameter(0)
 k = T[3,2,4,3] parameter(1)
 ROOT r = T[5,5,2,4] convolution(p, k), dim_labels=1bf0_i1o0->01bf, window={size=3x2}""",
    "three": """ p = T[2,4,5,4,3] parameter(0)
 k = T[2,3,2,3,4] parameter(1)
 ROOT r = T[2,5,3,2,4] convolution(p, k), dim_labels=b012f_012io->b012f,
   window={size=2x3x2 stride=1x1x2 pad=1_1x0_0x1_0 rhs_reversal=0x1x0}""",
    "four": """ p = T[2,3,3,2,3,2] parameter(0)
 k = T[2,2,1,2,2,3] parameter(1)
 ROOT r = T[2,2,2,2,2,3] convolution(p, k), dim_labels=b0123f_0123io->b0123f, window={size=2x2x1x2}""",
}

MIXED = {
    "narrow integers": ("s8", "s8", "s32"),
    "unsigned": ("u8", "u8", "u32"),
    "widened floats": ("bf16", "bf16", "f32"),
    "of two types": ("bf16", "f32", "f32"),
    "of integers, in floats": ("s8", "s8", "f32"),
}


def _orders() -> dict[str, str]:
    """Every order of the dimensions of input, kernel and output."""
    sizes = {"b": 2, "f": 3, "0": 5, "i": 3, "o": 4}
    out = {"b": 2, "f": 4, "0": 4}
    inputs, kernels = ["".join(p) for p in permutations("bf0")], ["".join(p) for p in permutations("oi0")]
    bodies = {}
    for n, a in enumerate(inputs):
        for m, k in enumerate(kernels):
            o = inputs[(n + m) % len(inputs)]
            x = ",".join(str(sizes[c]) for c in a)
            kernel = ",".join("2" if c == "0" else str(sizes[c]) for c in k)
            labels = f"{a}_{k}->{o}"
            bodies[labels] = _line("window={size=2}", ",".join(str(out[c]) for c in o), x, kernel, labels)
    return bodies


def convolution_cases() -> list[Case]:
    cases = table("convolution", "f32 bf16 f64 s32 c64", WINDOWS, close=SUMS)
    cases += table("convolution", "f32 f16 s32 c128", RANKS, close=SUMS)
    cases += table("convolution", "f32", _orders(), close=SUMS)
    for label, (x, k, r) in MIXED.items():
        body = (
            f" p = {x}[2,3,7] parameter(0)\n k = {k}[4,3,3] parameter(1)\n"
            f" ROOT r = {r}[2,4,7] convolution(p, k), window={{size=3 pad=1_1}}, dim_labels=bf0_oi0->bf0"
        )
        cases += table("convolution", r, {label: body}, close=SUMS)
    return cases


def hole_cases() -> list[Case]:
    """Padding and holes are zeros, so an infinite kernel element makes NaN of them."""
    x, k = np.arange(1, 5), np.array([np.inf, 1, 2])
    cases = []
    for window, n in (("size=3 pad=1_1", 4), ("size=3 lhs_dilate=2", 5), ("size=3 pad=1_1 rhs_dilate=2", 2)):
        body = _line(f"window={{{window}}}", f"1,1,{n}", "1,1,4", "1,1,3")
        for t, dtype in (("f32", np.float32), ("f64", np.float64)):
            arrays = [x.reshape(1, 1, 4).astype(dtype), k.reshape(1, 1, 3).astype(dtype)]
            cases.append(Case("convolution", t, of_type(body, t), arrays, f"infinity over holes, {window}"))
    return cases


def test_convolution() -> None:
    expect_agreement(convolution_cases() + hole_cases())


def test_integers_wrap() -> None:
    x = np.array([[[2**31 - 1, -(2**31), 77777, 2**30, -3]]], np.int32)
    k = np.array([[[2**31 - 1, 3, -(2**31)]]], np.int32)
    body = _line("window={size=3}", "1,1,3", "1,1,5", "1,1,3")
    expect_agreement([Case("convolution", "s32", of_type(body, "s32"), [x, k], "beyond the type")])
