"""Arithmetic on float formats the target cannot compute in goes through f32.

f8 and f4 formats have no arithmetic anywhere; bf16 has none on CPUs (LLVM would call a library function per element).
No pipeline has it: emitters compute such formats in f32 themselves. It is for kernel text. Constants, selects, bit
casts and float-to-float conversions stay: the translation knows them for every format.

    %c = arith.addf %a, %b : bf16
    ->
    %0 = arith.extf %a : bf16 to f32 ; %1 = arith.extf %b : bf16 to f32
    %2 = arith.addf %0, %1 : f32     ; %c = arith.truncf %2 : f32 to bf16
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, Float64Type, ModuleOp
from xdsl.ir import Attribute, Block, Operation

from heron.codegen.ir.editing import functions, ops_of, replace, walk_blocks
from heron.codegen.llvm.types import SMALL_FLOATS
from heron.codegen.transforms.lib.math_names import F32, insert, widen
from heron.codegen.transforms.options import TransformOptions

_ARITHMETIC: frozenset[type[Operation]] = frozenset({
    arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp, arith.CmpfOp, arith.MaximumfOp,
    arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp, arith.SIToFPOp, arith.UIToFPOp, arith.FPToSIOp,
    arith.FPToUIOp, math.AbsFOp, math.CeilOp, math.FloorOp, math.RoundEvenOp, math.RoundOp, math.TruncOp,
    math.CopySignOp, math.FmaOp, math.SqrtOp,
})  # fmt: skip
_FROM_INTEGER = frozenset({arith.SIToFPOp, arith.UIToFPOp})


def run(module: ModuleOp, options: TransformOptions | None = None) -> None:
    """Rewrites the module in place."""
    on_cpu = options is None or options.target == "cpu"
    for function in functions(module):
        for block in walk_blocks(function.body.block):
            for op in ops_of(block):
                if type(op) in _ARITHMETIC and _needs_help(op, on_cpu):
                    _through_f32(block, op)


def _needs_help(op: Operation, on_cpu: bool) -> bool:
    for value in (*op.operands, *op.results):
        if value.type.name in SMALL_FLOATS:
            return True
        if on_cpu and isinstance(value.type, BFloat16Type):
            return True
    return False


def _through_f32(block: Block, op: Operation) -> None:
    """The same op on f32. An integer wider than f32's mantissa goes through f64: rounding twice there is harmless."""
    result = op.results[0].type
    compute: Attribute = F32
    if type(op) in _FROM_INTEGER:
        operands = list(op.operands)
        bits = getattr(operands[0].type, "bitwidth", 64)
        compute = Float64Type() if bits > 24 else F32
    else:
        operands = [widen(block, op, v, F32) for v in op.operands]
    is_float = result.name in SMALL_FLOATS or isinstance(result, BFloat16Type)
    new = type(op).create(
        operands=operands,
        result_types=(compute if is_float else result,),
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )
    block.insert_op_before(new, op)
    value = new.results[0]
    replace(op, [insert(block, op, arith.TruncFOp, value, result) if is_float else value])
