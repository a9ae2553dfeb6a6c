"""Calls of cuFFT, cuBLAS and cuSOLVER as recordings keep them."""

from __future__ import annotations

from typing import Any

import pytest

from heron import HeronError
from heron.hlo.ir.types import BF16, C64, F32, F64, S32
from heron.runtime.cuda.libraries.base import Library
from heron.runtime.cuda.libraries.cublas import HELPER_WORKSPACE, CuBlas, TriangularSolve
from heron.runtime.cuda.libraries.cufft import CuFft, Fft
from heron.runtime.cuda.libraries.cusolver import CuSolver, Factorization
from heron.runtime.cuda.libraries.recording import Recording
from heron.runtime.cuda.libraries.registry import open_library
from heron.runtime.library_call import Array

SCRATCH = 0x10000


def scratch(stream: int, size: int) -> int:
    return SCRATCH


def recorded(lib: type[Library], **answers: Any) -> tuple[Any, Recording, Recording, Recording]:
    functions, driver, blas = Recording(lib.name, answers=answers), Recording("cuda"), Recording("cublas")
    more = {} if lib is CuBlas else {"blas": blas}
    return lib(scratch, functions, driver, **more), functions, driver, blas  # type: ignore[call-arg]


def test_an_inverse_transform_is_scaled() -> None:
    lib, functions, _, blas = recorded(CuFft)
    d = Fft((Array(C64, (4, 8)), Array(C64, (4, 8))), "IFFT", (8,))
    assert str(d) == "cufft.fft(c64[4,8], c64[4,8]; kind=IFFT, lengths=[8])"
    lib.call(5, [1, 2], d)
    assert functions.calls[2] == "cufftMakePlanMany(0, 1, [8], 0, 1, 0, 0, 1, 0, 41, 4, &0)"
    assert functions.calls[-1] == "cufftExecC2C(0, 1, 2, 1)"
    assert blas.calls[-1] == "cublasCsscal_v2_64(1, 32, &0.125, 2, 1)"
    lib.call(5, [1, 2], d)
    assert sum(c.startswith("cufftMakePlanMany") for c in functions.calls) == 1


def test_a_transform_that_destroys_its_operand_gets_a_copy() -> None:
    lib, functions, driver, _ = recorded(CuFft)
    d = Fft((Array(C64, (8, 5)), Array(F32, (8, 8))), "IRFFT", (8, 8))
    assert lib.prepare(d) == 512 + HELPER_WORKSPACE
    lib.call(5, [1, 2], d)
    assert driver.calls == [f"cuMemcpyDtoDAsync_v2({SCRATCH}, 1, 320, 5)"]
    assert f"cufftExecC2R(0, {SCRATCH}, 2)" in functions.calls


@pytest.mark.parametrize(("columns", "flags"), [(False, "1, 1, 0, 0, 3, 4"), (True, "0, 0, 0, 0, 4, 3")])
def test_row_major_systems_are_solved_transposed(columns: bool, flags: str) -> None:
    lib, functions, driver, _ = recorded(CuBlas)
    b = (2, 3, 4) if columns else (2, 4, 3)
    d = TriangularSolve((Array(F64, (2, 4, 4)), Array(F64, b), Array(F64, b)), True, True, columns=columns)
    lib.call(5, [0, 1000, 2000], d)
    assert driver.calls == ["cuMemcpyDtoDAsync_v2(2000, 1000, 192, 5)"]
    lead = 4 if columns else 3
    assert functions.calls[-2:] == [
        f"cublasDtrsm_v2(1, {flags}, &1.0, 0, 4, 2000, {lead})",
        f"cublasDtrsm_v2(1, {flags}, &1.0, 128, 4, 2096, {lead})",
    ]


def test_cholesky_of_rows_takes_the_other_triangle() -> None:
    lib, functions, driver, blas = recorded(CuSolver)
    d = Factorization((Array(F32, (2, 4, 4)), Array(F32, (2, 4, 4)), Array(S32, (2,))), "potrf", columns=False)
    lib.call(5, [1000, 1000, 2000], d)
    assert not driver.calls and not blas.calls
    assert functions.calls[-2:] == [
        f"cusolverDnSpotrf(1, 1, 4, 1000, 4, {SCRATCH + 256}, 0, 2000)",
        f"cusolverDnSpotrf(1, 1, 4, 1064, 4, {SCRATCH + 256}, 0, 2004)",
    ]


def test_other_factors_of_rows_are_transposed_on_the_way() -> None:
    lib, functions, driver, blas = recorded(CuSolver)
    d = Factorization((Array(F32, (3, 4)), Array(F32, (3, 4)), Array(F32, (3,))), "geqrf", columns=False)
    lib.call(5, [1000, 2000, 3000], d)
    inside = SCRATCH + 256
    assert blas.calls[3] == f"cublasSgeam(1, 1, 0, 3, 4, &1.0, 1000, 4, &0.0, {inside}, 3, {inside}, 3)"
    assert functions.calls[-1] == f"cusolverDnSgeqrf(1, 3, 4, {inside}, 3, 3000, {SCRATCH + 256}, 0, {SCRATCH})"
    assert blas.calls[-1] == f"cublasSgeam(1, 1, 0, 4, 3, &1.0, {inside}, 3, &0.0, 2000, 4, 2000, 4)"
    assert not driver.calls


@pytest.mark.parametrize("kind", ["getrf", "orgqr", "syevd", "gesvd", "gesvdj"])
def test_every_routine_asks_for_scratch_memory_once(kind: str) -> None:
    lib, functions, _, _ = recorded(CuSolver)
    square, line, info = Array(C64, (4, 4)), Array(F32, (4,)), Array(S32, ())
    arrays = {
        "getrf": (square, square, Array(S32, (4,)), info),
        "orgqr": (square, Array(C64, (4,)), square),
        "syevd": (square, square, line, info),
    }.get(kind, (square, square, line, square, square, info))
    d = Factorization(arrays, kind, 2 if kind == "orgqr" else 1)
    lib.call(5, [100 * n for n in range(1, len(arrays) + 1)], d)
    lib.call(5, [100 * n for n in range(1, len(arrays) + 1)], d)
    name = {"syevd": "heevd", "orgqr": "ungqr"}.get(kind, kind)
    assert sum(c.startswith(f"cusolverDnC{name}_bufferSize(") for c in functions.calls) == 1
    assert sum(c.startswith(f"cusolverDnC{name}(") for c in functions.calls) == 2
    lib.close()
    assert functions.calls[-1] == "cusolverDnDestroy(1)"


def test_what_a_library_does_not_do_is_an_error() -> None:
    wrong = Fft((Array(BF16, (4,)), Array(BF16, (4,))), "FFT", (4,))
    for lib in (CuFft, CuBlas, CuSolver):
        with pytest.raises(HeronError) as error:
            recorded(lib)[0].prepare(wrong)
        assert error.value.code == "RUN091"
    with pytest.raises(HeronError) as error:
        open_library("cublsa")
    assert error.value.code == "RUN094"


def test_cublas_works_in_memory_of_the_program() -> None:
    """Of its own it would allocate, and a capture would keep that as nodes that no graph inside a graph may have."""
    lib, functions, _, _ = recorded(CuBlas)
    d = TriangularSolve((Array(F64, (4, 4)), Array(F64, (4, 4)), Array(F64, (4, 4))))
    size = lib.prepare(d)
    lib.call(5, [0, 1000, 2000], d)
    assert size == 32 << 20
    chosen = functions.calls.index("cublasSetStream_v2(1, 5)")
    assert functions.calls[chosen + 1] == f"cublasSetWorkspace_v2(1, {SCRATCH}, {size})"


def test_helpers_are_ready_before_a_capture() -> None:
    """A call makes no handle: that allocates, and a capture would end."""
    fft = Fft((Array(C64, (4, 8)), Array(C64, (4, 8))), "IFFT", (8,))
    rows = Factorization((Array(F32, (3, 4)), Array(F32, (3, 4)), Array(F32, (3,))), "geqrf", columns=False)
    for cls, d in ((CuFft, fft), (CuSolver, rows)):
        lib, _, _, blas = recorded(cls)
        size = lib.prepare(d)
        assert blas.calls == ["cublasCreate_v2(&1)"]
        lib.call(5, [0x1000 * n for n in range(1, len(d.arrays) + 1)], d)
        assert sum(c.startswith("cublasCreate_v2") for c in blas.calls) == 1
        spaces = {c for c in blas.calls if c.startswith("cublasSetWorkspace_v2")}
        assert spaces == {f"cublasSetWorkspace_v2(1, {SCRATCH + size - HELPER_WORKSPACE}, {HELPER_WORKSPACE})"}


def test_factorisations_are_not_captured() -> None:
    assert not Factorization.is_capturable
    assert Fft.is_capturable and TriangularSolve.is_capturable
