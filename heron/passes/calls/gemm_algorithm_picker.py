"""gemm-algorithm-picker: which of the library's proposals a product is computed by."""

from __future__ import annotations

import dataclasses

from heron.hlo.calls import gemm
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.measured import CUBLASLT, algorithm
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class GemmAlgorithmPicker(Pass):
    """Notes on products which of cuBLASLt's proposals for them is taken: what the lock file has, else its first.

    The library is asked for its proposals on the device alone, by `heron tune`, which measures them. A number counts
    them from its best guess on; those that want more scratch memory than the call may have are none.

    ROOT r = f32[8,2] custom-call(f32[8,4] x, f32[4,2] y), custom_call_target="__cublas$lt$matmul",
      backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}
    ->
    ...
    ROOT r = f32[8,2] custom-call(x, y), custom_call_target="__cublas$lt$matmul"
    """  # noqa: E501

    name = "gemm-algorithm-picker"
    constraints = (
        Constraint("gemm-rewriter", "gemm-algorithm-picker", "it goes on from the calls made there"),
        Constraint("gemm-broadcast-folding", "gemm-algorithm-picker", "strides of operands are part of the question"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in [i for i in module.instructions() if i.opcode == "custom-call"]:
            if i.custom_call_target not in gemm.TARGETS:
                continue
            config = gemm.read(i)
            if config.selected >= 0:
                continue
            chosen = algorithm(i, CUBLASLT, 0, ctx)
            i.extras["backend_config"] = str(dataclasses.replace(config, selected=chosen))
            i.mark_changed()
            changed = True
        return changed
