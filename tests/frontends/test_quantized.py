"""Quantized types: their text, and operations on them against the specification's own formulas in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.frontends.stablehlo.importer import parse
from heron.frontends.stablehlo.quantization import Quantization
from heron.frontends.stablehlo.quantization import parse as quantization

A, B = "!quant.uniform<i8:f32, 0.1:-30>", "!quant.uniform<i8:f32, 0.5:-20>"
AXIS = "!quant.uniform<i8:f32:1, {0.1:-30,0.5:-20,0.25}>"


def quantize(x: np.ndarray, q: Quantization) -> np.ndarray:
    """``quantize`` of the specification, per tensor or per axis."""
    t = q.expressed.dtype
    with np.errstate(all="ignore"):
        scales, zeros = (_spread(np.array(v).astype(t), q, x.ndim) for v in (q.scales, q.zero_points))
        found = np.clip(x / scales + zeros, np.array(q.low).astype(t), np.array(q.high).astype(t))
    return np.rint(found.astype(np.float64)).clip(q.low, q.high).astype(np.int64).astype(q.storage.dtype)


def dequantize(x: np.ndarray, q: Quantization) -> np.ndarray:
    """``dequantize`` of the specification; the difference is taken exactly."""
    zeros = _spread(np.array(q.zero_points), q, x.ndim)
    t = q.expressed.dtype
    with np.errstate(all="ignore"):
        return (x.astype(np.int64) - zeros).astype(t) * _spread(np.array(q.scales).astype(t), q, x.ndim)


def _spread(values: np.ndarray, q: Quantization, rank: int) -> np.ndarray:
    if q.axis is None:
        return values.reshape(())
    return values.reshape(tuple(-1 if d == q.axis else 1 for d in range(rank)))


@pytest.mark.parametrize(
    "text",
    [
        "!quant.uniform<i8:f32, 1.000000e-01:-30>",
        "!quant.uniform<u8:f32, 2.500000e-01:128>",
        "!quant.uniform<i8<-127:127>:f32, 1.000000e-01>",
        "!quant.uniform<i4:bf16:1, {1.000000e-01:-3,5.000000e-01:2}>",
        "!quant.uniform<i32:f64, 1.000000e-05:7>",
    ],
)
def test_the_text_of_a_type(text: str) -> None:
    assert str(quantization(text)) == text
    assert quantization(text.replace("<u8", "<ui8")) == quantization(text)


TYPES = st.builds(
    lambda storage, expressed, scale, zero, narrow: quantization(
        f"!quant.uniform<{storage}{'<-1:1>' if narrow and storage[0] == 'i' else ''}:{expressed}, "
        f"{scale:e}:{(zero % 2) if narrow or storage[0] == 'u' else zero - 1}>"
    ),
    st.sampled_from(["i4", "u4", "i8", "u8", "i16", "u16", "i32"]),
    st.sampled_from(["f32", "f64", "bf16", "f16"]),
    st.sampled_from([0.03125, 0.1, 1.0, 3.0]),
    st.integers(0, 3),
    st.booleans(),
)


@settings(max_examples=40, deadline=None)
@given(TYPES, st.lists(st.floats(-1e4, 1e4, width=16), min_size=3, max_size=3))
def test_there_and_back(q: Quantization, values: list[float]) -> None:
    t = q.expressed.name
    text = f"""func.func @main(%x: tensor<3x{t}>) -> (tensor<3x{q}>, tensor<3x{t}>) {{
  %q = stablehlo.uniform_quantize %x : (tensor<3x{t}>) -> tensor<3x{q}>
  %y = stablehlo.uniform_dequantize %q : (tensor<3x{q}>) -> tensor<3x{t}>
  return %q, %y : tensor<3x{q}>, tensor<3x{t}>
}}"""
    x = np.array(values).astype(q.expressed.dtype)
    integers, numbers = evaluate(parse(text, verify=True), x)
    np.testing.assert_array_equal(integers, quantize(x, q))
    np.testing.assert_array_equal(numbers, dequantize(integers, q))


X = np.array([[3.0, 4.0, 5.0], [1.0, -9.0, 40.0]], np.float32)
QA, QB, QAXIS = map(quantization, (A, B, AXIS))
IA, IB = quantize(X, QA), quantize(X[::-1], QB)
FA, FB = dequantize(IA, QA), dequantize(IB, QB)
KIND = "tensor<2x3x{}>"

#: operations on ``%a: 2x3xA``, ``%b: 2x3xB`` and ``%x: 2x3xf32``, the type of the result, and its integers
OPERATIONS: dict[str, tuple[str, np.ndarray]] = {
    f"stablehlo.add %a, %b : (tensor<2x3x{A}>, tensor<2x3x{B}>) -> tensor<2x3x{B}>": (
        f"2x3x{B}",
        quantize(FA + FB, QB),
    ),
    f"stablehlo.tanh %a : tensor<2x3x{A}>": (f"2x3x{A}", quantize(np.tanh(FA), QA)),
    f"stablehlo.compare LT, %a, %b : (tensor<2x3x{A}>, tensor<2x3x{B}>) -> tensor<2x3xi1>": ("2x3xi1", FA < FB),
    f"stablehlo.uniform_quantize %a : (tensor<2x3x{A}>) -> tensor<2x3x{B}>": (f"2x3x{B}", quantize(FA, QB)),
    f"stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x{AXIS}>": (f"2x3x{AXIS}", quantize(X, QAXIS)),
    f"stablehlo.bitcast_convert %a : (tensor<2x3x{A}>) -> tensor<2x3xi8>": ("2x3xi8", IA),
    f"stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3x{A}>) -> tensor<3x2x{A}>": (f"3x2x{A}", IA.T),
    f"stablehlo.constant() <{{value = dense<[1, -2]> : tensor<2xi8>}}> : () -> tensor<2x{A}>": (
        f"2x{A}",
        np.array([1, -2], np.int8),
    ),
    f"stablehlo.concatenate %a, %a, dim = 0 : (tensor<2x3x{A}>, tensor<2x3x{A}>) -> tensor<4x3x{A}>": (
        f"4x3x{A}",
        np.concatenate([IA, IA]),
    ),
    f"stablehlo.concatenate %a, %b, dim = 0 : (tensor<2x3x{A}>, tensor<2x3x{B}>) -> tensor<4x3x{B}>": (
        f"4x3x{B}",
        quantize(np.concatenate([FA, FB]), QB),
    ),
    f"stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<2x3x{A}>, tensor<2x3x{B}>) -> "
    f"tensor<2x2x{B}>": (f"2x2x{B}", quantize(FA @ FB.T, QB)),
    f"stablehlo.dot_general %x, %b, contracting_dims = [1] x [1] : (tensor<2x3xf32>, tensor<2x3x{B}>) -> "
    "tensor<2x2xf32>": ("2x2xf32", X @ FB.T),
    f"stablehlo.iota dim = 1 : tensor<2x3x{B}>": (f"2x3x{B}", quantize(np.float32([[0, 1, 2]] * 2), QB)),
    f"stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3x{A}>, tensor<{A}>) "
    f"-> tensor<2x{A}>": (f"2x{A}", np.maximum(IA.max(1), quantize(np.float32(0), QA))),
    f"func.call @twice(%a) : (tensor<2x3x{A}>) -> tensor<2x3x{A}>": (f"2x3x{A}", quantize(FA + FA, QA)),
}


def _program(operations: list[str]) -> str:
    lines = [f"  %o{n} = {text}" for n, text in enumerate(operations)]
    names = ", ".join(f"%o{n}" for n in range(len(operations)))
    kinds = ", ".join(f"tensor<{OPERATIONS[o][0]}>" for o in operations)
    return f"""func.func @main(%a: tensor<2x3x{A}>, %b: tensor<2x3x{B}>, %x: tensor<2x3xf32>) -> ({kinds}) {{
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.uniform_quantize %f : (tensor<f32>) -> tensor<{A}>
{chr(10).join(lines)}
  return {names} : {kinds}
}}
func.func private @twice(%a: tensor<2x3x{A}>) -> tensor<2x3x{A}> {{
  %o = stablehlo.add %a, %a : tensor<2x3x{A}>
  return %o : tensor<2x3x{A}>
}}"""


def _near(found: Any, wanted: np.ndarray) -> None:
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=0)


def test_operations() -> None:
    found = evaluate(parse(_program(list(OPERATIONS)), verify=True), IA, IB, X)
    for one, (_, wanted) in zip(found, OPERATIONS.values(), strict=True):
        _near(one, wanted)


def test_compiled() -> None:
    module = parse(_program(list(OPERATIONS)), verify=True)
    for one, (_, wanted) in zip(heron.compile(module)(IA, IB, X), OPERATIONS.values(), strict=True):
        _near(one, wanted)


def test_a_loop_knows_what_its_values_stand_for() -> None:
    text = f"""func.func @main(%a: tensor<{A}>) -> tensor<{A}> {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %b = stablehlo.add %a, %a : tensor<{A}>
  %o:2 = stablehlo.while(%n = %z, %x = %a) : tensor<i32>, tensor<{A}>
  cond {{
    %c = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %m = stablehlo.add %n, %one : tensor<i32>
    %y = stablehlo.add %x, %b : tensor<{A}>
    stablehlo.return %m, %y : tensor<i32>, tensor<{A}>
  }}
  return %o#1 : tensor<{A}>
}}"""
    (found,) = evaluate(parse(text, verify=True), quantize(np.float32(0.5), QA))
    assert found == quantize(np.float32(3.5), QA)


@pytest.mark.parametrize(
    ("kind", "code", "says"),
    [
        ("!quant.uniform<i8:f32, -0.1>", "SHLO004", "above zero"),
        ("!quant.uniform<i8:f32, 0.1:200>", "SHLO004", "outside the range"),
        ("!quant.uniform<i8<-200:127>:f32, 0.1>", "SHLO004", "exceeds that of the storage type"),
        ("!quant.uniform<i8:f32:0, {0.1,0.2,0.3}>", "SHLO004", "has 2 elements"),
        ("!quant.uniform<i8:f32:3, {0.1}>", "SHLO004", "is none"),
        ("!quant.uniform<i64:f32, 0.1>", "SHLO005", "'i64'"),
        ("!quant.uniform<i8:i32, 0.1>", "SHLO005", "'i32'"),
        ("!quant.uniform<i8:f32, {0.1}>", "SHLO001", "scales"),
        ("!quant.uniform<i8:f32:{0:1}, {{0.1}}>", "SHLO005", "blocks"),
        ("!quant.any<i8:f32>", "SHLO001", "not a quantized type"),
        ("!quant.uniform<i8:bf16, 0.1>", "SHLO004", "quantizes f32"),
    ],
)
def test_errors(kind: str, code: str, says: str) -> None:
    text = f"""func.func @main(%x: tensor<2xf32>) -> tensor<2x{kind}> {{
  %q = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x{kind}>
  return %q : tensor<2x{kind}>
}}"""
    with pytest.raises(HeronError) as caught:
        parse(text)
    assert caught.value.code == code
    assert says in str(caught.value)
    assert caught.value.where is not None
