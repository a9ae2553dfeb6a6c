"""cuBLASLt's calls as a recording keeps them: handles, layouts, attributes, pointers; plans are made once."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from heron import HeronError
from heron.hlo.calls.gemm_shape import GemmShape
from heron.hlo.ir.types import BF16, F8E4M3FN, F32, S8, S32
from heron.runtime.cuda.libraries.base import Proposal
from heron.runtime.cuda.libraries.cublaslt import CublasLt, Matmul, stored
from heron.runtime.cuda.libraries.recording import Recording
from heron.runtime.library_call import Array


def propose(*arguments: Any) -> None:
    """Stands in for the query: one kernel, which wants 4096 bytes."""
    proposals, found = arguments[8], arguments[9]
    proposals[0].workspace = 4096
    found._obj.value = 1


def library() -> tuple[CublasLt, Recording]:
    functions = Recording("cublaslt", answers={"cublasLtMatmulAlgoGetHeuristic": propose})
    return CublasLt(lambda stream, size: 0xF000, functions), functions


PLAIN = Matmul(
    (Array(BF16, (8, 32)), Array(BF16, (32, 16)), Array(BF16, (8, 16))), GemmShape(1, 8, 16, 32, False, False), "f32", 2
)


def test_text() -> None:
    assert str(PLAIN) == (
        "cublaslt.matmul(bf16[8,32], bf16[32,16], bf16[8,16]; shape=[8,32]@[32,16], compute=f32, out=2)"
    )


def test_a_plain_product_is_asked_for_as_its_transpose() -> None:
    lib, functions = library()
    lib.call(7, [0xA, 0xB, 0xC], PLAIN)
    calls = [c for c in functions.calls if "Layout" in c or c.startswith("cublasLtMatmul(")]
    assert [c.split("(")[1] for c in calls[:3]] == [
        "&3, 14, 16, 32, 16)",  # the rhs: 32 columns of 16
        "&4, 14, 32, 8, 32)",  # the lhs: 8 columns of 32
        "&5, 14, 16, 8, 16)",
    ]
    last = functions.calls[-1]
    assert last.startswith(f"cublasLtMatmul(1, 2, &1.0, {0xB}, 3, {0xA}, 4, &0.0, {0xC}, 5, {0xC}, 5, ")
    assert last.endswith(f"{0xF000}, 4096, 7)")


def test_a_plan_is_made_once_and_given_back() -> None:
    lib, functions = library()
    assert lib.prepare(PLAIN) == 4096
    before = len(functions.calls)
    lib.call(7, [1, 2, 3], PLAIN)
    lib.call(7, [4, 5, 6], PLAIN)
    assert len(functions.calls) == before + 2
    lib.close()
    assert [c.split("(")[0] for c in functions.calls[-5:]] == [
        *["cublasLtMatrixLayoutDestroy"] * 3,
        "cublasLtMatmulDescDestroy",
        "cublasLtDestroy",
    ]


def test_bias_and_matrix_bias_are_pointers() -> None:
    arrays = tuple(Array(F32, d) for d in ((8, 32), (32, 16), (8, 16), (16,), (8, 16)))
    d = Matmul(arrays, GemmShape(1, 8, 16, 32, False, False), "f32", 4, 1.0, 1.0, "BIAS_GELU", c=2, bias=3)
    lib, functions = library()
    lib.call(0, [1, 2, 3, 4, 5], d)
    attributes = [c for c in functions.calls if c.startswith("cublasLtMatmulDescSetAttribute")]
    assert "cublasLtMatmulDescSetAttribute(2, 7, &36, 4)" in attributes
    assert attributes[-1] == "cublasLtMatmulDescSetAttribute(2, 8, &4, 8)"
    assert ", &1.0, 3, 5, 5, 5, " in functions.calls[-1]


def test_batches_have_strides() -> None:
    arrays = tuple(Array(F32, d) for d in ((4, 8, 32), (32, 16), (4, 8, 16)))
    d = Matmul(arrays, GemmShape(4, 8, 16, 32, False, False), "tf32", 2, rhs_stride=0)
    lib, functions = library()
    lib.prepare(d)
    strides = [c for c in functions.calls if "LayoutSetAttribute" in c and ", 6, " in c]
    assert [c.split("&")[1].split(",")[0] for c in strides] == ["0", "256", "128"]
    assert functions.calls[1].startswith("cublasLtMatmulDescCreate(&2, 77, 0)")


@pytest.mark.parametrize("lhs", [False, True])
@pytest.mark.parametrize("rhs", [False, True])
def test_transposed_operands(lhs: bool, rhs: bool) -> None:
    a, b, out, _ = stored(Matmul((), GemmShape(1, 2, 3, 5, lhs, rhs), "f32", 2))
    assert (a.rows, a.columns) == ((5, 3) if rhs else (3, 5)) and a.is_transposed == rhs
    assert (b.rows, b.columns) == ((2, 5) if lhs else (5, 2)) and b.is_transposed == lhs
    assert (out.rows, out.columns) == (3, 2)


def test_a_column_major_result_swaps_nothing() -> None:
    a, b, out, is_lhs_first = stored(Matmul((), GemmShape(1, 2, 3, 5, False, False, True), "f32", 2))
    assert is_lhs_first and a.is_transposed and b.is_transposed
    assert ((a.rows, a.columns), (b.rows, b.columns), (out.rows, out.columns)) == ((5, 2), (3, 5), (2, 3))


def test_integers_have_integer_factors() -> None:
    arrays = Array(S8, (8, 32)), Array(S8, (32, 16)), Array(S32, (8, 16))
    lib, functions = library()
    lib.call(0, [1, 2, 3], Matmul(arrays, GemmShape(1, 8, 16, 32, False, False), "s32", 2))
    assert functions.calls[1] == "cublasLtMatmulDescCreate(&2, 72, 10)"
    assert functions.calls[-1].startswith("cublasLtMatmul(1, 2, &1, 2, 3, 1, 4, &0, ")


def test_a_product_nobody_has_a_kernel_for_is_an_error() -> None:
    functions = Recording("cublaslt", answers={"cublasLtMatmulAlgoGetHeuristic": lambda *_: None})
    with pytest.raises(HeronError) as error:
        CublasLt(None, functions).prepare(PLAIN)
    assert error.value.code == "RUN091"


def test_scratch_memory_is_asked_for() -> None:
    functions = Recording("cublaslt", answers={"cublasLtMatmulAlgoGetHeuristic": propose})
    with pytest.raises(HeronError) as error:
        CublasLt(None, functions).call(0, [1, 2, 3], PLAIN)
    assert error.value.code == "RUN092"


def test_proposals_keep_to_the_limit_that_the_library_is_told() -> None:
    """In its order; one that it says it cannot do is none."""

    def several(*arguments: Any) -> None:
        proposals, found = arguments[8], arguments[9]
        found._obj.value = min(4, arguments[7].value)
        for n in range(found._obj.value):
            proposals[n].workspace = 1024 * n
            proposals[n].status = 15 if n == 2 else 0

    functions = Recording("cublaslt", answers={"cublasLtMatmulAlgoGetHeuristic": several})
    lib = CublasLt(None, functions)
    assert lib.proposals(PLAIN, 8) == [Proposal(0, 0), Proposal(1, 1024), Proposal(3, 3072)]
    assert lib.proposals(PLAIN, 2) == [Proposal(0, 0), Proposal(1, 1024)]
    told = [c.partition(", ")[2] for c in functions.calls if c.startswith("cublasLtMatmulPreferenceSetAttribute")]
    limits = [f"1, &{32 << 20}, 8)", *[f"{n}, &128, 4)" for n in (5, 6, 7, 8)]]
    assert told == limits * (len(told) // 5) and told
    assert lib.prepare(dataclasses.replace(PLAIN, candidate=1)) == 1024


def test_a_proposal_that_the_library_cannot_do_is_not_taken() -> None:
    def second_fails(*arguments: Any) -> None:
        proposals, found = arguments[8], arguments[9]
        found._obj.value = min(2, arguments[7].value)
        for n in range(found._obj.value):
            proposals[n].workspace, proposals[n].status = 1024 * (n + 1), 15 * n

    lib = CublasLt(None, Recording("cublaslt", answers={"cublasLtMatmulAlgoGetHeuristic": second_fails}))
    assert lib.prepare(dataclasses.replace(PLAIN, candidate=1)) == 1024


def test_a_result_of_eight_bits_is_added_to_in_bf16() -> None:
    """cuBLASLt has no C of 8-bit floats, also where nothing is added."""
    lib, functions = library()
    arrays = (Array(F8E4M3FN, (16, 32)), Array(F8E4M3FN, (32, 16)), Array(F8E4M3FN, (16, 16)))
    lib.call(7, [0xA, 0xB, 0xC], Matmul(arrays, GemmShape(1, 16, 16, 32, False, False), "f32", 2))
    made = [c for c in functions.calls if c.startswith("cublasLtMatrixLayoutCreate")]
    assert [c.split(", ")[1] for c in made] == ["28", "28", "28", "14"]
    d, c = made[2].split("&")[1].split(",")[0], made[3].split("&")[1].split(",")[0]
    assert f"&0.0, {0xC}, {c}, {0xC}, {d}, " in functions.calls[-1]
    lib.close()
    assert sum(x.startswith("cublasLtMatrixLayoutDestroy") for x in functions.calls) == 4
