"""Every custom call that JAX's lowering for CUDA makes: what computes it here, or why nothing does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import heron
from heron import HeronError
from heron.compiling import compile
from heron.runtime.thunks import HostThunk, KernelThunk, LibraryThunk, walk
from tests.backends.jax_cuda_properties import PROPERTIES

#: how a call is computed on a device: one of NVIDIA's libraries, a kernel, the host, or not at all
LIBRARY, KERNEL, HOST, REFUSED = "library", "kernel", "host", "refused"
TARGETS = {
    "cusolver_potrf_ffi": LIBRARY,
    "cusolver_getrf_ffi": LIBRARY,
    "cusolver_geqrf_ffi": LIBRARY,
    "cusolver_orgqr_ffi": LIBRARY,
    "cusolver_syevd_ffi": LIBRARY,
    "cusolver_gesvd_ffi": LIBRARY,
    "cusolver_gesvdj_ffi": LIBRARY,
    "cusolver_gesvdp_ffi": LIBRARY,
    "cusolver_ormqr_ffi": HOST,
    "cusolver_sytrd_ffi": HOST,
    "cusolver_syrk_ffi": HOST,
    "cusolver_geev_ffi": HOST,
    "cusolver_csrlsvqr_ffi": HOST,
    "cuhybrid_eig_real": HOST,
    "cuhybrid_eig_comp": HOST,
    "cuhybrid_geqp3": HOST,
    "cusparse_gtsv2_ffi": HOST,
    "cu_tridiagonal_solve_perturbed": HOST,
    "cu_cholesky_update_ffi": HOST,
    "cu_threefry2x32_ffi": HOST,
    "cu_lu_pivots_to_permutation": KERNEL,
    "__cudnn$fmhaSoftmax": LIBRARY,
    "__cudnn$fmhaScaleBiasSoftmax": LIBRARY,
    "__cudnn$fmhaSoftmaxBackward": KERNEL,
    "__cudnn$fmhaScaleBiasSoftmaxBackward": KERNEL,
    "cusparse_csr_todense_ffi": REFUSED,
    "cusparse_csr_matvec_ffi": REFUSED,
    "cusparse_csr_matmat_ffi": REFUSED,
    "cusparse_csr_fromdense_ffi": REFUSED,
    "cusparse_coo_todense_ffi": REFUSED,
    "cusparse_coo_matvec_ffi": REFUSED,
    "cusparse_coo_matmat_ffi": REFUSED,
    "cusparse_coo_fromdense_ffi": REFUSED,
    "cudnn_rnn_ffi": REFUSED,
    "cudnn_rnn_bwd_ffi": REFUSED,
    "triton_kernel_call": REFUSED,
    "mosaic_gpu_v2": REFUSED,
    "__cudnn$fusion": REFUSED,
    "__cudnn$blockScaledDot": REFUSED,
    "xla_buffer_python_gpu_callback": REFUSED,
}
#: calls as JAX prints them, with operands they are tried on: target, configuration, operands, results
CALLS = [
    ("cusolver_potrf_ffi", "lower = true", "f32[5,5]", "f32[5,5] s32[]"),
    ("cusolver_getrf_ffi", "", "f32[5,4]", "f32[5,4] s32[4] s32[]"),
    ("cusolver_geqrf_ffi", "", "f32[5,4]", "f32[5,4] f32[4]"),
    ("cusolver_orgqr_ffi", "", "f32[5,4] f32[4]", "f32[5,4]"),
    ("cusolver_syevd_ffi", "lower = true, algorithm = 0 : ui8", "f32[5,5]", "f32[5,5] f32[5] s32[]"),
    ("cusolver_gesvd_ffi", "compute_uv = false, full_matrices = false, transposed = false", "f32[5,4]",
     "f32[5,4] f32[4] f32[5,4] f32[4,4] s32[]"),
    ("cusolver_gesvd_ffi", "compute_uv = true, full_matrices = true, transposed = false", "f32[5,4]",
     "f32[5,4] f32[4] f32[5,5] f32[4,4] s32[]"),
    ("cusolver_gesvdj_ffi", "compute_uv = true, full_matrices = false", "f32[5,4]",
     "f32[5,4] f32[4] f32[5,4] f32[4,4] s32[]"),
    ("cusolver_gesvdp_ffi", "compute_uv = true, full_matrices = false", "f32[5,4]",
     "f32[5,4] f32[4] f32[5,4] f32[4,4] s32[]"),
    ("cusolver_gesvdj_ffi", "compute_uv = false, full_matrices = false", "f32[5,4]",
     "f32[5,4] f32[4] f32[5,4] f32[4,4] s32[]"),
    ("cusolver_gesvdp_ffi", "compute_uv = false, full_matrices = false", "f32[5,4]",
     "f32[5,4] f32[4] f32[5,4] f32[4,4] s32[]"),
    ("cusolver_ormqr_ffi", "left = true, transpose = true", "f32[5,3] f32[3] f32[5,2]", "f32[5,2]"),
    ("cusolver_sytrd_ffi", "lower = true", "f32[5,5]", "f32[5,5] f32[5] f32[4] f32[4] s32[]"),
    ("cusolver_syrk_ffi", "transpose = false", "f32[5,3] f32[5,5] f32[] f32[]", "f32[5,5]"),
    ("cusolver_syrk_ffi", "transpose = true", "c64[3,5] c64[5,5] c64[] c64[]", "c64[5,5]"),
    ("cusolver_geev_ffi", "left = true, right = true", "f32[4,4]", "f32[4,4] c64[4] f32[4,4] f32[4,4] s32[]"),
    ("cusolver_geev_ffi", "left = false, right = true", "c64[4,4]", "c64[4,4] c64[4] c64[4,4] c64[4,4] s32[]"),
    ("cuhybrid_eig_real", 'left = true, magma = "auto", right = true', "f32[4,4]",
     "f32[4] f32[4] c64[4,4] c64[4,4] s32[]"),
    ("cuhybrid_eig_comp", 'left = false, magma = "auto", right = true', "c64[2,4,4]",
     "c64[2,4] c64[2,4,4] c64[2,4,4] s32[2]"),
    ("cuhybrid_geqp3", 'magma = "auto"', "f32[5,3] s32[3]", "f32[5,3] s32[3] f32[3]"),
    ("cusparse_gtsv2_ffi", "", "f32[2,5] f32[2,5] f32[2,5] f32[2,5,3]", "f32[2,5,3]"),
    ("cu_tridiagonal_solve_perturbed", "", "f32[5] f32[5] f32[5] f32[5,3]", "f32[5,3]"),
    ("cu_cholesky_update_ffi", "", "f32[4,4] f32[4]", "f32[4,4] f32[4]"),
    ("cu_threefry2x32_ffi", "", "u32[6] u32[6] u32[6] u32[6]", "u32[6] u32[6]"),
    ("cu_lu_pivots_to_permutation", "", "s32[3]", "s32[5]"),
]  # fmt: skip


def program(target: str, given: str, operands: str, results: str) -> str:
    ins = operands.split()
    lines = [f"  p{n} = {s} parameter({n})" for n, s in enumerate(ins)]
    result = results if " " not in results else f"({', '.join(results.split())})"
    names = ", ".join(f"p{n}" for n in range(len(ins)))
    end = f'custom_call_target="{target}", api_version=API_VERSION_TYPED_FFI, backend_config={{{given}}}'
    lines.append(f"  ROOT r = {result} custom-call({names}), {end}")
    return "HloModule m\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n"


#: routines for Hermitian matrices, here positive definite; others get any
HERMITIAN = ("cusolver_potrf_ffi", "cusolver_syevd_ffi", "cusolver_sytrd_ffi")


def arrays(module: heron.Module, target: str) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    found = []
    for p in module.entry.parameters:
        dims, dtype = p.shape.dims, p.shape.element_type.dtype
        if dtype.kind in "iu":
            most = 2**32 if "threefry" in target else 5 if target == "cu_lu_pivots_to_permutation" else 2
            found.append(rng.integers(0, most, dims).astype(dtype))
            continue
        a = rng.standard_normal(dims) + (1j * rng.standard_normal(dims) if dtype.kind == "c" else 0)
        if target in HERMITIAN:
            a = a @ a.conj().swapaxes(-1, -2) + 4 * np.eye(dims[-1])
        elif target == "cu_cholesky_update_ffi" and len(dims) == 2:
            a = np.triu(a) + 4 * np.eye(dims[-1])
        elif "tridiagonal" in target or "gtsv2" in target:
            a = a + 4 * (len(found) == 1)
        found.append(a.astype(dtype))
    return found


def wide(values: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [
        v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) if v.dtype.kind in "cf" else v for v in values
    ]


def test_every_call_is_tried() -> None:
    computed = {t for t, how in TARGETS.items() if how != REFUSED}
    attention = {t for t in computed if t.startswith("__cudnn$fmha")}  # tests/passes/calls/test_attention.py
    assert computed - attention - {"cusolver_csrlsvqr_ffi"} == {c[0] for c in CALLS} == set(PROPERTIES)


@pytest.mark.parametrize("case", CALLS, ids=lambda c: f"{c[0]} {c[1]} {c[2]}")
def test_values(case: tuple[str, str, str, str]) -> None:
    """What results must satisfy, on the simulated GPU and by the evaluator; and what computes them on a device."""
    module = heron.parse(program(*case))
    inputs = arrays(module, case[0])
    executable = compile(module, "sim:sm_90")
    for results in (executable.run(inputs), heron.evaluate(module, *inputs)):
        PROPERTIES[case[0]](case[1], wide(inputs), wide(results))
    kinds = {LIBRARY: LibraryThunk, KERNEL: KernelThunk, HOST: HostThunk}
    assert any(isinstance(t, kinds[TARGETS[case[0]]]) for t in walk(executable.sequence))  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", ["Softmax", "ScaleBiasSoftmax"])
@pytest.mark.parametrize("end", ["", "Backward"])
def test_attention_with_dropout_is_refused(form: str, end: str) -> None:
    text = program(f"__cudnn$fmha{form}Dropout{end}", "", "bf16[2,4,16,8]", "bf16[2,4,16,8]")
    with pytest.raises(HeronError, match="HLO171"):
        compile(heron.parse(text.replace("backend_config={}", 'backend_config={"fmha_scale":1}')), "sim:sm_90")


@pytest.mark.parametrize("target", [t for t, how in TARGETS.items() if how == REFUSED])
def test_refusals(target: str) -> None:
    with pytest.raises(HeronError, match="GEN011") as refused:
        compile(heron.parse(program(target, "", "f32[4]", "f32[4]")), "sim:sm_90")
    assert target in refused.value.what and refused.value.why


@pytest.mark.parametrize("machine", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("target", ["SliceToDynamic", "PadToStatic", "CheckSizes", "LuPivotsToPermutation", "TopK"])
def test_what_the_evaluator_alone_knows_is_refused(target: str, machine: str) -> None:
    """Code never goes to the evaluator because it happens to know a call: only what is listed does."""
    fits = target in ("CheckSizes", "LuPivotsToPermutation")
    code = "GEN011" if fits else "HLO172"  # calls that do not fit their form are not written out
    with pytest.raises(HeronError, match=code):
        compile(heron.parse(program(target, "", "s32[4]", "s32[4]")), machine)


def test_a_sparse_system() -> None:
    text = program(
        "cusolver_csrlsvqr_ffi", "reorder = 1 : i32, tol = 0.0 : f64", "f32[5] s32[5] s32[4] f32[3]", "f32[3]"
    )
    inputs = [
        np.array([2, 1, 3, 1, 4], np.float32), np.array([0, 2, 1, 0, 2], np.int32), np.array([0, 2, 3, 5], np.int32),
        np.array([1, 2, 3], np.float32),
    ]  # fmt: skip
    dense = np.array([[2, 0, 1], [0, 3, 0], [1, 0, 4]], np.float32)
    (found,) = compile(heron.parse(text), "sim:sm_90").run(inputs)
    np.testing.assert_allclose(dense @ found, inputs[3], rtol=1e-5)


def test_threefry() -> None:
    """The known answers of its authors, for (counter, key)."""
    known = {
        (0, 0, 0, 0): (0x6B200159, 0x99BA4EFE),
        (0xFFFFFFFF,) * 4: (0x1CB996FC, 0xBB002BE7),
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344): (0xC4923A9C, 0x483DF7A0),
    }
    module = heron.parse(program("cu_threefry2x32_ffi", "", "u32[3] u32[3] u32[3] u32[3]", "u32[3] u32[3]"))
    x1, x2, k1, k2 = np.array(list(known), np.uint32).T
    np.testing.assert_array_equal(np.stack(heron.evaluate(module, k1, k2, x1, x2), 1), list(known.values()))
