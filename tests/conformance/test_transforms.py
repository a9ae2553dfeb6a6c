"""fft, cholesky, triangular-solve and batch normalisation against XLA:CPU."""

from __future__ import annotations

from itertools import product

import numpy as np

from heron.hlo.ir.types import by_name
from tests.conformance.case import Case, Closeness
from tests.conformance.runner import expect_agreement
from tests.conformance.tables import of_type

#: for values around 1 that went through a few dozen operations
NEAR = {
    "f16": Closeness(ulps=8, floor=8e-3, zeros=False),
    "bf16": Closeness(ulps=8, floor=6e-2, zeros=False),
    "f32": Closeness(ulps=32, floor=2e-5, zeros=False),
    "c64": Closeness(ulps=32, floor=2e-5, zeros=False),
    "f64": Closeness(ulps=64, floor=5e-14, zeros=False),
    "c128": Closeness(ulps=64, floor=5e-14, zeros=False),
}


def _case(op: str, t: str, body: str, arrays: list[np.ndarray] | None, label: str) -> Case:
    typed = None if arrays is None else [a.astype(by_name(t).dtype) for a in arrays]
    return Case(op, t, of_type(body, t), typed, label, close=NEAR[t])


# -- fft -------------------------------------------------------------------------------------------------------------
def _fft(kind: str, lengths: tuple[int, ...], batch: tuple[int, ...], wide: bool) -> Case:
    real, complex_ = ("f64", "c128") if wide else ("f32", "c64")
    half = (*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0)
    types = {
        "FFT": (complex_, complex_),
        "IFFT": (complex_, complex_),
        "RFFT": (real, complex_),
        "IRFFT": (complex_, real),
    }
    dims = {"FFT": (lengths, lengths), "IFFT": (lengths, lengths), "RFFT": (lengths, half), "IRFFT": (half, lengths)}
    (a, b), (x, y) = types[kind], [",".join(map(str, (*batch, *d))) for d in dims[kind]]
    words = ",".join(map(str, lengths))
    body = f" p = {a}[{x}] parameter(0)\n ROOT r = {b}[{y}] fft(p), fft_type={kind}, fft_length={{{words}}}"
    return Case("fft", b, body, label=f"{kind} {words} of {[*batch]}", close=NEAR[b])


LENGTHS = ((8,), (7,), (1,), (2,), (30,), (4, 6), (5, 3), (3, 1), (2, 3, 4), (3, 4, 5), (0,))


def fft_cases() -> list[Case]:
    cases = [
        _fft(kind, lengths, (), wide)
        for kind, lengths, wide in product(("FFT", "IFFT", "RFFT", "IRFFT"), LENGTHS, (False, True))
    ]
    cases += [_fft(kind, (5,), (2, 3), False) for kind in ("FFT", "IFFT", "RFFT", "IRFFT")]
    return cases + [_fft("FFT", (4,), (0,), False)]


def test_fft() -> None:
    expect_agreement(fft_cases())


# -- cholesky --------------------------------------------------------------------------------------------------------
def _definite(batch: tuple[int, ...], n: int, t: str) -> np.ndarray:
    random = np.random.default_rng(n)
    a = random.normal(size=(*batch, n, n))
    if t.startswith("c"):
        a = a + 1j * random.normal(size=a.shape)
    return a @ np.swapaxes(a, -1, -2).conj() + np.eye(n) * n


def _triangle(lower: str) -> str:
    """The named triangle of the factor; the other one is unspecified."""
    keep = "GE" if lower == "true" else "LE"
    return f""" f = T[SHAPE] cholesky(p), lower={lower}
 i = s32[SHAPE] iota(), iota_dimension=ROW
 j = s32[SHAPE] iota(), iota_dimension=COLUMN
 inside = pred[SHAPE] compare(i, j), direction={keep}
 z = T[] constant(0)
 zeros = T[SHAPE] broadcast(z), dimensions={{}}
 ROOT r = T[SHAPE] select(inside, f, zeros)"""


def cholesky_cases() -> list[Case]:
    cases = []
    for t, lower, dims in product(
        ("f32", "f64", "c64", "c128"), ("true", "false"), ((3, 3), (1, 1), (2, 5, 5), (2, 1, 4, 4))
    ):
        shape = ",".join(map(str, dims))
        body = f" p = T[{shape}] parameter(0)\n" + _triangle(lower).replace("SHAPE", shape)
        body = body.replace("ROW", str(len(dims) - 2)).replace("COLUMN", str(len(dims) - 1))
        arrays = [_definite(dims[:-2], dims[-1], t)]
        cases.append(_case("cholesky", t, body, arrays, f"{shape}, lower={lower}"))
        if dims[-1] == 5:  # only the named triangle is read, and one bad matrix leaves the others alone
            other = np.triu if lower == "true" else np.tril
            spoilt = arrays[0] + other(np.full(dims, 1000.0), 1 if lower == "true" else -1)
            cases.append(_case("cholesky", t, body, [spoilt], f"one triangle, lower={lower}"))
            bad = arrays[0].copy()
            bad[1, 3, 3] = -1
            cases.append(_case("cholesky", t, body, [bad], f"not positive definite, lower={lower}"))
    return cases


def test_cholesky() -> None:
    expect_agreement(cholesky_cases())


# -- triangular-solve ------------------------------------------------------------------------------------------------
def solve_cases() -> list[Case]:
    random = np.random.default_rng(0)
    cases = []
    choices = product(("true", "false"), repeat=3)
    for (left, lower, unit), transpose, t in product(
        choices, ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"), ("f32", "f64", "c64", "c128")
    ):
        a = random.normal(size=(2, 4, 4)) + 1j * random.normal(size=(2, 4, 4)) * t.startswith("c")
        a = a if t.startswith("c") else a.real
        a = a / 4 + (np.eye(4) * 2 if unit == "false" else 0)
        dims = (2, 4, 3) if left == "true" else (2, 3, 4)
        b = random.normal(size=dims)
        shape = ",".join(map(str, dims))
        body = f""" p = T[2,4,4] parameter(0)
 q = T[{shape}] parameter(1)
 ROOT r = T[{shape}] triangular-solve(p, q), left_side={left}, lower={lower}, unit_diagonal={unit},
   transpose_a={transpose}"""
        label = f"left={left} lower={lower} unit={unit} {transpose}"
        cases.append(_case("triangular-solve", t, body, [a, b], label))
    for n, m in ((1, 1), (3, 0), (0, 2)):
        body = f""" p = T[{n},{n}] parameter(0)
 q = T[{n},{m}] parameter(1)
 ROOT r = T[{n},{m}] triangular-solve(p, q), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"""
        cases.append(_case("triangular-solve", "f32", body, [np.eye(n) * 2, np.ones((n, m))], f"{n} by {m}"))
    singular = np.array([[1.0, 0], [2, 0]])
    body = """ p = T[2,2] parameter(0)
 q = T[2,1] parameter(1)
 ROOT r = T[2,1] triangular-solve(p, q), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"""
    cases.append(_case("triangular-solve", "f32", body, [singular, np.array([[1.0], [5]])], "singular"))
    return cases


def test_triangular_solve() -> None:
    expect_agreement(solve_cases())


# -- batch normalisation ---------------------------------------------------------------------------------------------
NORMS = ((4, 3), 1), ((3, 4), 0), ((2, 4, 4, 3), 3), ((2, 3, 4, 5), 1), ((5,), 0), ((1, 1, 2), 2)


def norm_cases() -> list[Case]:
    random = np.random.default_rng(0)
    cases = []
    for (dims, feature), t in product(NORMS, ("f32", "f16", "bf16", "f64")):
        x, g = random.normal(size=dims), random.normal(size=dims)
        scale, offset, mean = random.normal(size=(3, dims[feature]))
        variance = random.uniform(0.5, 2, dims[feature])
        s, f = ",".join(map(str, dims)), dims[feature]
        attributes = f"epsilon=0.125, feature_index={feature}"
        vectors = "".join(f" v{n} = T[{f}] parameter({n + 1})\n" for n in range(4))
        p = f" p = T[{s}] parameter(0)\n{vectors}"
        training = p.replace(f" v2 = T[{f}] parameter(3)\n v3 = T[{f}] parameter(4)\n", "")
        training += f" ROOT r = (T[{s}], T[{f}], T[{f}]) batch-norm-training(p, v0, v1), {attributes}"
        inference = p + f" ROOT r = T[{s}] batch-norm-inference(p, v0, v1, v2, v3), {attributes}"
        grad = p.replace(f"v3 = T[{f}]", f"g = T[{s}]")
        grad += f" ROOT r = (T[{s}], T[{f}], T[{f}]) batch-norm-grad(p, v0, v1, v2, g), {attributes}"
        label = f"{s} over all but {feature}"
        cases.append(_case("batch-norm-training", t, training, [x, scale, offset], label))
        cases.append(_case("batch-norm-inference", t, inference, [x, scale, offset, mean, variance], label))
        cases.append(_case("batch-norm-grad", t, grad, [x, scale, mean, variance, g], label))
    return cases


def test_batch_norm() -> None:
    expect_agreement(norm_cases())
