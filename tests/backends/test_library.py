"""Library ops on the CPU and the simulated GPU: transforms, linear algebra, sorting, random bits."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.backends.calls.host import Permuted, memory_order
from heron.compiling import compile
from heron.errors import HeronError
from heron.hlo.ir.layout import layout
from heron.hlo.ir.shape import array
from heron.hlo.ir.types import F32
from heron.runtime.host import lapack
from tests.backends.agree import TARGETS, assert_agrees, program, random_inputs

FLOATS = {"s": "f32", "d": "f64", "c": "c64", "z": "c128"}


def positive(t: str, *dims: int) -> np.ndarray:
    """Hermitian positive definite matrices."""
    rng = np.random.default_rng(5)
    a = rng.standard_normal(dims) + (1j * rng.standard_normal(dims) if t[0] == "c" else 0)
    dtype = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}[t]
    return (a @ a.swapaxes(-1, -2).conj() + dims[-1] * np.eye(dims[-1])).astype(dtype)


# -- transforms ------------------------------------------------------------------------------------------------------
TRANSFORMS = [
    ("c64[3,8]", "c64[3,8]", "FFT", "8"),
    ("c128[2,4,6]", "c128[2,4,6]", "IFFT", "4,6"),
    ("f32[2,3,4,5]", "c64[2,3,4,3]", "RFFT", "3,4,5"),
    ("f64[9]", "c128[5]", "RFFT", "9"),
    ("c64[2,5]", "f32[2,8]", "IRFFT", "8"),
    ("c128[2,3,4]", "f64[2,3,7]", "IRFFT", "3,7"),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", TRANSFORMS, ids=lambda c: f"{c[2]} {c[0]}")
def test_transforms(case: tuple[str, str, str, str], target: str) -> None:
    source, result, kind, lengths = case
    exe = assert_agrees(program([source], result, f"fft(p0), fft_type={kind}, fft_length={{{lengths}}}"), target)
    (library,) = exe.trace.thunks
    assert library == ("fft" if target == "cpu" else "cufft")


# -- linear algebra ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lower", ["true", "false"])
@pytest.mark.parametrize("t", FLOATS.values())
def test_cholesky(t: str, lower: str, target: str) -> None:
    module = program([f"{t}[2,5,5]"], f"{t}[2,5,5]", f"cholesky(p0), lower={lower}")
    assert_agrees(module, target, [positive(t, 2, 5, 5)])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [3, 5, 40])
@pytest.mark.parametrize("t", FLOATS.values())
def test_cholesky_of_what_has_none(t: str, n: int, target: str) -> None:
    """NaN in every element; of a complex number in the real part."""
    module = program([f"{t}[2,{n},{n}]"], f"{t}[2,{n},{n}]", "cholesky(p0), lower=true")
    dtype = module.entry.parameters[0].shape.element_type.dtype
    a = np.stack([np.eye(n), -np.eye(n)]).astype(dtype)
    (found,) = compile(module, target=target).run([a])
    np.testing.assert_array_equal(found[0], np.eye(n))
    assert np.isnan(found[1].real).all() and not found[1].imag.any()
    (told,) = heron.evaluate(module, a)
    assert np.isnan(told[1].real).all() and not told[1].imag.any()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("t", ["f32", "bf16", "c128"])
def test_cholesky_of_a_matrix_with_a_nan(t: str, target: str) -> None:
    module = program([f"{t}[2,5,5]"], f"{t}[2,5,5]", "cholesky(p0), lower=true")
    (shape,) = (p.shape for p in module.entry.parameters)
    a = np.stack([np.eye(5), np.eye(5)]).astype(shape.element_type.dtype)
    a[0, 3, 1] = np.nan
    assert_agrees(module, target, [a])


@pytest.mark.parametrize("letter", "sdcz")
def test_the_minor_with_a_nan_is_told(letter: str) -> None:
    t = FLOATS[letter]
    config = "uplo = 76 : ui8"
    module = program([f"{t}[2,5,5]"], f"({t}[2,5,5], s32[2])", custom(f"lapack_{letter}potrf_ffi", config))
    a = np.stack([np.eye(5), np.eye(5)]).astype(module.entry.parameters[0].shape.element_type.dtype)
    a[0, 3, 1] = np.nan
    _, info = compile(module).run([a])
    assert info.tolist() == [4, 0]
    np.testing.assert_array_equal(info, heron.evaluate(module, a)[1])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("left", ["true", "false"])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("unit", ["true", "false"])
@pytest.mark.parametrize("t", ["f32", "c128", "bf16"])
def test_triangular_solve(t: str, left: str, transpose: str, unit: str, target: str) -> None:
    b = f"{t}[2,4,3]" if left == "true" else f"{t}[2,3,4]"
    options = f"left_side={left}, lower=true, transpose_a={transpose}, unit_diagonal={unit}"
    module = program([f"{t}[2,4,4]", b], b, f"triangular-solve(p0, p1), {options}")
    a, rhs = random_inputs(module)
    a = (a.astype(np.complex128 if t[0] == "c" else np.float64) / 4 + 2 * np.eye(4)).astype(a.dtype)
    assert_agrees(module, target, [a, rhs])


def custom(target: str, config: str = "") -> str:
    return f'custom-call(p0), custom_call_target="{target}", api_version=API_VERSION_TYPED_FFI, backend_config={{{config}}}'


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("call", ["potrf", "getrf", "geqrf", "syevd", "gesdd thin", "gesdd full", "gesdd values"])
def test_lapack(call: str, letter: str) -> None:
    """The same routines as the evaluator, in the same precision; the first is XLA's own, see the workloads."""
    t, real = FLOATS[letter], {"c64": "f32", "c128": "f64"}.get(FLOATS[letter], FLOATS[letter])
    name, _, mode = call.partition(" ")
    if name == "syevd" and letter in "cz":
        name = "heevd"
    shape = f"{t}[2,5,5]" if name in ("potrf", "syevd", "heevd") else f"{t}[2,5,4]"
    u, vt = (f"{t}[2,5,5]", f"{t}[2,4,4]") if mode == "full" else (f"{t}[2,5,4]", f"{t}[2,4,4]")
    results = {
        "potrf": (shape, "s32[2]"),
        "getrf": (shape, "s32[2,4]", "s32[2]"),
        "geqrf": (shape, f"{t}[2,4]"),
        "syevd": (shape, f"{real}[2,5]", "s32[2]"),
        "heevd": (shape, f"{real}[2,5]", "s32[2]"),
        "gesdd": (shape, f"{real}[2,4]", u, vt, "s32[2]"),
    }[name]
    letters = {"thin": "mode = 83 : ui8", "full": "mode = 65 : ui8", "values": "mode = 78 : ui8"}
    config = letters.get(mode, "uplo = 76 : ui8, mode = 86 : ui8" if name != "getrf" else "")
    module = program([shape], f"({', '.join(results)})", custom(f"lapack_{letter}{name}_ffi", config))
    inputs = [positive(t, 2, 5, 5)] if "5,5]" in shape else random_inputs(module)
    exe = assert_agrees(module, "cpu", inputs)
    assert "scipy.linalg.lapack" in exe.trace.thunks


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("routine", ["gesvdj", "gesvd", "gesdd"])
def test_singular_values_as_cusolver_gives_them(routine: str, full: bool) -> None:
    u, v = ((5, 5), (4, 4)) if full else ((5, 4), (4, 4))
    flags = f"compute_uv = true, full_matrices = {str(full).lower()}" + (", transposed = false" * (routine != "gesvdj"))
    shapes = [f"f32[{m},{n}]" for m, n in (u, v)]
    module = program(
        ["f32[5,4]"], f"(f32[5,4], f32[4], {', '.join(shapes)}, s32[])", custom(f"cusolver_{routine}_ffi", flags)
    )
    (a,) = random_inputs(module)
    exe = compile(module, "sim:sm_90")
    _, values, left, right, info = exe.run([a])
    assert not info and "cusolver" in exe.trace.thunks
    vh = right.T if routine == "gesvdj" else right
    np.testing.assert_allclose(left[:, :4] * values @ vh, a, atol=1e-5)


def test_transposed_gesvd_swaps_the_vectors() -> None:
    flags = "compute_uv = true, full_matrices = false, transposed = true"
    result = "(f32[3,5], f32[3], f32[3,5], f32[3,3], s32[])"
    module = program(["f32[3,5]"], result, custom("cusolver_gesvd_ffi", flags))
    (a,) = random_inputs(module)
    _, values, vh, u, _ = compile(module, "sim:sm_90").run([a])
    np.testing.assert_allclose(u * values @ vh, a, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_q_from_householder_vectors(target: str) -> None:
    a = np.random.default_rng(2).standard_normal((5, 3)).astype(np.float32)
    packed, tau = lapack.lapack("geqrf", a)(a)[:2]
    op = 'custom-call(p0, p1), custom_call_target="lapack_sorgqr_ffi"'
    (q,) = compile(program(["f32[5,3]", "f32[3]"], "f32[5,3]", op), target).run([packed, tau])
    np.testing.assert_allclose(q @ np.triu(packed[:3]), a, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_pivots(target: str) -> None:
    module = program(["s32[2,3]"], "s32[2,5]", 'custom-call(p0), custom_call_target="cu_lu_pivots_to_permutation"')
    exe = assert_agrees(module, target, [np.array([[1, 3, 4], [0, 1, 2]], np.int32)])
    assert bool(exe.kernels) == (target != "cpu")


def test_unknown_custom_calls_are_refused() -> None:
    with pytest.raises(HeronError, match="GEN011") as refused:
        compile(program(["f32[2]"], "f32[2]", 'custom-call(p0), custom_call_target="my_kernel"'))
    assert "my_kernel" in refused.value.what and "potrf" in (refused.value.hint or "")


def test_empty_matrices() -> None:
    shape = "f32[2,0,0]"
    assert_agrees(program([shape], shape, "cholesky(p0), lower=true"), "cpu")
    result = "(f32[0,3], s32[0], s32[])"
    module = program(["f32[0,3]"], result, custom("lapack_sgetrf_ffi"))
    assert compile(module).run([np.zeros((0, 3), np.float32)])[2] == 0


# -- by passes ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("t", ["f32", "bf16", "s32"])
def test_topk(t: str, target: str) -> None:
    module = program([f"{t}[3,40]"], f"({t}[3,5], s32[3,5])", "topk(p0), k=5, largest=true")
    assert_agrees(module, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("algorithm", ["rng_three_fry", "rng_default"])
def test_random_bits(algorithm: str, target: str) -> None:
    for state, bits in (("u64[2]", "u32[5,6]"), ("u32[4]", "u64[3]"), ("u64[2]", "u8[7]")):
        module = program([state], f"({state}, {bits})", f"rng-bit-generator(p0), algorithm={algorithm}")
        exe = assert_agrees(module, target)
        assert len(exe.kernels) <= 3


# -- the frame ---------------------------------------------------------------------------------------------------------
def test_views_follow_the_layout() -> None:
    shape = array(F32, (2, 3, 4), layout((1, 2, 0)))
    assert memory_order(shape) == (0, 2, 1)
    seen: list[tuple[int, ...]] = []
    Permuted(lambda x: seen.append(x.shape), ((0, 2, 1),))(np.zeros((2, 4, 3), np.float32))
    assert seen == [(2, 3, 4)]


def test_the_plan_names_library_and_routine() -> None:
    exe = compile(program(["c64[19683]"], "c64[19683]", "fft(p0), fft_type=FFT, fft_length={19683}"))
    assert "scipy.fft Transform(kind='FFT', lengths=(19683,))" in exe.stage("thunks")


def test_a_failure_inside_a_routine_is_raised_by_the_call() -> None:
    module = program(["s32[3]"], "s32[3]", 'custom-call(p0), custom_call_target="cu_lu_pivots_to_permutation"')
    exe = compile(module)
    with pytest.raises(IndexError):
        exe.run([np.array([0, 9, 0], np.int32)])
    swaps = np.array([2, 1, 2], np.int32)
    np.testing.assert_array_equal(exe(swaps), heron.evaluate(module, swaps)[0])


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("types", ["bf16 f32 f32", "f32 bf16 f32", "f8e4m3fn f8e5m2 f32", "f16 bf16 f32", "s8 s32 s32",
                                   "f64 f32 f64", "c64 f32 c64", "s8 f32 f32", "f32 f32 bf16"])  # fmt: skip
def test_products_of_different_types(types: str, target: str) -> None:
    x, y, t = types.split()
    op = "dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    assert_agrees(program([f"{x}[4,8]", f"{y}[8,2]"], f"{t}[4,2]", op), target)
