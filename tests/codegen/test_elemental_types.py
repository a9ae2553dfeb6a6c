"""Every elementwise op on every type, with special values, against the evaluator. One kernel a type and family."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest

from heron.hlo.ir import types
from heron.hlo.ir.types import ElementType
from tests.codegen.run_kernel import compare, evaluate, root_fusion, run_instruction, run_instruction_sim
from tests.codegen.test_elemental_indexing import source

INTEGERS = ["s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
TINY = ["f8e4m3fn", "f8e5m2", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2fnuz", "f8e3m4", "f8e4m3"]
ARITHMETIC = ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"]
BITS = ["and", "or", "xor", "shift-left", "shift-right-logical", "shift-right-arithmetic"]
#: types whose tests run on the simulated GPU as well
ON_GPU = frozenset({"pred", "s4", "u8", "s32", "u64", "bf16", "f32", "f64", "f8e4m3fn", "c64"})
EXACT_UNARY = ["negate", "abs", "sign", "ceil", "floor", "round-nearest-afz", "round-nearest-even", "sqrt"]


def specials(t: ElementType) -> np.ndarray:
    """Corner cases and a few ordinary values of a type."""
    if t is types.PRED:
        return np.array([False, True])
    if t.is_complex:
        parts = np.array([0.0, -0.0, 1.0, -2.5, 3e3, np.inf, np.nan, 1e-3])
        return np.array([complex(a, b) for a in parts for b in parts]).astype(t.dtype)
    if t.is_integer:
        low, high = (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.is_signed else (0, (1 << t.bits) - 1)
        wanted = [0, 1, 2, 3, 5, 7, 8, 15, 31, 32, 63, 64, 100, -1, -2, -3, -7, low, low + 1, high, high - 1]
        wanted += [
            16842753,
            -16842753,
            16842752,
            16908289,
            0x0101_0000_0000_0001,
            0x0101_0000_0000_0000,
        ]  # bf16's halves
        return (
            np.array([v for v in wanted if low <= v <= high], dtype=object)
            .astype(np.int64 if t.is_signed else np.uint64)
            .astype(t.dtype)
        )
    wanted = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, 0.1, -7.3, 100.0, 239.0, 60000.0, -129.0, 1e-3]
    wanted += [1e-7, 3e9, -3e9, 1e30, np.inf, -np.inf, np.nan]
    wanted += [-94.65625000000001, -15.250000000000002, 15.25, 53248.00000000001] if t is types.F64 else []
    wanted += [6e-8, 3e-5, 5.9e-5] if t is types.F16 else []
    with np.errstate(over="ignore"):
        return np.array(wanted).astype(t.dtype)


def pairs(t: ElementType) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of special values."""
    values = specials(t)
    n = len(values)
    return np.repeat(values, n), np.tile(values, n)


def fusion_text(t: str, n: int, parameters: int, lines: list[tuple[str, str]]) -> str:
    """A fusion of `parameters` arrays `t[n]` with one output a line; a line is (result type, expression on p0 …)."""
    body = [f"  p{k} = {t}[{n}]{{0}} parameter({k})" for k in range(parameters)]
    body += [f"  r{k} = {r}[{n}]{{0}} {expression}" for k, (r, expression) in enumerate(lines)]
    shapes = ", ".join(f"{r}[{n}]{{0}}" for r, _ in lines)
    results = ", ".join(f"r{k}" for k in range(len(lines)))
    entry = [f"  p{k} = {t}[{n}]{{0}} parameter({k})" for k in range(parameters)]
    args = ", ".join(f"p{k}" for k in range(parameters))
    return "\n".join(
        [
            "HloModule m",
            "f {",
            *body,
            f"  ROOT t = ({shapes}) tuple({results})",
            "}",
            "ENTRY e {",
            *entry,
            f"  ROOT r = ({shapes}) fusion({args}), kind=kLoop, calls=f",
            "}",
            "",
        ]
    )  # noqa: E501


def check_lines(
    t: str,
    inputs: Sequence[np.ndarray],
    lines: list[tuple[str, str]],
    rtol: float = 0.0,
    atol: float = 0.0,
) -> None:
    """One fusion with these outputs, on the CPU and (small types aside) on the simulated GPU."""
    root = root_fusion(fusion_text(t, len(inputs[0]), len(inputs), lines))
    want = evaluate(root, inputs)
    report(lines, inputs, run_instruction(root, inputs, parts=2), want, rtol, atol)
    if t in ON_GPU:
        report(lines, inputs, run_instruction_sim(root, inputs), want, rtol, atol)


def report(
    lines: list[tuple[str, str]],
    inputs: Sequence[np.ndarray],
    got: list[np.ndarray],
    want: list[np.ndarray],
    rtol: float,
    atol: float,
) -> None:
    """Fail with the cases of every output that differs."""
    wrong = []
    for (_, expression), g, w in zip(lines, got, want, strict=True):
        try:
            compare(g, w, rtol, atol)
        except AssertionError as error:
            with np.errstate(all="ignore"):
                same = ((g == w) & (np.signbit(np.real(g)) == np.signbit(np.real(w)))) | ((g != g) & (w != w))
            at = np.flatnonzero(~same)[:4]
            cases = [f"{[str(x[k]) for x in inputs]}: got {g[k]} want {w[k]}" for k in at]
            wrong.append(f"{expression}: {cases or str(error)[:300]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("t", INTEGERS)
def test_integer_binary(t: str) -> None:
    ops = [*ARITHMETIC, *BITS, "power"] + (["mulhi"] if types.by_name(t).bits >= 8 else [])
    compares = [("pred", f"compare(p0, p1), direction={d}") for d in ("EQ", "NE", "LT", "LE", "GT", "GE")]
    check_lines(t, pairs(types.by_name(t)), [(t, f"{op}(p0, p1)") for op in ops] + compares)


@pytest.mark.parametrize("t", INTEGERS)
def test_integer_unary(t: str) -> None:
    ops = ["sign", "not", "popcnt", "count-leading-zeros", "negate"] + (["abs"] if t[0] == "s" else [])
    check_lines(t, [specials(types.by_name(t))], [(t, f"{op}(p0)") for op in ops])


@pytest.mark.parametrize("t", [*FLOATS, *TINY[:2]])
def test_float_binary(t: str) -> None:
    compares = [("pred", f"compare(p0, p1), direction={d}") for d in ("EQ", "NE", "LT", "LE", "GT", "GE")]
    totals = [(r, f"{c}, type=TOTALORDER") for r, c in compares]
    check_lines(t, pairs(types.by_name(t)), [(t, f"{op}(p0, p1)") for op in ARITHMETIC] + compares + totals)


@pytest.mark.parametrize("t", ["f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e3m4"])
def test_total_order(t: str) -> None:
    lines = [("pred", f"compare(p0, p1), direction={d}, type=TOTALORDER") for d in ("EQ", "LT", "GE")]
    check_lines(t, pairs(types.by_name(t)), lines)


@pytest.mark.parametrize("t", [*FLOATS, *TINY[:2]])
def test_float_unary(t: str) -> None:
    ops = EXACT_UNARY if t in FLOATS else ["negate", "abs", "sign", "floor"]
    lines = [(t, f"{op}(p0)") for op in ops] + [("pred", "is-finite(p0)")]
    formats = ((5, 10), (4, 3), (8, 7), (5, 2))
    lines += [(t, f"reduce-precision(p0), exponent_bits={a}, mantissa_bits={b}") for a, b in formats]
    check_lines(t, [specials(types.by_name(t))], lines)


def test_pred() -> None:
    ops = ["and", "or", "xor", "add", "multiply", "maximum", "minimum"]
    compares = [("pred", f"compare(p0, p1), direction={d}") for d in ("EQ", "NE", "LT", "LE", "GT", "GE")]
    check_lines("pred", pairs(types.PRED), [("pred", f"{op}(p0, p1)") for op in ops] + compares + [("pred", "not(p0)")])


ALL = ["pred", *INTEGERS, *FLOATS, *TINY]


@pytest.mark.parametrize("t", [*ALL, "c64", "c128"])
def test_convert(t: str) -> None:
    targets = [r for r in [*ALL, "c64", "c128"] if r != t]
    check_lines(t, [specials(types.by_name(t))], [(r, "convert(p0)") for r in targets])


@pytest.mark.parametrize(
    "a, b", [("f32", "s32"), ("f64", "u64"), ("bf16", "u16"), ("f16", "bf16"), ("u8", "s8"), ("f8e5m2", "u8")]
)  # noqa: E501
def test_bitcast_convert(a: str, b: str) -> None:
    values = specials(types.by_name(a))
    check_lines(a, [values], [(b, "bitcast-convert(p0)")])


@pytest.mark.parametrize("t", ["f32", "bf16", "s32", "u8", "f64", "s4"])
def test_select_and_clamp(t: str) -> None:
    a, b = pairs(types.by_name(t))
    lines = [(t, "clamp(p0, p1, p2)"), (t, "clamp(p1, p0, p1)")]
    check_lines(t, [a, b, np.roll(a, 5)], lines)


@pytest.mark.parametrize("t", ["c64", "c128"])
def test_complex(t: str) -> None:
    part = "f32" if t == "c64" else "f64"
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=200) + 1j * rng.normal(size=200) for _ in range(2))
    inputs = [a.astype(types.by_name(t).dtype), b.astype(types.by_name(t).dtype)]
    lines = [(t, f"{op}(p0, p1)") for op in ("add", "subtract", "multiply", "divide")]
    lines += [(t, f"{op}(p0)") for op in ("negate", "sign", "sqrt")]
    lines += [(part, f"{op}(p0)") for op in ("abs", "real", "imag")]
    lines += [("pred", "compare(p0, p1), direction=EQ"), ("pred", "compare(p0, p0), direction=NE")]
    check_lines(t, inputs, lines, rtol=2e-6 if t == "c64" else 1e-14, atol=1e-6 if t == "c64" else 1e-14)


@pytest.mark.parametrize("t", FLOATS)
def test_transcendental(t: str) -> None:
    unary = [
        "cbrt",
        "cosine",
        "erf",
        "exponential",
        "exponential-minus-one",
        "log",
        "log-plus-one",
        "logistic",
        "rsqrt",
        "sine",
        "sinh",
        "cosh",
        "tan",
        "tanh",
        "asin",
        "acos",
        "asinh",
        "acosh",
        "atan",
        "atanh",
    ]  # noqa: E501
    values = np.concatenate([np.linspace(-8, 8, 401), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-4, 30.0, -30.0]])
    tolerance = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 1e-6, "f64": 1e-13}[t]
    lines = [(t, f"{op}(p0)") for op in unary]
    check_lines(t, [values.astype(types.by_name(t).dtype)], lines, tolerance, tolerance / 100)


@pytest.mark.parametrize("t", ["f32", "f64", "bf16"])
def test_power_and_atan2(t: str) -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 7.1, np.inf, -np.inf, np.nan])
    values = values.astype(types.by_name(t).dtype)
    tolerance = {"bf16": 1.6e-2, "f32": 2e-6, "f64": 1e-13}[t]
    inputs = [np.repeat(values, len(values)), np.tile(values, len(values))]
    check_lines(t, inputs, [(t, "power(p0, p1)"), (t, "atan2(p0, p1)")], tolerance)


@pytest.mark.parametrize("op", ["negate", "tanh", "exponential", "sqrt", "cosine"])
def test_every_bf16_nan_stays_one(op: str) -> None:
    """Computed bf16 is rounded without a test for NaN: no input may show it."""
    values = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    root = root_fusion(source([f"bf16[{1 << 16}]"], f"ROOT r = bf16[{1 << 16}] {op}(p0)"))
    (got,) = run_instruction(root, [values])
    (want,) = evaluate(root, [values])
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), np.isnan(want.astype(np.float32)))


def test_a_bf16_nan_from_f32_stays_one() -> None:
    values = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0x7FC00000], np.uint32).view(np.float32)
    root = root_fusion(source(["f32[4]"], "ROOT r = bf16[4] convert(p0)"))
    assert np.isnan(run_instruction(root, [values])[0].astype(np.float32)).all()
