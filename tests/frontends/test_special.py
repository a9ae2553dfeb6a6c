"""Special functions written out agree with SciPy's, to the precision of their type, corners included."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from scipy import special

from heron.evaluator import evaluate
from heron.frontends.stablehlo.importer import parse

REALS = np.array([-7.5, -3.25, -1.5, -0.7, -1e-3, 1e-4, 0.3, 0.5, 0.9, 1.0, 1.5, 2.0, 3.7, 8.0, 12.5, 40.0])
UNIT = np.array([-1.0, -0.9999, -0.7, -0.1, 0.0, 1e-5, 0.3, 0.5, 0.97, 0.9999999, 1.0])
POSITIVE = REALS[REALS > 0]

UNARY: dict[str, tuple[Callable[..., np.ndarray], np.ndarray]] = {
    "acos": (np.arccos, UNIT),
    "acosh": (np.arccosh, POSITIVE[POSITIVE >= 1]),
    "asin": (np.arcsin, UNIT),
    "asinh": (np.arcsinh, REALS),
    "atan": (np.arctan, REALS),
    "atanh": (np.arctanh, UNIT),
    "bessel_i1e": (special.i1e, REALS),
    "cosh": (np.cosh, REALS),
    "digamma": (special.digamma, REALS),
    "erf": (special.erf, REALS),
    "erf_inv": (special.erfinv, UNIT),
    "erfc": (special.erfc, REALS),
    "lgamma": (special.gammaln, np.append(REALS, [-1.0, -2.0, 0.0, np.inf])),
    "sinh": (np.sinh, REALS),
    "square": (np.square, REALS),
    "tan": (np.tan, REALS),
}
#: f32: the formulas' own error; bf16: that of rounding
TOLERANCE = {"f32": 4e-6, "f64": 4e-12, "bf16": 1e-2}
DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}


def run(name: str, kind: str, *arrays: np.ndarray, result: str = "") -> np.ndarray:
    """`chlo.NAME` on arrays of an MLIR element type."""
    tensor = f"tensor<{arrays[0].size}x{kind}>"
    to = f"tensor<{arrays[0].size}x{result or kind}>"
    names = [f"%a{n}" for n in range(len(arrays))]
    arguments = ", ".join(f"{n}: {tensor}" for n in names)
    types = ", ".join([tensor] * len(arrays))
    line = f"%r = chlo.{name} {', '.join(names)} : {types} -> {to}"
    module = parse(f"func.func @main({arguments}) -> {to} {{\n {line}\n return %r : {to}\n}}", verify=True)
    (value,) = evaluate(module, *arrays)
    return value


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, kind: str) -> None:
    function, points = UNARY[name]
    x = points.astype(DTYPES[kind])
    with np.errstate(all="ignore"):
        want = function(x.astype(np.float64))
    got = run(name, kind, x).astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[kind], atol=TOLERANCE[kind] / 5)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_zeta_and_polygamma(kind: str) -> None:
    x, q = (a.reshape(-1).astype(DTYPES[kind]) for a in np.meshgrid([1.5, 2.0, 3.0, 7.5], [0.2, 1.0, 2.5, 11.0]))
    np.testing.assert_allclose(run("zeta", kind, x, q), special.zeta(x, q), rtol=3e-6 if kind == "f32" else 1e-12)
    n, x = (a.reshape(-1).astype(DTYPES[kind]) for a in np.meshgrid([0, 1, 2, 4], [0.2, 1.0, 2.5, 11.0]))
    want = special.polygamma(n.astype(int), x)
    np.testing.assert_allclose(run("polygamma", kind, n, x), want, rtol=1e-5 if kind == "f32" else 1e-12)
    outside = run("zeta", kind, *(np.array(v, DTYPES[kind]) for v in ([1.0, 0.5, 2.0], [2.0, 2.0, -1.0])))
    assert outside[0] == np.inf and np.isnan(outside[1]) and outside[2] == np.inf


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_next_after(kind: str) -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, np.inf, -np.inf, np.nan, 3.5], DTYPES[kind])
    x, y = (a.reshape(-1) for a in np.meshgrid(values, values))
    np.testing.assert_array_equal(run("next_after", kind, x, y), np.nextafter(x, y))


def test_infinities() -> None:
    x = np.array([1.0, np.inf, -np.inf, np.nan], np.float32)
    assert run("is_inf", "f32", x, result="i1").tolist() == [False, True, True, False]
    assert run("is_pos_inf", "f32", x, result="i1").tolist() == [False, True, False, False]
    assert run("is_neg_inf", "f32", x, result="i1").tolist() == [False, False, True, False]


def test_complex() -> None:
    x = np.array([1 + 2j, -0.5j], np.complex64)
    np.testing.assert_array_equal(run("conj", "complex<f32>", x), x.conj())
    np.testing.assert_allclose(run("square", "complex<f32>", x), x * x)
