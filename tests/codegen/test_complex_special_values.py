"""Complex functions at zeros of either sign, infinities, NaNs, poles, tiny and huge parts: kernels and evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.run_kernel import emit_and_run, evaluate, root_fusion

PARTS = np.array([0.0, -0.0, 1, -1, 0.5, -2.5, 3, 1e-3, 1e-20, 1e20, 3e4, 2e5, 3e9, np.inf, -np.inf, np.nan, -700, 80])
FUNCTIONS = (
    "log", "log-plus-one", "sqrt", "rsqrt", "tanh", "exponential", "exponential-minus-one", "sine", "cosine", "tan",
    "sinh", "cosh", "asin", "acos", "atan", "atanh", "asinh", "acosh", "sign",
)  # fmt: skip

WIDE = """HloModule m
ENTRY e { y = c128[4] parameter(0) x = c128[4] parameter(1) ROOT r = c128[4] atan2(y, x) }"""


def kinds(x: np.ndarray) -> np.ndarray:
    """0 for numbers, ±1 for zeros by their sign, ±2 for infinities, 3 for NaN."""
    sign = np.where(np.signbit(x), -1, 1)
    return np.where(np.isnan(x), 3, np.where(np.isinf(x), 2 * sign, np.where(x == 0, sign, 0)))


def ends(dtype: type) -> list[float]:
    """The smallest numbers, denormals, and the largest."""
    info = np.finfo(dtype)
    least, most = float(info.smallest_subnormal), float(info.max)
    return [least, -3 * least, float(info.tiny), 1.0, most, -most / 2]


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("at", ["special", "ends"])
@pytest.mark.parametrize(("type_", "dtype", "tolerance"), [("c64", np.complex64, 2e-6), ("c128", np.complex128, 1e-14)])
def test_special_values(type_: str, dtype: type, tolerance: float, at: str, target: str) -> None:
    values = PARTS if at == "special" else ends(dtype)
    z = np.array([complex(a, b) for a in values for b in values], dtype)
    for name in FUNCTIONS:
        source = f"HloModule m\nENTRY e {{ z = {type_}[{z.size}] parameter(0) ROOT r = {type_}[{z.size}] {name}(z) }}"
        root = root_fusion(source)
        (got,), _ = emit_and_run(root, [z], target)
        (want,) = evaluate(root, [z])
        finite = np.isfinite(got) & np.isfinite(want)
        with np.errstate(all="ignore"):
            near = np.abs(got - want) <= tolerance * np.abs(want) + np.finfo(got.real.dtype).tiny
        np.testing.assert_array_equal(near[finite], True, name)
        a, b = (np.stack([kinds(x.real), kinds(x.imag)]) for x in (got, want))
        # the sign of a zero or an infinity beside a NaN is nobody's
        unsigned = (a == 3).any(axis=0) & (b == 3).any(axis=0)
        same = np.where(unsigned, np.abs(a) == np.abs(b), (a == b) | finite & (np.abs(a - b) <= 1))
        wrong = np.flatnonzero(~same.all(axis=0))
        assert not wrong.size, [(name, z[k], got[k], want[k]) for k in wrong[:5]]


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_atan2_of_large_and_small(target: str) -> None:
    """Squares that no f32, and no f64, could hold."""
    for type_, dtype, sizes, tolerance in (
        ("c64", np.complex64, (1e-30, 1.0, 1e30), 2e-6),
        ("c128", np.complex128, (1e-200, 1.0, 1e200), 1e-13),
    ):
        base = np.array([1 + 0.5j, 2 - 0.25j, -0.75 + 0.125j, 3 + 0.5j])
        y = np.concatenate([base * s for s in sizes]).astype(dtype)
        x = np.concatenate([base[::-1] * s for s in sizes]).astype(dtype)
        root = root_fusion(f"""HloModule m
ENTRY e {{ y = {type_}[12] parameter(0) x = {type_}[12] parameter(1) ROOT r = {type_}[12] atan2(y, x) }}""")
        (got,), _ = emit_and_run(root, [y, x], target)
        (want,) = evaluate(root_fusion(WIDE), [base, base[::-1]])
        np.testing.assert_allclose(got, np.tile(want, 3), rtol=tolerance)
