"""How accurate the evaluator is: f32, c64 and narrower correctly rounded, f64 within 1.5 ulp, c128 within 4, against
extended precision."""

from __future__ import annotations

import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo.builder import Builder
from heron.hlo.ir import types
from heron.hlo.ir.shape import row_major
from tests.conformance import values
from tests.conformance.case import unit

pytestmark = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is no wider than f64 here")

#: op → the function in extended precision
REAL = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cosh": np.cosh,
    "cosine": np.cos,
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "log": np.log,
    "log-plus-one": np.log1p,
    "logistic": lambda x: np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x))),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sine": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
COMPLEX = {
    "cosine": np.cos,
    "exponential": np.exp,
    "log": np.log,
    "log-plus-one": lambda z: np.log(1 + z),
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "sine": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
TYPES = {"f16": 0.501, "bf16": 0.501, "f32": 0.501, "f64": 1.5}


def errors(opcode: str, name: str, x: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Units in the last place between the evaluator's values and the true ones, where both are finite."""
    t = types.by_name(name)
    b = Builder("accuracy")
    p = b.parameter(0, row_major(t, x.size))
    (got,) = evaluate(b.build(getattr(b, opcode.replace("-", "_"))(p)), x)
    size = np.maximum(np.abs(want.real), np.abs(want.imag))
    limit = float(np.finfo(np.float32 if t.bits <= 32 and t is not types.F16 else np.float64).max)
    if t is types.F16:
        limit = 65504.0
    fine = np.isfinite(want) & (size < limit) & (size > 0)
    assert (np.isnan(got.astype(np.complex128)) == np.isnan(want))[np.isnan(want) | fine].all()
    wide = np.clongdouble if t.is_complex else np.longdouble
    return (np.abs(got[fine].astype(np.complex128 if t.is_complex else np.float64).astype(wide) - want[fine])) / unit(
        size[fine].astype(np.float64), t.component
    )


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("opcode", REAL)
def test_real(opcode: str, name: str) -> None:
    x = np.concatenate([values.corners(name), values.moderate(name, 400), values.scattered(name, 400)])
    with np.errstate(all="ignore"):
        want = np.asarray(REAL[opcode](x.astype(np.float64).astype(np.longdouble)))
        assert float(errors(opcode, name, x, want).max()) <= TYPES[name]


@pytest.mark.parametrize("opcode", COMPLEX)
def test_complex(opcode: str) -> None:
    for name, most in (("c64", 0.71), ("c128", 4.1)):
        x = values.moderate(name, 400)
        with np.errstate(all="ignore"):
            want = np.asarray(COMPLEX[opcode](x.astype(np.clongdouble)))
            assert float(errors(opcode, name, x, want).max()) <= most, name
