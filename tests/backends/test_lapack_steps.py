"""LAPACK's routines called from the program do what those called through Python do, however matrices lie."""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import heron
from heron.backends.calls import lapack_steps
from heron.backends.calls.matrices import batch_of
from heron.buffers.assignment import Slice
from heron.codegen.llvm.jit import Jit
from heron.codegen.native import (
    blas_threads,
    helpers,  # noqa: F401  provides the pool's code
)
from heron.codegen.native.program import ENTRY, ProgramWriter
from heron.errors import HeronError
from heron.hlo.ir.layout import layout
from heron.hlo.ir.shape import Shape, array
from heron.hlo.ir.types import BF16, C64, C128, F32, F64, S32, ElementType
from heron.runtime.cpu.executable import HostCalls
from heron.runtime.cpu.pool import pool
from heron.runtime.host import lapack
from heron.runtime.thunks import LAPACK, LapackThunk

TYPES = [F32, F64, C64, C128]
CLOSE = {F32: 1e-4, C64: 1e-4, F64: 1e-11, C128: 1e-11}


def run(routine: object, shapes: Sequence[Shape], memory: list[np.ndarray], threads: int = 1) -> HostCalls:
    """The steps of a routine as a program; `memory`: each array as it lies, equal ones in one allocation."""
    apart = {m.ctypes.data: n for n, m in enumerate(memory)}
    slices = tuple(Slice(apart[m.ctypes.data], 0, m.nbytes) for m in memory)
    steps = lapack_steps.steps_for(routine, shapes, slices[0] == slices[-1])
    batch = batch_of(shapes)
    strides = tuple(s.byte_size // batch for s in shapes)
    return run_thunk(LapackThunk(steps, slices, strides, batch, LAPACK, "call"), memory, threads)


def run_thunk(thunk: LapackThunk, memory: list[np.ndarray], threads: int = 1) -> HostCalls:
    hosts, workers = HostCalls(), pool(threads)
    if workers is not None:
        workers.start()
    writer = ProgramWriter({}, hosts.address, workers)
    jit = Jit()
    text = writer.write((thunk,))
    jit.symbols |= writer.externals | {name: make(None) for name, make in writer.unmade.items()}
    jit.add(writer.declared.text() + text, "lapack", exports=[ENTRY])
    table = (ctypes.c_void_p * len(memory))(*(m.ctypes.data for m in memory))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(jit.address(ENTRY))(ctypes.addressof(table))
    return hosts


def by_columns(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Minor to major, where matrices lie column after column."""
    rank = len(dims)
    return (rank - 2, rank - 1, *range(rank - 3, -1, -1))


def stored(x: np.ndarray, columns: bool) -> np.ndarray:
    """The bytes of an array as they lie, and so shaped."""
    return np.ascontiguousarray(x.swapaxes(-1, -2) if columns and x.ndim > 1 else x).copy()


def random(rng: np.random.Generator, t: ElementType, *dims: int) -> np.ndarray:
    real = rng.standard_normal(dims)
    return (real + 1j * rng.standard_normal(dims) if t.is_complex else real).astype(t.dtype)


#: routine, dimensions of the arrays (n: real, i: integers), and how many of them are operands
CASES: dict[str, tuple[Callable[..., None], list[tuple[str, tuple[int, ...]]], int]] = {
    "geqrf": (lapack.Geqrf(), [("m", (5, 3)), ("m", (5, 3)), ("v", (3,))], 1),
    "geqrf wide": (lapack.Geqrf(), [("m", (3, 5)), ("m", (3, 5)), ("v", (3,))], 1),
    "syevd": (lapack.Syevd(True, True), [("m", (6, 6)), ("m", (6, 6)), ("r", (6,)), ("i", ())], 1),
    "syevd upper": (lapack.Syevd(False, True), [("m", (6, 6)), ("m", (6, 6)), ("r", (6,)), ("i", ())], 1),
    "syevd values": (lapack.Syevd(True, False), [("m", (6, 6)), ("m", (6, 6)), ("r", (6,)), ("i", ())], 1),
}
for n in (3, 5, 17):  # written out, a loop, a call
    for name, lower in (("lower", True), ("upper", False)):
        CASES[f"potrf {name} {n}"] = lapack.Potrf(lower), [("m", (n, n)), ("m", (n, n)), ("i", ())], 1
        CASES[f"cholesky {name} {n}"] = lapack.Cholesky(lower), [("m", (n, n)), ("m", (n, n))], 1
for m, n in ((3, 3), (2, 4), (5, 3), (33, 7)):
    arrays = [("m", (m, n)), ("m", (m, n)), ("i", (min(m, n),)), ("i", ())]
    CASES[f"getrf {m}x{n}"] = lapack.Getrf(), arrays, 1
for full, (m, n) in itertools.product((True, False), ((5, 3), (3, 5), (20, 2))):
    small = min(m, n)
    for vectors in (True, False):
        u, v = ((m, m), (n, n)) if full else ((m, small), (small, n))
        CASES[f"svd {m}x{n}{' full' * full}{' vectors' * vectors}"] = (
            lapack.Svd(vectors, full),
            [("m", (m, n)), ("m", (m, n)), ("r", (small,)), ("m", u), ("m", v), ("i", ())],
            1,
        )


def shape_of(kind: str, dims: tuple[int, ...], t: ElementType, columns: bool, batch: tuple[int, ...]) -> Shape:
    element = {"m": t, "v": t, "r": t.component, "i": S32}[kind]
    whole = (*batch, *dims)
    order = by_columns(whole) if kind == "m" and columns else tuple(range(len(whole) - 1, -1, -1))
    return array(element, whole, layout(order))


@pytest.mark.parametrize("t", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("case", CASES)
def test_factorisations(case: str, t: ElementType) -> None:
    routine, arrays, operands = CASES[case]
    rng = np.random.default_rng(4)
    batch = (2, 2)
    n = arrays[0][1]
    a = random(rng, t, *batch, *n)
    if n[0] == n[1]:
        a = (a @ a.swapaxes(-1, -2).conj() + 5 * np.eye(n[0])).astype(t.dtype)
    full = [
        a,
        *(np.zeros((*batch, *dims), shape_of(k, dims, t, False, ()).element_type.dtype) for k, dims in arrays[1:]),
    ]
    routine(*full)
    same = [name for name, (_, dims) in enumerate(arrays[1:], 1) if dims == n and case[:3] != "svd"]
    for columns, columns_out, in_place in itertools.product((True, False), repeat=3):
        if in_place and (columns != columns_out or not same):
            continue
        orders = [columns if k == 0 else columns_out for k in range(len(arrays))]
        shapes = [shape_of(kind, dims, t, by, batch) for (kind, dims), by in zip(arrays, orders, strict=True)]
        memory = [stored(a, columns)]
        for (kind, _), out, by in zip(arrays[1:], full[1:], orders[1:], strict=True):
            memory.append(np.full_like(stored(out, by and kind == "m"), 77))
        if in_place:
            memory[1] = memory[0]
        try:
            run(routine, shapes, memory)
        except lapack_steps.Refused:
            assert columns != columns_out and case[:3] in ("pot", "cho")
            continue
        for (kind, _), wanted, found, by in list(zip(arrays, full, memory, orders, strict=True))[operands:]:
            found = found.swapaxes(-1, -2) if by and kind == "m" else found
            scale = max(1.0, float(np.abs(wanted).max()))
            np.testing.assert_allclose(found, wanted, rtol=0, atol=CLOSE[t] * scale, err_msg=f"{orders}")


@pytest.mark.parametrize("t", [F32, C128], ids=lambda t: t.name)
@pytest.mark.parametrize("how", "NTC")
@pytest.mark.parametrize(("n", "many"), [(3, 5), (5, 3), (20, 5)])
def test_triangular_solve(n: int, many: int, how: str, t: ElementType) -> None:
    rng = np.random.default_rng(1)
    a = (random(rng, t, 2, n, n) + n * np.eye(n)).astype(t.dtype)
    for left, lower, unit in itertools.product((True, False), repeat=3):
        routine = lapack.TriangularSolve(left, lower, how, unit)
        if unit:
            a = np.where(np.eye(n, dtype=bool), a, a / n).astype(t.dtype)
        b = random(rng, t, 2, *((n, many) if left else (many, n)))
        wanted = np.empty_like(b)
        routine(a, b, wanted)
        for columns, columns_x, in_place in itertools.product((True, False), repeat=3):
            memory = [stored(a, columns), stored(b, columns_x)]
            memory.append(memory[1] if in_place else np.empty_like(memory[1]))
            shapes = [
                shape_of("m", x.shape[1:], t, by, (2,)) for x, by in ((a, columns), (b, columns_x), (b, columns_x))
            ]
            try:
                run(routine, shapes, memory)
            except lapack_steps.Refused:
                assert how == "C" and t.is_complex and columns != columns_x
                continue
            found = memory[2].swapaxes(1, 2) if columns_x else memory[2]
            np.testing.assert_allclose(found, wanted, rtol=0, atol=CLOSE[t] * max(1.0, np.abs(wanted).max()))


def test_a_solution_where_the_triangle_lay() -> None:
    rng = np.random.default_rng(3)
    a, b = random(rng, F64, 2, 4, 4) + 4 * np.eye(4), random(rng, F64, 2, 4, 4)
    shape = shape_of("m", (4, 4), F64, True, (2,))
    memory = [stored(a, True), stored(b, True)]
    run(lapack.TriangularSolve(True, True, "N", False), [shape] * 3, [*memory, memory[0]])
    np.testing.assert_allclose(np.tril(a) @ memory[0].swapaxes(1, 2), b, atol=1e-9)


@pytest.mark.parametrize("columns", [True, False])
def test_q(columns: bool) -> None:
    a = np.random.default_rng(2).standard_normal((2, 5, 3)).astype(np.float32)
    r, tau, q = np.empty_like(a), np.empty((2, 3), np.float32), np.empty_like(a)
    lapack.Geqrf()(a, r, tau)
    lapack.Orgqr()(r, tau, q)
    matrix, vector = (shape_of(k, d, F32, columns, (2,)) for k, d in (("m", (5, 3)), ("v", (3,))))
    memory = [stored(r, columns), tau, stored(np.zeros_like(q), columns)]
    run(lapack.Orgqr(), [matrix, vector, matrix], memory)
    found = memory[2].swapaxes(1, 2) if columns else memory[2]
    np.testing.assert_allclose(found, q, atol=1e-6)


@pytest.mark.parametrize("t", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_pivots_of_small_matrices_are_lapacks(n: int, t: ElementType) -> None:
    """Also of singular matrices, of equal candidates, and of numbers far apart."""
    rng = np.random.default_rng(n)
    a = random(rng, t, 30, n, n)
    a[1, :, 0] = 0
    a[2] = 1 + 2j if t.is_complex else a[2, :1]
    a[3] = 0
    a[4] = np.eye(n)[::-1]
    a[5] = np.tril(np.ones((n, n)))
    a[6:20] *= 10.0 ** rng.integers(-15, 15, (14, n, 1))
    factors, pivots, info = np.empty_like(a), np.empty((30, n), np.int32), np.full(30, 9, np.int32)
    wanted, rows, failed = np.empty_like(a), np.empty_like(pivots), np.empty_like(info)
    lapack.Getrf()(a, wanted, rows, failed)
    matrix, number = shape_of("m", (n, n), t, False, (30,)), array(S32, (30,), layout((0,)))
    run(lapack.Getrf(), [matrix, matrix, shape_of("i", (n,), t, False, (30,)), number], [a, factors, pivots, info])
    assert pivots.tolist() == rows.tolist() and info.tolist() == failed.tolist()
    scale = np.abs(wanted).max(axis=(1, 2), keepdims=True)
    assert (np.abs(factors - wanted) <= CLOSE[t] * scale).all()


@pytest.mark.parametrize("t", [F32, C64], ids=lambda t: t.name)
def test_factors_of_small_matrices_are_rounded_once(t: ElementType) -> None:
    """A column is done in f64: what is left of a matrix is as small as the rounding of its factors makes it."""
    n = 24
    a = random(np.random.default_rng(5), t, 20, n, n)
    factors, pivots, info = np.empty_like(a), np.empty((20, n), np.int32), np.full(20, 9, np.int32)
    matrix, number = shape_of("m", (n, n), t, False, (20,)), array(S32, (20,), layout((0,)))
    run(lapack.Getrf(), [matrix, matrix, shape_of("i", (n,), t, False, (20,)), number], [a, factors, pivots, info])
    wide = np.complex128 if t.is_complex else np.float64
    for given, factor, rows in zip(a.astype(wide), factors.astype(wide), pivots, strict=True):
        for k, row in enumerate(rows - 1):
            given[[k, row]] = given[[row, k]]
        lower, upper = np.tril(factor, -1) + np.eye(n), np.triu(factor)
        left = np.abs(given - lower @ upper)
        assert (left <= 1.01 * np.finfo(np.float32).eps * (np.abs(lower) @ np.abs(upper))).all()


@pytest.mark.parametrize("n", [3, 6])
def test_the_first_minor_that_is_not_positive(n: int) -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((3 * n, n, n))
    a = a @ a.swapaxes(1, 2) + np.eye(n)
    for k in range(n):
        a[3 * k, k, k], a[3 * k + 1, k, k], a[3 * k + 2, k, 0] = -1, np.nan, np.inf
    out, wanted, info, failed = np.empty_like(a), np.empty_like(a), *np.zeros((2, 3 * n), np.int32)
    lapack.Potrf(True)(a, wanted, failed)
    matrix = shape_of("m", (n, n), F64, False, (3 * n,))
    run(lapack.Potrf(True), [matrix, matrix, array(S32, (3 * n,), layout((0,)))], [a, out, info])
    assert info.tolist() == failed.tolist()
    assert sorted(set(info.tolist()))[-1] == n


@pytest.mark.parametrize("t", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize(("n", "m"), [(5, 3), (5, 1), (1, 2)])
def test_tridiagonal_systems(n: int, m: int, columns: bool, t: ElementType) -> None:
    rng = np.random.default_rng(5)
    given = [random(rng, t, 2, n) for _ in range(3)]
    given[1] += 4
    given.append(random(rng, t, 2, n, m))
    wanted = [np.empty_like(g) for g in given] + [np.empty(2, np.int32)]
    lapack.Gtsv()(*given, *wanted)
    assert not wanted[4].any()
    kinds = [*"vvvmvvvm", "i"]
    shapes = [shape_of(k, x.shape[1:], t, columns, (2,)) for k, x in zip(kinds, [*given, *wanted], strict=True)]
    for in_place in (False, True):
        memory = [stored(g, columns and g.ndim > 2) for g in given]
        memory += memory[:4] if in_place else [np.full_like(x, 7) for x in memory]
        memory.append(np.full(2, 7, np.int32))
        run(lapack.Gtsv(), shapes, memory)
        for found, right in zip(memory[4:], wanted, strict=True):
            found = found.swapaxes(1, 2) if columns and found.ndim > 2 else found
            np.testing.assert_allclose(found, right, rtol=0, atol=CLOSE[t] * 10)


def test_a_singular_tridiagonal_system_says_where() -> None:
    zero, one, info = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32), np.full(2, 9, np.int32)
    b, main = np.ones((2, 3, 1), np.float32), np.stack([one[0], [1, 0, 1]]).astype(np.float32)
    memory = [zero, main, zero, b, *(x.copy() for x in (zero, main, zero, b)), info]
    run(lapack.Gtsv(), [shape_of("vvvmvvvmi"[k], x.shape[1:], F32, False, (2,)) for k, x in enumerate(memory)], memory)
    assert info.tolist() == [0, 2] and memory[7][0].ravel().tolist() == [1, 1, 1]


def test_what_has_no_factor_is_nan_and_says_so() -> None:
    a = np.stack([np.eye(3), -np.eye(3), np.eye(3)]).astype(np.float32)
    shape = shape_of("m", (3, 3), F32, False, (3,))
    out, info = np.empty_like(a), np.full(3, 9, np.int32)
    run(lapack.Cholesky(True), [shape, shape], [a, out])
    assert np.isnan(out[1]).all() and np.array_equal(out[::2], a[::2])
    run(lapack.Potrf(True), [shape, shape, array(S32, (3,), layout((0,)))], [a, out, info])
    assert info.tolist() == [0, 1, 0]


def test_a_batch_has_the_same_bits_with_any_number_of_threads() -> None:
    rng = np.random.default_rng(6)
    a = rng.standard_normal((24, 70, 70)).astype(np.float32)
    a = a @ a.swapaxes(1, 2) + 70 * np.eye(70, dtype=np.float32)
    shape = shape_of("m", (70, 70), F32, False, (24,))
    results = []
    for threads in (1, 2, 5):
        memory = [a.copy(), np.empty_like(a)]
        run(lapack.Cholesky(True), [shape, shape], memory, threads)
        results.append(memory[1].tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize(
    ("routine", "shapes", "why"),
    [
        (lapack.PivotsToPermutation(), [array(S32, (3,)), array(S32, (5,))], "not a single routine"),
        (lapack.Cholesky(True), [array(BF16, (3, 3))] * 2, "no bf16"),
        (lapack.Cholesky(True), [array(F32, (2, 0, 0))] * 2, "empty"),
        (lapack.Cholesky(True), [array(F32, (2, 3, 3), layout((0, 2, 1)))] * 2, "one after another"),
        (lapack.Svd(True, True, "v"), [], "it"),
        (lapack.Geqrf(), [array(F32, (1, 2**26)), array(F32, (1, 2**26)), array(F32, (1,))], "integers do not hold"),
    ],
)
def test_refusals_say_why(routine: Any, shapes: list[Shape], why: str) -> None:
    if not shapes:
        shapes = [array(F32, d) for d in ((3, 3), (3, 3), (3,), (3, 3), (3, 3))] + [array(S32, ())]
        why = r"V\^H"
    with pytest.raises(lapack_steps.Refused, match=why):
        lapack_steps.steps_for(routine, shapes, False)


@pytest.mark.parametrize(("n", "quick"), [(8, True), (200, False)])
def test_calls_with_little_scratch_leave_nothing_to_python(n: int, quick: bool) -> None:
    """Such a program has the quick way in; more scratch may be missing, which Python says."""
    a = f"f32[{n},{n}]{{1,0}}"
    program = heron.compile(
        f"""HloModule m

ENTRY main {{
  a = {a} parameter(0)
  e = ({a}, f32[{n}]{{0}}, s32[]) custom-call(a), custom_call_target="lapack_ssyevd_ffi", backend_config={{mode = 86 : ui8, uplo = 76 : ui8}}
  ROOT v = f32[{n}]{{0}} get-tuple-element(e), index=1
}}
""",
        "cpu",
    )
    for _ in range(3):
        np.testing.assert_allclose(program(np.eye(n, dtype=np.float32)), np.ones(n), atol=1e-6)
    assert (program.native_entry() is not None) == quick


def test_scratch_that_is_not_there_is_an_error_with_its_size() -> None:
    shapes = [shape_of(kind, dims, F32, True, ()) for kind, dims in CASES["syevd"][1]]
    memory = [np.zeros(s.dims, s.element_type.dtype) for s in shapes]
    steps = dataclasses.replace(lapack_steps.steps_for(lapack.Syevd(True, True), shapes, False), scratch=1 << 60)
    slices = tuple(Slice(n, 0, m.nbytes) for n, m in enumerate(memory))
    hosts = run_thunk(LapackThunk(steps, slices, (0,) * 4, 1, LAPACK, "eigh.0"), memory)
    with pytest.raises(HeronError, match=r"scratch of 'eigh.0': 1,152,921,504,606,846,976 bytes") as caught:
        hosts.check()
    assert caught.value.code == "RUN010"


def test_openblas_has_its_threads_again_after_a_call() -> None:
    functions = blas_threads._functions()
    if functions is None:
        pytest.skip("SciPy's BLAS is not OpenBLAS")
    get, put = functions
    before = get()
    address = blas_threads._make(None)
    step = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int32)(address)
    state = ctypes.addressof(blas_threads._STATE)
    names = [blas_threads._address(f) for f in functions]
    try:
        put(2)
        usual = get()  # fewer, where the library was built for one
        for more, now in ((1, 1), (1, 1), (-1, 1), (-1, usual), (1, 1), (-1, usual)):
            step(state, *names, more)
            assert get() == now
        step(state, *names, 1)
        blas_threads._after_fork()  # in a child that was forked meanwhile
        assert get() == usual and not any(bytes(blas_threads._STATE))
    finally:
        put(before)
