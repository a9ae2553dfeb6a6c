"""triangular-solve-rewriter: solves as calls of cuBLAS."""

from __future__ import annotations

import json
from math import prod

from heron.hlo.calls.triangular import TARGET
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import C64, C128, F32, F64, S8
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass

_POINTERS = 16  # bytes a matrix of a batch: where it is, and where its right side is


@register
@dataclass(frozen=True)
class TriangularSolveRewriter(Expander):
    """Rewrites triangular solves to the calls of cuBLAS that XLA:GPU prints; the second result is scratch memory.

    No pipeline has it: code for the op calls cuBLAS as well.

    ROOT r = f32[4,2] triangular-solve(f32[4,4] a, f32[4,2] b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
    ->
    c = (f32[4,2], s8[0]) custom-call(a, b), custom_call_target="__cublas$triangularSolve",
      backend_config={"left_side":true,"lower":true,"unit_diagonal":false,"transpose_a":"NO_TRANSPOSE"}
    ROOT r = f32[4,2] get-tuple-element(c), index=0
    """

    name = "triangular-solve-rewriter"
    opcodes = frozenset({"triangular-solve"})

    def matches(self, i: Instruction) -> bool:
        return i.shape.element_type in (F32, F64, C64, C128)

    def expand(self, i: Instruction) -> Instruction:
        c, count = home(i), prod(i.shape.dims[:-2])
        scratch = array(S8, (_POINTERS * count if count > 1 else 0,))
        made = c.add("custom-call", i.operands, shapes.tuple_([i.shape, scratch]), like=i, custom_call_target=TARGET)
        given = {
            "left_side": i.left_side,
            "lower": i.lower,
            "unit_diagonal": i.unit_diagonal,
            "transpose_a": i.transpose_a or "NO_TRANSPOSE",
        }
        made.extras["backend_config"] = json.dumps(given, separators=(",", ":"))
        return c.add("get-tuple-element", [made], i.shape, like=i, index=0)
