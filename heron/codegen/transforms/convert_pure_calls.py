"""xla_gpu.pure_call → func.call, one call for each function and index.

A pure call gives the same values at any place, so only the first of equal calls in scope remains; this holds for calls
with tensors too, since a tensor is a value. Later steps see ordinary calls.

    %a = xla_gpu.pure_call @f(%t, %i) ; %b = xla_gpu.pure_call @f(%t, %i)
    ->
    %a = func.call @f(%t, %i)         ; %b = %a

Calls are left where a large function has several callers: the rounds of a random number generator (`threefry`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from heron.codegen.ir.builder import Key
from heron.codegen.ir.dialects.xla_gpu import PureCallOp
from heron.codegen.ir.editing import call, functions, replace
from heron.codegen.transforms.options import TransformOptions


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Converts every pure call of the module."""
    for function in functions(module):
        _block(function.body.block, {})


def _block(block: Block, known: dict[Key, Sequence[SSAValue]]) -> None:
    op = block.first_op
    while op is not None:
        following = op.next_op
        if type(op) is PureCallOp:
            key = (op.callee, *op.operands)
            found = known.get(key)
            if found is None:
                new = call(op.callee, op.operands, [r.type for r in op.results])
                block.insert_op_before(new, op)
                found = known[key] = new.results
            replace(op, found)
        for region in op.regions:
            for inner in region.blocks:
                _block(inner, dict(known))
        op = following
