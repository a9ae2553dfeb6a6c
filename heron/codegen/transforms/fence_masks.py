"""Infinities that leave elements out of a maximum or minimum stand behind a fence that LLVM does not see through.

LLVM drops the maximum with -inf and makes the loop's maximum one that is taken conditionally, which its vectoriser does
not know; a mask of -inf in front of a softmax is such a loop.

    %x = arith.select %c, %a, %minus_inf : f32
    %top = arith.maximumf %carried, %x : f32
    ->
    %kept = func.call @llvm.arithmetic.fence.f32(%minus_inf) : (f32) -> f32
    %x = arith.select %c, %a, %kept : f32
    %top = arith.maximumf %carried, %x : f32
"""

from __future__ import annotations

from math import inf

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from heron.codegen.ir.editing import call, declare, function_table, functions, ops_of, walk_blocks
from heron.codegen.transforms.options import TransformOptions

#: the value that an operation leaves out
_LEFT_OUT: dict[type[Operation], float] = {arith.MaximumfOp: -inf, arith.MinimumfOp: inf}
_FENCE: dict[type[Attribute], str] = {
    Float32Type: "llvm.arithmetic.fence.f32",
    Float64Type: "llvm.arithmetic.fence.f64",
}


def run(module: ModuleOp, options: TransformOptions | None = None) -> None:
    """Rewrites the module in place."""
    table = None
    for function in functions(module):
        for block in walk_blocks(function.body.block):
            for op in ops_of(block):
                left_out = _LEFT_OUT.get(type(op))
                masked = None if left_out is None else _masked(*op.operands)
                if masked is None:
                    continue
                table = function_table(module) if table is None else table
                for place, value in enumerate(masked.operands):
                    if _constant(value) == left_out:
                        masked.operands[place] = _fenced(module, table, block, masked, value)


def _fenced(module: ModuleOp, table: dict[str, FuncOp], block: Block, before: Operation, value: SSAValue) -> SSAValue:
    callee = declare(module, table, _FENCE[type(value.type)], [value.type], [value.type])
    new = call(callee, [value], [value.type])
    block.insert_op_before(new, before)
    return new.results[0]


def _masked(a: SSAValue, b: SSAValue) -> arith.SelectOp | None:
    """The select in the loop itself that a value carried by the loop is combined with."""
    if not isinstance(a, BlockArgument):
        a, b = b, a
    select = b.owner
    if isinstance(a, BlockArgument) and isinstance(select, arith.SelectOp) and select.parent_block() is a.owner:
        return select if type(b.type) in _FENCE else None
    return None


def _constant(value: SSAValue) -> float | None:
    """The value of a float constant."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, FloatAttr):
        return None
    return owner.value.value.data
