"""Every math function of the inline library is within 2 ULP, special values included, and loops over it vectorise."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from heron.codegen.llvm.inline import remainder
from heron.codegen.llvm.jit import host
from tests.codegen.llvm import loops

L = np.longdouble
pytestmark = pytest.mark.skipif(np.finfo(L).nmant < 60, reason="the reference needs an 80-bit long double")


def erf(x: np.ndarray) -> np.ndarray:
    """2/√π·e^(-x²)·Σ 2^n x^(2n+1)/(2n+1)!!: all terms of one sign, so exact to long double's precision."""
    a = np.minimum(np.abs(x), L(7))
    term, total = a.copy(), a.copy()
    for n in range(1, 220):
        term = term * (2 * a * a) / L(2 * n + 1)
        total = total + term
    value = total * np.exp(-a * a) * L(2) / np.sqrt(np.arccos(L(-1)))
    return np.copysign(np.where(np.isnan(x), x, np.minimum(value, L(1))), x)


FUNCTIONS = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "cbrt": np.cbrt, "rsqrt": lambda x: 1 / np.sqrt(x), "erf": erf, "pow": np.power,
    "atan2": np.arctan2,
}  # fmt: skip
RANGES = {"exp": (-110, 90), "log": (0, 4), "log1p": (-1, 3), "atanh": (-1, 1), "asin": (-1, 1), "acos": (-1, 1),
          "acosh": (1, 4)}  # fmt: skip


def samples(dtype: type, low: float, high: float, seed: int, count: int = 20_000) -> np.ndarray:
    """The usual range, the whole range of bits and of magnitudes, and the values where functions go wrong."""
    rng, info = np.random.default_rng(seed), np.finfo(dtype)
    words = {np.float32: np.uint32, np.float64: np.uint64}[dtype]
    bits = rng.integers(0, np.iinfo(words).max, count, dtype=words, endpoint=True).view(dtype)
    sign = rng.choice([-1.0, 1.0], count)
    magnitudes = np.exp(rng.uniform(np.log(float(info.tiny)), np.log(float(info.max)) * 0.99, count)) * sign
    near = np.exp(rng.uniform(-20, 3, count)) * sign
    special = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, info.tiny, -info.tiny, info.tiny / 4, info.max, -info.max,
               0.5, -0.5, 2, -2, 1 + info.eps, 1 - info.epsneg, -1 - info.eps, -1 + info.epsneg, 3, -3, 9]  # fmt: skip
    parts = (special, rng.uniform(low, high, count), bits, magnitudes, near)
    return np.concatenate([np.asarray(part).astype(dtype) for part in parts])


def ulps(got: np.ndarray, exact: np.ndarray, dtype: type) -> np.ndarray:
    """Distance in units of the last place of the exact value; huge for a wrong NaN, infinity or sign of zero."""
    info = np.finfo(dtype)
    near = exact.astype(dtype)
    exponent = np.frexp(np.abs(exact))[1]
    unit = np.ldexp(L(1), np.maximum(exponent - 1 - info.nmant, info.minexp - info.nmant))
    distance = np.abs(got.astype(L) - exact) / unit
    infinite = np.isinf(got) | np.isinf(near)
    almost = np.abs(np.where(np.isinf(got), near, got)) == info.max
    distance = np.where(infinite, np.where((got == near) | almost, 0, 1e9), distance)
    distance = np.where(np.isnan(near), np.where(np.isnan(got), 0, 1e9), np.where(np.isnan(got), 1e9, distance))
    wrong_zero = (near == 0) & (got == 0) & (np.signbit(near) != np.signbit(got))
    return np.where(wrong_zero, 1e8, distance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_at_most_two_ulps(function: str, dtype: type) -> None:
    low, high = RANGES.get(function, (-12, 12))
    arrays = [samples(dtype, low, high, 1)]
    if function in ("pow", "atan2"):
        second = np.random.default_rng(2).permutation(samples(dtype, low, high, 3))
        grid = np.meshgrid(arrays[0][:23], arrays[0][:23])
        arrays = [np.concatenate([a, g.ravel()]) for a, g in zip([arrays[0], second], grid, strict=True)]
    name = f"heron.{function}.{'f32' if dtype is np.float32 else 'f64'}"
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[function](*[a.astype(L) for a in arrays])
        got = loops.run(name, *arrays)
        error = ulps(got, exact, dtype)
    worst = int(np.argmax(error))
    inputs = [a[worst] for a in arrays]
    assert error[worst] <= 2.0, f"{name}{inputs} = {got[worst]!r}, exactly {exact[worst]!r}: {error[worst]} ULP"


@pytest.mark.skipif(host().width < 512, reason="needs AVX-512")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", ["exp", "exp2", "pow"])
def test_one_instruction_scales_to_the_same_bits(function: str, dtype: type) -> None:
    """Denormal results, too, down to the last one and to zero, and those that are infinite."""
    ends = {np.float32: (-152, 130), np.float64: (-1077, 1026)}[dtype]
    x = np.concatenate([samples(dtype, -12, 12, 1), samples(dtype, *ends, 2), np.linspace(*ends, 20_011).astype(dtype)])
    arrays = [x] if function != "pow" else [np.full_like(x, 2.0009765625), x]
    name = f"heron.{function}.{'f32' if dtype is np.float32 else 'f64'}"
    text = loops.loop_text(name, "f", scales=True)
    assert function == "pow" or "vscalef" in loops.JIT.asm(text)  # pow of f32 scales in integers
    np.testing.assert_array_equal(loops.run(name, *arrays, scales=True), loops.run(name, *arrays))


def test_remainders_are_exact() -> None:
    """Also of quotients of 277 bits, and of dividends just below a multiple of the divisor."""
    rng = np.random.default_rng(4)
    x, y = samples(np.float32, -50, 50, 1), rng.permutation(samples(np.float32, -8, 8, 3))
    with np.errstate(all="ignore"):
        multiples = np.nextafter((rng.integers(1, 5000, x.size) * y).astype(np.float32), np.float32(0))
    grid = np.meshgrid(x[:23], x[:23])
    x, y = np.concatenate([x, multiples, grid[0].ravel()]), np.concatenate([y, y, grid[1].ravel()])
    with np.errstate(all="ignore"):
        assert_exact(x, y, loops.run("heron.fmod.f32", x, y))
        least = remainder.NEAR["f32"][0]
        near = ~(abs(y) < least)  # infinities and NaN, too
        x, y = x[near], y[near]
        assert_exact(x, y, loops.run("heron.fmod_near.f32", x, y))
        ends = np.repeat(np.array([least, -least, 3 * least, 3e38], np.float32), x.size)
        assert_exact(np.tile(x, 4), ends, loops.run("heron.fmod_near.f32", np.tile(x, 4), ends))


@pytest.mark.parametrize(
    "divisor", [*remainder.NEAR["f64"], -0.1, 1 / 3, 2 * np.pi, 11.884864324004713, 360.0, 1023.999]
)
def test_remainders_of_f64_by_a_number_are_exact(divisor: float) -> None:
    """Of any bits, of multiples of the divisor, and of numbers next to those."""
    rng = np.random.default_rng(5)
    any_ = rng.integers(0, 1 << 64, 5000, np.uint64).view(np.float64)
    multiples = rng.integers(-(1 << 40), 1 << 40, 2000) * divisor
    x = np.concatenate(
        [samples(np.float64, -50, 50, 1), any_, multiples, np.nextafter(multiples, 0), [divisor, -divisor]]
    )
    y = np.full_like(x, divisor)
    with np.errstate(all="ignore"):
        assert_exact(x, y, loops.run("heron.fmod_near.f64", x, y))


def assert_exact(x: np.ndarray, y: np.ndarray, got: np.ndarray) -> None:
    exact = np.fmod(x, y)
    bits = np.uint32 if x.dtype == np.float32 else np.uint64
    same = (exact.view(bits) == got.view(bits)) | np.isnan(exact) & np.isnan(got)
    assert same.all(), list(zip(x[~same][:5], y[~same][:5], got[~same][:5], strict=True))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86 assembly")
@pytest.mark.parametrize(
    "name",
    [
        "exp.f32",
        "tanh.f32",
        "log.f64",
        "sin.f32",
        "pow.f32",
        "erf.f32",
        "atan2.f64",
        "fmod.f32",
        "fmod_near.f32",
        "fmod_near.f64",
    ],
)
def test_loops_vectorise(name: str) -> None:
    text = loops.loop_text(f"heron.{name}", "f")
    assert "vector.body" in loops.JIT.optimized(text)
    assembly = loops.JIT.asm(text)
    assert "zmm" in assembly or "ymm" in assembly or "xmm" in assembly
    assert "call" not in assembly


@pytest.mark.parametrize("bits", [8, 32, 64])
def test_integer_power(bits: int) -> None:
    dtype = np.dtype(f"i{bits // 8}")
    base, exponent = (g.ravel().astype(dtype) for g in np.meshgrid(range(-7, 8), range(-3, 12)))
    got = loops.run(f"heron.ipow.i{bits}", base, exponent)
    for x, n, y in zip(base.tolist(), exponent.tolist(), got.tolist(), strict=True):
        exact = x**n if n >= 0 else {1: 1, -1: (-1) ** n}.get(x, 0)
        assert np.array(int(exact) & ((1 << bits) - 1), f"u{bits // 8}").astype(dtype) == y
