"""Eigenvalues of any matrix, condensed forms and pivoted QR: called from the program, whatever order matrices lie in."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import heron
from heron.errors import HeronError
from heron.evaluator import evaluate

TYPES = {
    "s": ("f32", "f32", "c64"),
    "d": ("f64", "f64", "c128"),
    "c": ("c64", "f32", "c64"),
    "z": ("c128", "f64", "c128"),
}
CLOSE = {"s": 2e-4, "c": 2e-4, "d": 1e-11, "z": 1e-11}
DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128, "s32": np.int32}
#: routine, its options, its operands and its results; T: the matrix's type, R: its real type, C: its complex type,
#: V: the values, which are two arrays of real numbers where the matrix is real
CALLS = {
    "vectors": ("geev", "{}", "T[n,n]", "V C[n,n] C[n,n] s32[]"),
    "right": ("geev", "{compute_left = 78 : ui8, compute_right = 86 : ui8}", "T[n,n]", "V C[n,n] C[n,n] s32[]"),
    "values": ("geev", "{compute_left = 78 : ui8, compute_right = 78 : ui8}", "T[n,n]", "V C[n,n] C[n,n] s32[]"),
    "schur": ("gees", "{mode = 86 : ui8, sort = 78 : ui8}", "T[n,n]", "T[n,n] T[n,n] V s32[] s32[]"),
    "form": ("gees", "{mode = 78 : ui8, sort = 78 : ui8}", "T[n,n]", "T[n,n] T[n,n] V s32[] s32[]"),
    "hessenberg": ("gehrd", "{low = 1 : i32, high = n : i32}", "T[n,n]", "T[n,n] T[n-1] s32[]"),
    "tridiagonal": ("?trd", "{uplo = 76 : ui8}", "T[n,n]", "T[n,n] R[n] R[n-1] T[n-1] s32[]"),
    "tridiagonal upper": ("?trd", "{uplo = 85 : ui8}", "T[n,n]", "T[n,n] R[n] R[n-1] T[n-1] s32[]"),
    "pivoted": ("geqp3", "{}", "T[m,n] s32[n]", "T[m,n] s32[n] T[n]"),
    "pivoted wide": ("geqp3", "{}", "T[n,m] s32[m]", "T[n,m] s32[m] T[n]"),
    "left": ("?mqr", "{left = true, transpose = false}", "T[m,n] T[n] T[m,k]", "T[m,k]"),
    "adjoint": ("?mqr", "{left = true, transpose = true}", "T[m,n] T[n] T[m,k]", "T[m,k]"),
    "from the right": ("?mqr", "{left = false, transpose = true}", "T[m,n] T[n] T[k,m]", "T[k,m]"),
}


def shape(text: str, kind: str, n: int, by_columns: bool) -> str:
    """A shape of `CALLS` with a batch of two in front, matrices by columns or by rows."""
    element, dims = text.rstrip("]").split("[")
    whole, real, wide = TYPES[kind]
    sizes = {"n": n, "n-1": n - 1, "m": n + 3, "k": 2}
    found = ["2", *(str(sizes[d]) for d in dims.split(",") if d)]
    order = "1,2,0" if by_columns else "2,1,0"
    layout = {1: "0", 2: "1,0", 3: order}[len(found)]
    return f"{({'T': whole, 'R': real, 'C': wide}).get(element, element)}[{','.join(found)}]{{{layout}}}"


def program(case: str, kind: str, n: int, given: bool, made: bool) -> str:
    """A call of the routine: operands by columns (`given`) or by rows, and results (`made`)."""
    routine, options, operands, results = CALLS[case]
    letters = {"?trd": "hetrd", "?mqr": "unmqr"} if kind in "cz" else {"?trd": "sytrd", "?mqr": "ormqr"}
    values = "T[n]" if kind in "cz" else "T[n] T[n]"
    ins = [shape(t, kind, n, given) for t in operands.split()]
    outs = [shape(t, kind, n, made) for t in results.replace("V", values).split()]
    whole = f"({', '.join(outs)})" if len(outs) > 1 else outs[0]
    lines = [f"  p{k} = {s} parameter({k})" for k, s in enumerate(ins)]
    names = ", ".join(f"p{k}" for k in range(len(ins)))
    target = f"lapack_{kind}{letters.get(routine, routine)}_ffi"
    call = f'custom-call({names}), custom_call_target="{target}", operand_layout_constraints={{{", ".join(ins)}}}'
    more = f'api_version=API_VERSION_TYPED_FFI, backend_config="{options.replace("n :", f"{n} :")}"'
    return "\n".join(["HloModule m\nENTRY e {", *lines, f"  ROOT r = {whole} {call}, {more}", "}"])


def inputs(case: str, kind: str, n: int) -> list[np.ndarray]:
    rng, made = np.random.default_rng(n), []
    for text in CALLS[case][2].split():
        element, dims = shape(text, kind, n, False).split("{")[0].rstrip("]").split("[")
        size = [int(d) for d in dims.split(",")]
        x = rng.standard_normal(size) + (1j * rng.standard_normal(size) if element[0] == "c" else 0)
        made.append(np.zeros(size, np.int32) if element == "s32" else x.astype(DTYPES[element]))
    a = made[0]
    if case.startswith("tridiagonal") or a.shape[-1] == a.shape[-2]:
        a[0] = a[0] + a[0].T.conj()  # its values are real; the other matrix of real numbers has pairs of them
    if case.startswith("tridiagonal"):
        a[1] = a[1] + a[1].T.conj()
    if "mqr" in CALLS[case][0]:  # reflectors are the adjoint of their inverse
        lengths = 1 + np.sum(np.abs(np.tril(a, -1)) ** 2, axis=-2)
        made[1] = (2 / lengths).astype(a.dtype)
    return made


@pytest.mark.parametrize("kind", "sdcz")
@pytest.mark.parametrize("n", [2, 7, 37])
@pytest.mark.parametrize("case", CALLS)
def test_the_call_does_what_the_evaluator_does(case: str, n: int, kind: str) -> None:
    arrays = inputs(case, kind, n)
    for given, made in itertools.product((True, False), repeat=2):
        module = heron.parse(program(case, kind, n, given, made))
        compiled = heron.compile(module, "cpu")
        assert "evaluator" not in str(compiled.stage("thunks"))
        wanted = evaluate(heron.parse(program(case, kind, n, given, made)), *arrays)
        for x, y in zip(compiled.run(arrays), wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=CLOSE[kind] * max(1.0, float(np.abs(y).max())))


@pytest.mark.parametrize("case", ["vectors", "schur", "hessenberg", "tridiagonal"])
def test_a_single_row_goes_to_the_evaluator_where_lapack_takes_no_empty_array(case: str) -> None:
    arrays = inputs(case, "d", 1)
    text = program(case, "d", 1, True, True)
    found = heron.compile(heron.parse(text), "cpu").run(arrays)
    for x, y in zip(found, evaluate(heron.parse(text), *arrays), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)


@pytest.mark.parametrize("kind", "dc")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_has_no_eigenvalues(
    kind: str, bad: float, capfd: pytest.CaptureFixture[str]
) -> None:
    """LAPACK says so on the terminal, after it has read where there is nothing; the other matrix has them."""
    arrays = inputs("vectors", kind, 7)
    arrays[0][1, 2, 3] = bad
    text = program("vectors", kind, 7, True, True)
    *found, info = heron.compile(heron.parse(text), "cpu").run(arrays)
    *wanted, other = evaluate(heron.parse(text), *arrays)
    assert info.tolist() == other.tolist() == [0, -4]
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=CLOSE[kind] * np.abs(y).max())
        assert not x[1].any()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", "dc")
@pytest.mark.parametrize("case", ["pivoted", "pivoted wide"])
@pytest.mark.parametrize("firsts", [(1, 4), (0,), (0, 1, 2, 3, 4, 5, 6), (3, 5, 6)])
def test_columns_that_come_first(case: str, kind: str, firsts: tuple[int, ...]) -> None:
    a, pivots = inputs(case, kind, 7)
    pivots[1, list(firsts)] = 1
    text = program(case, kind, 7, True, True)
    found = heron.compile(heron.parse(text), "cpu").run([a, pivots])
    for x, y in zip(found, evaluate(heron.parse(text), a, pivots), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=CLOSE[kind] * max(1.0, float(np.abs(y).max())))
    assert set(found[1][1, : len(firsts)]) == {n + 1 for n in firsts}


@pytest.mark.parametrize(("low", "high"), [(0, 7), (3, 8), (5, 4), (9, 2)])
def test_rows_that_a_matrix_has_not_are_refused(low: int, high: int) -> None:
    text = (
        program("hessenberg", "d", 7, True, True)
        .replace("low = 1", f"low = {low}")
        .replace("high = 7", f"high = {high}")
    )
    for run in (lambda m: heron.compile(m, "cpu"), lambda m: evaluate(m, *inputs("hessenberg", "d", 7))):
        with pytest.raises(HeronError, match=f"no rows {low} to {high}") as found:
            run(heron.parse(text))
        assert found.value.code == "HLO172"
