"""Conversions between all types, and bit-level ones, against XLA:CPU."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo import types
from heron.hlo.evaluator import evaluate
from heron.hlo.text import parse
from tests import xla_cpu
from tests.hlo.ops.agree import check, program

NAMES = "pred s4 u4 s8 u8 s16 s32 s64 u32 u64 f8e4m3fn f8e5m2 f8e4m3b11fnuz f16 bf16 f32 f64".split()
FLOATS = [0, -0.0, 1, -1, 0.5, 1.5, -1.5, 2.5, 100, -100, 127.9, 255.9, 300, -129, 3e9, -3e9, 1e19, -1e19, 65504, 7e4]
FLOATS += [1e-8, np.inf, -np.inf, np.nan]


def source_values(name: str) -> np.ndarray:
    t = types.by_name(name)
    with np.errstate(over="ignore"):
        if t.is_float:
            return np.array(FLOATS).astype(t.dtype)
        low, high = (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.is_signed else (0, (1 << t.bits) - 1)
        values = [0, 1, low, high, high // 2, high // 3] if t.kind != "pred" else [0, 1]
        return np.array(values, np.int64 if t.is_signed else np.uint64).astype(t.dtype)


@pytest.mark.parametrize("source", NAMES)
def test_convert(source: str) -> None:
    values = source_values(source)
    n, targets = values.size, [*NAMES, "c64"]
    lines = [f" r{k} = {to}[{n}] convert(p)" for k, to in enumerate(targets)]
    parts = ", ".join(f"{to}[{n}]" for to in targets)
    results = ", ".join(f"r{k}" for k in range(len(targets)))
    text = program(f" p = {source}[{n}] parameter(0)\n" + "\n".join(lines) + f"\n ROOT t = ({parts}) tuple({results})")
    for to, got, want in zip(targets, evaluate(parse(text), values), xla_cpu.run(text, values), strict=True):
        assert got.dtype == want.dtype, to
        wide = np.complex128 if to == "c64" else np.float64
        ours, theirs = got.astype(wide), want.astype(wide)
        assert np.array_equal(ours, theirs, equal_nan=True), f"{source} to {to}: {got}, XLA has {want}"


BITCASTS = [
    ("f32[3,2]", "f64[3]"),
    ("f64[3]", "f32[3,2]"),
    ("s32[4]", "u8[4,4]"),
    ("u8[2,8]", "u64[2]"),
    ("f32[3]", "s32[3]"),
    ("s4[4]", "u4[4]"),
    ("u8[3]", "s4[3,2]"),
    ("bf16[2]", "u16[2]"),
    ("s4[3,2]", "u8[3]"),
    ("s4[2,4]", "s16[2]"),
]


@pytest.mark.parametrize(("source", "to"), BITCASTS)
def test_bitcast_convert(source: str, to: str) -> None:
    check(program(f" p = {source} parameter(0)\n ROOT r = {to} bitcast-convert(p)"), bits=True)


@pytest.mark.parametrize(("exponent", "mantissa"), [(5, 10), (8, 7), (4, 3), (5, 2), (8, 10), (11, 52), (8, 0), (2, 1)])
def test_reduce_precision(exponent: int, mantissa: int) -> None:
    rounded = f"exponent_bits={exponent}, mantissa_bits={mantissa}"
    lines, parts = [], []
    for n, t in enumerate(("f32", "f64", "f16", "bf16")):
        lines.append(
            f" p{n} = {t}[60] parameter({n})\n c{n} = {t}[8] constant({{nan, inf, -inf, 0, -0.0, 1, 3.1, -2.7}})\n"
            f" d{n} = {t}[68] concatenate(p{n}, c{n}), dimensions={{0}}\n"
            f" r{n} = {t}[68] reduce-precision(d{n}), {rounded}"
        )
        parts.append(f"{t}[68]")
    lines.append(f" ROOT t = ({', '.join(parts)}) tuple(r0, r1, r2, r3)")
    check(program("\n".join(lines)), rtol=0)


def test_stochastic_convert_rounds_up_as_often_as_the_fraction_says() -> None:
    n = 4096
    text = program(
        f" p = f32[{n}] parameter(0)\n u = u32[{n}] parameter(1)\n ROOT r = s32[{n}] stochastic-convert(p, u)"
    )
    random = np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32)
    (up,) = evaluate(parse(text), np.full(n, -2.25, np.float32), random)
    assert set(up.tolist()) == {-2, -3}
    assert abs((up == -3).mean() - 0.25) < 0.03
    (ends,) = evaluate(parse(text), np.resize(np.array([np.nan, np.inf, -np.inf, 5.0], np.float32), n), random)
    assert ends[:4].tolist() == [0, 2**31 - 1, -(2**31), 5]
