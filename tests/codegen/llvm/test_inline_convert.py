"""Float conversions of the inline library agree with ml_dtypes bit for bit (NaN payloads aside)."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from heron.codegen.llvm.types import SMALL_FLOATS
from tests.codegen.llvm import loops

SMALL = dict(SMALL_FLOATS.values())


def same(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    words = f"u{got.dtype.itemsize}"
    equal = got.view(words) == expected.view(words)
    return equal | (np.isnan(got.astype(np.float64)) & np.isnan(expected.astype(np.float64)))


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def floats(dtype: type) -> np.ndarray:
    rng = np.random.default_rng(0)
    every_half = np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16).astype(dtype)
    scaled = np.exp(rng.uniform(-16, 12, 50_000)) * rng.choice([-1, 1], 50_000)
    ties = (rng.integers(-512, 512, 20_000) / 2.0 ** rng.integers(0, 16, 20_000)).astype(dtype)
    return np.concatenate([every_half, scaled.astype(dtype), ties])


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("target", ["f32", "f64", "f16", "bf16"])
def test_widening_is_exact(name: str, target: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[target]
    count = 2 ** ml_dtypes.finfo(SMALL[name]).bits
    values = np.arange(count, dtype=np.uint8)
    expected = values.view(SMALL[name]).astype(np.float32).astype(dtype)
    got = loops.run(f"heron.convert.{name}.{target}", values, dtype=dtype)
    assert same(got, expected).all()


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_narrowing_rounds_to_even(name: str, source: str) -> None:
    values = floats(np.float32 if source == "f32" else np.float64)
    if ml_dtypes.finfo(SMALL[name]).bits < 8:  # they have none, and ml_dtypes gives either zero
        values = values[~np.isnan(values)]
    expected = values.astype(SMALL[name])
    got = loops.run(f"heron.convert.{source}.{name}", values, dtype=np.uint8).view(SMALL[name])
    wrong = ~same(got, expected)
    assert not wrong.any(), (values[wrong][:5], got[wrong][:5], expected[wrong][:5])


def test_bf16_held_in_integers() -> None:
    values = floats(np.float32)
    bits = loops.run("heron.convert.f32.bf16bits", values, dtype=np.uint16)
    assert same(bits.view(ml_dtypes.bfloat16), values.astype(ml_dtypes.bfloat16)).all()
    back = loops.run("heron.convert.bf16bits.f32", bits, dtype=np.float32)
    assert same(back, bits.view(ml_dtypes.bfloat16).astype(np.float32)).all()


@pytest.mark.parametrize(("source", "target"), [("f32", "bf16"), ("f64", "bf16"), ("f64", "f16"), ("f16", "bf16")])
def test_half_formats(source: str, target: str) -> None:
    values = floats({"f32": np.float32, "f64": np.float64, "f16": np.float16}[source])
    dtype = ml_dtypes.bfloat16 if target == "bf16" else np.float16
    expected = values.astype(dtype)
    got = loops.run(f"heron.convert.{source}.{target}", values, dtype=dtype)
    if source == "f64" and target == "bf16":  # ml_dtypes rounds twice, through f32
        close = np.abs(got.astype(np.float64) - values) <= np.abs(expected.astype(np.float64) - values)
        assert (same(got, expected) | close).all()
    else:
        assert same(got, expected).all()
