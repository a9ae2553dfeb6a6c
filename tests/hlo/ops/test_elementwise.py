"""Elementwise ops on special values of every type, against XLA:CPU: one program an op, one output a type."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo import types
from heron.hlo.evaluator import evaluate
from heron.hlo.text import parse
from heron.hlo.types import ElementType
from tests import xla_cpu
from tests.hlo.ops.agree import check, program, same

SIGNED, UNSIGNED = ["s4", "s8", "s16", "s32", "s64"], ["u4", "u8", "u16", "u32", "u64"]
INTEGERS = SIGNED + UNSIGNED
FLOATS = ["f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64"]
COMPLEX = ["c64", "c128"]
RTOL = {
    "f8e4m3fn": 0.13,
    "f8e5m2": 0.26,
    "f16": 1e-3,
    "bf16": 8e-3,
    "f32": 1e-6,
    "f64": 1e-13,
    "c64": 2e-6,
    "c128": 1e-12,
}

#: op → types XLA:CPU takes it in
UNARY = {
    "abs": SIGNED + FLOATS + COMPLEX,
    "cbrt": FLOATS,
    "ceil": FLOATS,
    "cosine": FLOATS + COMPLEX,
    "count-leading-zeros": INTEGERS,
    "erf": FLOATS,
    "exponential": FLOATS + COMPLEX,
    "exponential-minus-one": FLOATS + COMPLEX,
    "floor": FLOATS,
    "imag": FLOATS + COMPLEX,
    "is-finite": FLOATS,
    "log": FLOATS + COMPLEX,
    "log-plus-one": FLOATS + COMPLEX,
    "logistic": FLOATS + COMPLEX,
    "negate": INTEGERS + FLOATS + COMPLEX,
    "not": ["pred", *INTEGERS],
    "popcnt": [t for t in INTEGERS if t != "s4"],  # XLA:CPU counts the bits of the byte that holds it
    "real": FLOATS + COMPLEX,
    "round-nearest-afz": FLOATS,
    "round-nearest-even": FLOATS,
    "rsqrt": FLOATS + COMPLEX,
    "sign": SIGNED + FLOATS + COMPLEX,
    "sine": FLOATS + COMPLEX,
    "sqrt": FLOATS + COMPLEX,
    "tan": FLOATS + COMPLEX,
    "tanh": FLOATS + COMPLEX,
}
BINARY = {
    "add": ["pred", *INTEGERS, *FLOATS, *COMPLEX],
    "and": ["pred", *INTEGERS],
    "atan2": FLOATS,
    "complex": ["f32", "f64"],
    "divide": INTEGERS + FLOATS + COMPLEX,
    "maximum": ["pred", *INTEGERS, *FLOATS, *COMPLEX],
    "minimum": ["pred", *INTEGERS, *FLOATS, *COMPLEX],
    "multiply": ["pred", *INTEGERS, *FLOATS, *COMPLEX],
    "or": ["pred", *INTEGERS],
    "power": FLOATS,
    "remainder": INTEGERS + FLOATS,
    "shift-left": INTEGERS,
    "shift-right-arithmetic": INTEGERS,
    "shift-right-logical": INTEGERS,
    "subtract": INTEGERS + FLOATS + COMPLEX,
    "xor": ["pred", *INTEGERS],
}
_SPECIAL = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 3.25, -7.75, 10, 100, -100, 1e-3]


def special(t: ElementType) -> np.ndarray:
    """Values where ops go wrong: zeros, ends of the range, halves, infinities, NaN, shift amounts about the width."""
    if t.kind == "pred":
        return np.array([False, True])
    if t.is_integer:
        low, high = (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.is_signed else (0, (1 << t.bits) - 1)
        values = [low, low + 1, high, high - 1, 0, 1, 2, 3, 5, 7]
        values += [-1, -2, -3, -7] if t.is_signed else []
        values += [t.bits - 1, t.bits, t.bits + 1] if t.bits > 4 else []
        return np.array(values, np.int64 if t.is_signed else np.uint64).astype(t.dtype)
    if t.is_complex:
        real, imaginary = np.meshgrid(_SPECIAL, _SPECIAL[:6])
        return (real + 1j * imaginary).reshape(-1).astype(t.dtype)
    return np.array([*_SPECIAL, np.inf, -np.inf, np.nan], np.float32).astype(t.dtype)


def result_type(opcode: str, t: ElementType) -> str:
    if opcode == "is-finite":
        return "pred"
    if opcode == "complex":
        return "c128" if t.name == "f64" else "c64"
    return t.component.name if opcode in ("abs", "real", "imag") else t.name


def agree(opcode: str, names: list[str], arity: int) -> None:
    lines, arrays, parts = [], [], []
    for n, name in enumerate(names):
        t = types.by_name(name)
        values = special(t)
        if arity == 2:
            a, b = np.meshgrid(np.arange(values.size), np.arange(values.size))
            operands = [values[a.reshape(-1)], values[b.reshape(-1)]]
        else:
            operands = [values]
        dims = f"[{operands[0].size}]"
        for k, x in enumerate(operands):
            lines.append(f" p{n}_{k} = {name}{dims} parameter({len(arrays)})")
            arrays.append(x)
        out = result_type(opcode, t) + dims
        parts.append(out)
        lines.append(f" r{n} = {out} {opcode}({', '.join(f'p{n}_{k}' for k in range(arity))})")
    results = ", ".join(f"r{n}" for n in range(len(names)))
    lines.append(f" ROOT t = ({', '.join(parts)}) tuple({results})")
    text = program("\n".join(lines))
    got, want = evaluate(parse(text), *arrays), xla_cpu.run(text, *arrays)
    for n, name in enumerate(names):
        t = types.of_dtype(got[n].dtype)
        assert got[n].dtype == want[n].dtype
        ok = same(got[n], want[n], t, RTOL.get(name))
        if t.is_float and opcode not in ("maximum", "minimum"):  # the sign of zero counts
            ours, theirs = got[n].astype(np.float64), want[n].astype(np.float64)
            ok &= (np.signbit(ours) == np.signbit(theirs)) | np.isnan(theirs)
        at = int(np.argmin(ok))
        assert ok.all(), (
            f"{name}: {got[n][at]}, XLA has {want[n][at]} for {[a[at] for a in arrays if a.size == ok.size]}"
        )


@pytest.mark.parametrize("opcode", UNARY)
def test_unary(opcode: str) -> None:
    agree(opcode, UNARY[opcode], 1)


@pytest.mark.parametrize("opcode", BINARY)
def test_binary(opcode: str) -> None:
    agree(opcode, BINARY[opcode], 2)


def test_integer_power() -> None:
    values = np.arange(-4, 5, dtype=np.int32)
    a, b = (x.reshape(-1) for x in np.meshgrid(values, np.arange(-3, 12, dtype=np.int32)))
    n = a.size
    body = f" p = s32[{n}] parameter(0)\n q = s32[{n}] parameter(1)\n ROOT r = s32[{n}] power(p, q)"
    check(program(body), a, b)


@pytest.mark.parametrize("order", ["", ", type=TOTALORDER"])
@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
def test_compare(direction: str, order: str) -> None:
    values = "{nan, -nan, inf, -inf, 0, -0.0, 1, -1}"
    check(
        program(
            f" a = f32[8] constant({values})\n x = f32[8,8] broadcast(a), dimensions={{0}}\n"
            " y = f32[8,8] broadcast(a), dimensions={1}\n"
            f" ROOT r = pred[8,8] compare(x, y), direction={direction}{order}"
        )
    )


def test_clamp_and_select_with_nan() -> None:
    check(
        program(
            """ p = f32[4] constant({nan, 5, -5, 0.5})
 l = f32[] constant(0)
 h = f32[] constant(1)
 n = f32[] constant(nan)
 a = f32[4] clamp(l, p, h)
 b = f32[4] clamp(n, p, h)
 c = f32[4] clamp(h, p, l)
 f = pred[4] is-finite(p)
 s = f32[4] select(f, p, a)
 ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(a, b, c, s)"""
        )
    )


def test_mulhi_is_the_upper_half_of_the_product() -> None:
    for name in INTEGERS:
        t = types.by_name(name)
        values = special(t)
        a, b = (x.reshape(-1) for x in np.meshgrid(values, values))
        n = a.size
        body = f" p = {name}[{n}] parameter(0)\n q = {name}[{n}] parameter(1)\n ROOT r = {name}[{n}] mulhi(p, q)"
        (got,) = evaluate(parse(program(body)), a, b)
        want = [int(x) * int(y) >> t.bits for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert [int(v) for v in got] == want
