"""gemm-broadcast-folding: one matrix for a whole batch is read once."""

from __future__ import annotations

import dataclasses

from heron.hlo.calls import gemm
from heron.hlo.ir.instruction import Instruction
from heron.passes.calls.model.gemm import call
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


@register
@dataclass(frozen=True)
class GemmBroadcastFolding(Expander):
    """Takes the broadcast of a matrix over the batch out of B of a product: the batch becomes rows of A.

    y = f32[4,8,2] broadcast(f32[8,2] m), dimensions={1,2}
    ROOT r = f32[4,3,2] custom-call(f32[4,3,8] x, y), custom_call_target="__cublas$lt$matmul",
      backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0"],"rhs_batch_dimensions":["0"]}}}
    ->
    ...
    ROOT r = f32[4,3,2] custom-call(x, m), custom_call_target="__cublas$lt$matmul"
    """  # noqa: E501

    name = "gemm-broadcast-folding"
    opcodes = frozenset({"custom-call"})
    constraints = (Constraint("gemm-rewriter", "gemm-broadcast-folding", "it mends the calls made there"),)

    def matches(self, i: Instruction) -> bool:
        if i.custom_call_target not in (gemm.GEMM, gemm.MATMUL) or [o.opcode for o in i.operands[1:2]] != ["broadcast"]:
            return False
        config, y = gemm.read(i), i.operands[1]
        kept = tuple(d for d in range(y.shape.rank) if d not in config.rhs_batch)
        rank = i.operands[0].shape.rank
        # the batch and the rows of A are the rows of one matrix only where nothing lies between them
        ordered = (*config.lhs_batch, *config.lhs_contracting) == (*range(len(config.lhs_batch)), rank - 1)
        return bool(config.rhs_batch) and ordered and y.attrs.get("dimensions", ()) == kept

    def expand(self, i: Instruction) -> Instruction:
        config, y = gemm.read(i), i.operands[1]
        kept = y.attrs["dimensions"]
        config = dataclasses.replace(
            config,
            lhs_batch=(),
            rhs_batch=(),
            rhs_contracting=tuple([kept.index(d) for d in config.rhs_contracting]),
            lhs_stride=i.operands[0].shape.num_elements,
        )
        return call(i, [i.operands[0], y.operands[0], *i.operands[2:]], i.shape, config, i.custom_call_target)
