"""All custom calls that heron knows, by target."""

from __future__ import annotations

from heron.hlo.calls import (
    attention,
    bounds,
    convolution,
    gemm,
    lapack,
    markers,
    norm,
    python,
    radix_sort,
    scan,
    sparse,
    triangular,
)
from heron.hlo.calls.declaration import Call
from heron.hlo.ir.instruction import Instruction

_SPARSE = "sizes and transposes are in cuSPARSE's descriptor; jax_bcoo_cusparse_lowering=False writes it as HLO"
#: calls of programs as JAX writes them for CUDA that nothing here computes
REFUSED = (
    Call("triton", ("triton_kernel_call*",), refusal="Triton compiled its kernel for one GPU; heron compiles HLO"),
    Call("mosaic", ("mosaic_gpu*",), refusal="its kernel is code of Mosaic's; heron compiles HLO"),
    Call("cudnn_fusion", ("__cudnn$fusion*",), refusal="cuDNN alone knows what that fusion computes"),
    Call(
        "block_scaled_dot", ("__cudnn$blockScaledDot*",),
        refusal="heron's products have no scales of blocks", hint="write it as a scaled-dot",
    ),
    Call("rnn", ("cudnn_rnn*",), refusal="the layout of cuDNN's weights is not documented; a scan over cells is HLO"),
    Call("sparse", ("cusparse_csr*", "cusparse_coo*"), refusal=_SPARSE),
    Call(
        "python_on_gpu", ("xla_buffer_python_*",),
        refusal="such a function takes memory of a GPU; jax.pure_callback takes arrays",
    ),
)  # fmt: skip
#: calls that passes write out, or whose sizes the passes of dynamic sizes settle; the evaluator computes them
WRITTEN_OUT = (
    Call("top_k", ("TopK",), "x:T[*b,n] -> values:T[*b,k<=n], positions:s32[*b,k]"),
    Call("lu_pivots", ("LuPivotsToPermutation",), lapack.PIVOTS.form),
    *(lapack.QR, lapack.HOUSEHOLDER, lapack.EIGH),
    *(bounds.PAD, bounds.SLICE, Call("sizes", ("CheckSizes",))),
)
CALLS = (
    *(gemm.CALL, convolution.CALL, attention.CALL, norm.CALL, triangular.CALL, radix_sort.CALL, scan.CALL),
    *(*lapack.CALLS, *sparse.CALLS, *python.CALLS, *markers.CALLS, *WRITTEN_OUT, *REFUSED),
)

_BY_TARGET = {target: call for call in CALLS for target in call.spelled() if not target.endswith("*")}
_BY_BEGIN = tuple((target[:-1], call) for call in CALLS for target in call.targets if target.endswith("*"))


def declaration(target: str) -> Call | None:
    """The declaration of the call of that target; None for one that heron does not know."""
    if target in _BY_TARGET:
        return _BY_TARGET[target]
    return next((call for begin, call in _BY_BEGIN if target.startswith(begin)), None)


def takes_any_order(i: Instruction) -> bool:
    """Whether a custom call computes the same from arrays in any order in memory.

    Any other call reads and writes arrays in the orders it states; it may be somebody's handler, which gets addresses.
    """
    call = declaration(i.custom_call_target)
    return call is not None and call.any_order
