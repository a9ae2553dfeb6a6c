"""Calls whose arrays do not fit their declaration are refused when they are verified and when they are compiled.

Each declared call is tried with every size of every operand and result changed, and with dimensions more and fewer: the
verifier refuses it with HLO172, or it compiles and runs. NumPy's own errors at run time come from neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

import heron
from heron import HeronError
from heron.compiling import compile
from heron.hlo.calls.declared import CALLS, declaration
from heron.hlo.verifier import verify

_GEMM = '{{"gemm_backend_config":{{"dot_dimension_numbers":{{"lhs_contracting_dimensions":[{}],"rhs_contracting_dimensions":[{}],"lhs_batch_dimensions":[{}],"rhs_batch_dimensions":[{}]}},"beta":{},"epilogue":"{}"}}}}'  # noqa: E501
_CONV = '{"cudnn_conv_backend_config":{"activation_mode":"kRelu","conv_result_scale":1,"side_input_scale":1}}'
_FMHA = '{"cudnn_fmha_backend_config":{"fmha_scale":0.5,"mask_type":"CAUSAL"}}'
_NORM = '{{"cudnn_norm_backend_config":{{"epsilon":0.001,"kind":"{}"}}}}'


@dataclass(frozen=True)
class Sample:
    """A call that fits: its target, configuration, the element types and sizes of its arrays, other attributes."""

    target: str
    config: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    more: str = ""

    def __str__(self) -> str:
        return f"{self.target} {' '.join(self.operands)}"

    @property
    def text(self) -> str:
        lines = [f"p{n} = {s} parameter({n})" for n, s in enumerate(self.operands)]
        result = self.results[0] if len(self.results) == 1 else f"({', '.join(self.results)})"
        names = ", ".join(f"p{n}" for n in range(len(self.operands)))
        call = f'custom-call({names}), custom_call_target="{self.target}", backend_config={self.config}{self.more}'
        return "HloModule m\n\nENTRY main {\n" + "\n".join([*lines, f"ROOT r = {result} {call}"]) + "\n}\n"


def sample(target: str, config: str, arrays: str, more: str = "") -> Sample:
    """A sample by its arrays, ``f32[5,5] -> f32[5,5] s32[]``."""
    operands, results = arrays.split(" -> ")
    return Sample(target, config or "{}", tuple(operands.split()), tuple(results.split()), more)


_WINDOW = ", window={size=3x3 pad=1_1x1_1 stride=2x2}, dim_labels=b01f_o01i->b01f"
_TRIDIAGONAL = "f32[2,5] f32[2,5] f32[2,5] f32[2,5,3]"
SAMPLES = [
    sample("__cublas$gemm", _GEMM.format(2, 1, 0, 0, 0, "DEFAULT"), "f32[2,3,4] f32[2,4,5] -> f32[2,3,5] s8[0]"),
    sample(
        "__cublas$lt$matmul",
        _GEMM.format(1, 0, "", "", 1, "BIAS_GELU"),
        "f32[3,4] f32[4,5] f32[3,5] f32[5] -> f32[3,5]",
    ),
    sample("__cublas$lt$matmul", _GEMM.format(1, 0, "", "", 0, "GELU_AUX"), "f32[3,4] f32[4,5] -> f32[3,5] f32[3,5]"),
    sample(
        "__cublas$lt$matmul$f8",
        _GEMM.format(1, 1, "", "", 0, "DEFAULT"),
        "f8e4m3fn[16,32] f8e4m3fn[16,32] f32[] f32[] -> bf16[16,16]",
    ),
    sample(
        "__cudnn$convForward",
        "{}",
        "f32[2,8,7,4] f32[6,3,3,2] -> f32[2,4,4,6] u8[0]",
        _WINDOW + ", feature_group_count=2",
    ),
    sample(
        "__cudnn$convBiasActivationForward",
        _CONV,
        "f32[2,8,7,4] f32[6,3,3,4] f32[6] f32[2,4,4,6] -> f32[2,4,4,6]",
        _WINDOW,
    ),
    sample("__cudnn$convBackwardInput", "{}", "f32[2,4,4,6] f32[6,3,3,4] -> f32[2,8,7,4] u8[0]", _WINDOW),
    sample("__cudnn$convBackwardFilter", "{}", "f32[2,8,7,4] f32[2,4,4,6] -> f32[6,3,3,4] u8[0]", _WINDOW),
    sample(
        "__cudnn$convForward",
        "{}",
        "s8[2,2,8,7,4] s8[8,2,3,3,4] -> s8[2,2,4,4,4] u8[0]",
        ", window={size=3x3 pad=1_1x1_1 stride=2x2}, dim_labels=bf01_oi01->bf01",
    ),
    sample("__cudnn$fmhaSoftmax", _FMHA, "bf16[2,4,6,8] bf16[2,2,5,8] bf16[2,2,5,3] -> bf16[2,4,6,3] f32[2,4,6] u8[0]"),
    sample(
        "__cudnn$fmhaScaleBiasSoftmax",
        _FMHA,
        "f32[2,4,6,8] f32[2,4,5,8] f32[2,4,5,8] f32[1,4,6,5] -> f32[2,4,6,8] u8[0]",
    ),
    sample(
        "__cudnn$fmhaSoftmaxBackward",
        _FMHA,
        "f32[2,4,6,8] f32[2,4,5,8] f32[2,4,5,8] f32[2,4,6] f32[2,4,6,8] f32[2,4,6,8] -> f32[2,4,6,8] f32[2,4,5,8] f32[2,4,5,8] u8[0]",
    ),
    sample(
        "__cudnn$norm", _NORM.format("LAYER_FWD_INFER"), "f32[5,8,1,1] f32[1,8,1,1] f32[1,8,1,1] -> f32[5,8,1,1] u8[0]"
    ),
    sample(
        "__cudnn$norm",
        _NORM.format("LAYER_FWD_TRAIN"),
        "f32[5,8] f32[1,8] f32[1,8] -> f32[5,8] f32[5,1] f32[5,1] u8[0]",
    ),
    sample(
        "__cudnn$norm",
        _NORM.format("LAYER_BWD"),
        "f32[5,8] f32[1,8] f32[5,8] f32[5,1] f32[5,1] -> f32[5,8] f32[1,8] f32[1,8]",
    ),
    sample("__cublas$triangularSolve", '{"left_side":true,"lower":true}', "f32[4,4] f32[4,3] -> f32[4,3] s8[0]"),
    sample("__cublas$triangularSolve", '{"left_side":false}', "f32[2,4,4] f32[2,3,4] -> f32[2,3,4]"),
    sample("lapack_spotrf_ffi", "{uplo = 76 : ui8}", "f32[2,5,5] -> f32[2,5,5] s32[2]"),
    sample("lapack_strsm_ffi", "{side = 82 : ui8}", "f32[4,4] f32[3,4] -> f32[3,4]"),
    sample("lapack_cgetrf_ffi", "", "c64[2,5,4] -> c64[2,5,4] s32[2,4] s32[2]"),
    sample("lapack_sgeqrf_ffi", "", "f32[5,4] -> f32[5,4] f32[4]"),
    sample("lapack_sorgqr_ffi", "", "f32[5,4] f32[3] -> f32[5,4]"),
    sample("lapack_cheevd_ffi", "{mode = 86 : ui8, uplo = 76 : ui8}", "c64[4,4] -> c64[4,4] f32[4] s32[]"),
    sample("lapack_sgesdd_ffi", "{mode = 65 : ui8}", "f32[5,4] -> f32[5,4] f32[4] f32[5,5] f32[4,4] s32[]"),
    sample("lapack_sgesdd_ffi", "{mode = 83 : ui8}", "f32[3,4] -> f32[3,4] f32[3] f32[3,3] f32[3,4] s32[]"),
    sample("lapack_sgesvd_ffi", "{mode = 83 : ui8}", "f32[5,4] -> f32[5,4] f32[4] f32[5,4] f32[4,4] s32[]"),
    sample(
        "cusolver_gesvd_ffi",
        "{compute_uv = true, full_matrices = true}",
        "f32[5,4] -> f32[5,4] f32[4] f32[5,5] f32[4,4] s32[]",
    ),
    sample(
        "cusolver_gesvdj_ffi",
        "{compute_uv = true, full_matrices = false}",
        "f32[5,4] -> f32[5,4] f32[4] f32[5,4] f32[4,4] s32[]",
    ),
    sample(
        "cusolver_gesvd_ffi",  # as JAX writes it for a wide matrix where values alone are wanted
        "{compute_uv = false, full_matrices = true, transposed = true}",
        "f32[3,4] -> f32[3,4] f32[3] f32[] f32[] s32[]",
    ),
    sample(
        "cusolver_gesvd_ffi",
        "{compute_uv = true, full_matrices = false, transposed = true}",
        "f32[3,4] -> f32[3,4] f32[3] f32[3,4] f32[3,3] s32[]",
    ),
    sample("lapack_sgesdd_ffi", "{mode = 78 : ui8}", "f32[3,4] -> f32[3,4] f32[3] f32[3,3] f32[4,4] s32[]"),
    sample("cu_lu_pivots_to_permutation", "", "s32[2,3] -> s32[2,5]"),
    sample(
        "lapack_sgeev_ffi",
        "{compute_left = 86 : ui8, compute_right = 86 : ui8}",
        "f32[4,4] -> f32[4] f32[4] c64[4,4] c64[4,4] s32[]",
    ),
    sample("cuhybrid_eig_comp", "", "c64[2,4,4] -> c64[2,4] c64[2,4,4] c64[2,4,4] s32[2]"),
    sample("cusolver_geev_ffi", "{left = true, right = true}", "f32[4,4] -> f32[4,4] c64[4] f32[4,4] f32[4,4] s32[]"),
    sample(
        "lapack_sgees_ffi",
        "{mode = 86 : ui8, sort = 78 : ui8}",
        "f32[4,4] -> f32[4,4] f32[4,4] f32[4] f32[4] s32[] s32[]",
    ),
    sample("lapack_sgehrd_ffi", "{low = 1 : i32, high = 4 : i32}", "f32[4,4] -> f32[4,4] f32[3] s32[]"),
    sample("lapack_chetrd_ffi", "{uplo = 76 : ui8}", "c64[4,4] -> c64[4,4] f32[4] f32[3] c64[3] s32[]"),
    sample("cuhybrid_geqp3", "", "f32[5,3] s32[3] -> f32[5,3] s32[3] f32[3]"),
    sample("cusolver_ormqr_ffi", "{left = true, transpose = true}", "f32[5,3] f32[3] f32[5,2] -> f32[5,2]"),
    sample("cusolver_ormqr_ffi", "{left = false, transpose = false}", "f32[5,3] f32[3] f32[2,5] -> f32[2,5]"),
    sample("lapack_sgtsv_ffi", "", _TRIDIAGONAL + " -> f32[2,5] f32[2,5] f32[2,5] f32[2,5,3] s32[2]"),
    sample("cusparse_gtsv2_ffi", "", _TRIDIAGONAL + " -> f32[2,5,3]"),
    sample("cu_tridiagonal_solve_perturbed", "", _TRIDIAGONAL + " -> f32[2,5,3]"),
    sample("cusolver_syrk_ffi", "{transpose = true}", "f32[3,5] f32[5,5] f32[] f32[] -> f32[5,5]"),
    sample("cu_cholesky_update_ffi", "", "f32[4,4] f32[4] -> f32[4,4] f32[4]"),
    sample("cpu_csr_sparse_dense_ffi", "", "f32[5] s32[4] s32[5] f32[6,2] -> f32[3,2]"),
    sample("cu_threefry2x32_ffi", "", "u32[6] u32[6] u32[6] u32[6] -> u32[6] u32[6]"),
]


MANUAL_BORDERS = (
    "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape",
)  # fmt: skip


def test_every_form_has_a_sample() -> None:
    """But for sorts and scans by kernels, which passes make, calls that are written out, and borders of manual regions,
    which no program has when it is lowered."""
    known = {call.name for s in SAMPLES if (call := declaration(s.target)) is not None}
    written_out = {"top_k", "lu_pivots", "pad_to_static", "slice_to_dynamic", "qr", "householder", "eigh"}
    without = {"radix_sort", "scan", "csrlsvqr", *written_out, *MANUAL_BORDERS}
    assert {c.name for c in CALLS if c.form} - known == without


def changed(arrays: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The arrays with one size changed, or a dimension put in front or dropped, or the last two swapped."""
    for n, array in enumerate(arrays):
        kind, _, inside = array.rstrip("]").partition("[")
        dims = inside.split(",") if inside else []
        others = [[*dims[:d], str(int(size) + by), *dims[d + 1 :]] for d, size in enumerate(dims) for by in (1, -1)]
        others += [["2", *dims], dims[1:]] if dims else [["2"]]
        others += [[*dims[:-2], dims[-1], dims[-2]]] if len(dims) > 1 else []
        for other in others:
            if "-1" not in other and other != dims:
                yield (*arrays[:n], f"{kind}[{','.join(other)}]", *arrays[n + 1 :])


def variants(s: Sample) -> Iterator[Sample]:
    yield from (replace(s, operands=operands) for operands in changed(s.operands))
    yield from (replace(s, results=results) for results in changed(s.results))
    yield replace(s, operands=s.operands[:-1])
    yield replace(s, operands=(*s.operands, s.operands[-1]))
    yield replace(s, results=(*s.results, "f32[3]"))


def inputs(module: heron.Module) -> list[np.ndarray]:
    """Small numbers; of pivots each its own row."""
    rng, found = np.random.default_rng(3), []
    for p in module.entry.parameters:
        dims, dtype = p.shape.dims, p.shape.element_type.dtype
        if dtype.kind in "iu":
            found.append(np.zeros(dims, dtype))
            continue
        a = rng.standard_normal(dims)
        found.append((a + 3 * np.eye(dims[-2], dims[-1]) if len(dims) > 1 else a + 4).astype(dtype))
    return found


def runs(module: heron.Module) -> None:
    compile(module, "cpu").run(inputs(module))


@pytest.mark.parametrize("s", SAMPLES, ids=str)
def test_a_sample_fits(s: Sample) -> None:
    module = heron.parse(s.text)
    verify(module)
    runs(module)
    heron.evaluate(module, *inputs(module))


@pytest.mark.parametrize("s", SAMPLES, ids=str)
def test_other_sizes_are_refused_or_run(s: Sample) -> None:
    refused = 0
    for variant in variants(s):
        module = heron.parse(variant.text)
        try:
            verify(module)
            declaration(s.target).need_fit(next(i for i in module.instructions() if i.opcode == "custom-call"))  # type: ignore[union-attr]
        except HeronError as error:
            assert error.code in ("HLO171", "HLO172"), variant.text
            refused += 1
            for machine in ("cpu", "sim:sm_90"):
                with pytest.raises(HeronError):
                    compile(heron.parse(variant.text), machine)
            with pytest.raises(HeronError):
                heron.evaluate(module, *inputs(module))
        else:
            runs(module)
    assert refused


def test_a_result_is_stored_in_no_other_operand() -> None:
    """A product may be stored where the matrix is that is added to it, not where a factor is read."""
    square = replace(SAMPLES[1], operands=(*["f32[4,4]"] * 3, "f32[4]"), results=("f32[4,4]",))
    verify(heron.parse(replace(square, more=", output_to_operand_aliasing={{}: (2, {})}").text))
    with pytest.raises(HeronError, match="HLO172") as refused:
        verify(heron.parse(replace(square, more=", output_to_operand_aliasing={{}: (0, {})}").text))
    assert "cannot be stored in its operand 'lhs'" in (refused.value.why or "")
