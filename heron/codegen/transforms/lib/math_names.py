"""The math.* ops that become function calls, and the rewrite into a call.

Both math lowerings share this: they differ only in how a function is called for a type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import arith, llvm, math
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from heron.codegen.ir.editing import call, declare, function_table, functions, ops_of, replace, walk_blocks
from heron.codegen.llvm.types import is_float

F32 = Float32Type()
#: the function to call for an op's function and type; None: LLVM's instruction stays
Namer = Callable[[str, Attribute, Operation], str | None]
#: ops that are functions, not instructions
FUNCTIONS: dict[type[Operation], str] = {
    math.ExpOp: "exp", math.Exp2Op: "exp2", math.ExpM1Op: "expm1", math.LogOp: "log", math.Log1pOp: "log1p",
    math.Log2Op: "log2", math.Log10Op: "log10", math.PowFOp: "pow", math.SinOp: "sin", math.CosOp: "cos",
    math.TanOp: "tan", math.TanhOp: "tanh", math.SinhOp: "sinh", math.CoshOp: "cosh", math.AsinOp: "asin",
    math.AcosOp: "acos", math.AtanOp: "atan", math.Atan2Op: "atan2", math.AsinhOp: "asinh", math.AcoshOp: "acosh",
    math.AtanhOp: "atanh", math.ErfOp: "erf", math.CbrtOp: "cbrt", math.RsqrtOp: "rsqrt",
    llvm.FRemOp: "fmod",
}  # fmt: skip
#: the value in the place of an op's, or None to leave the op
Rewrite = Callable[[Block, Operation], SSAValue | None]
_NONE: Mapping[type[Operation], Rewrite] = {}
_ALL = frozenset({*FUNCTIONS, math.IPowIOp, math.FPowIOp})


def lower_to_calls(module: ModuleOp, namer: Namer, others: Mapping[type[Operation], Rewrite] = _NONE) -> None:
    """Every op of `FUNCTIONS` becomes ``func.call @namer(function, type, op)``; formats below f32 compute in f32.

    ``others``: what rewrites ops of other kinds on the way.
    """
    table = None
    for function in functions(module):
        for block in walk_blocks(function.body.block):
            for op in ops_of(block):
                if type(op) not in _ALL:
                    other = others.get(type(op))
                    if other is not None and (value := other(block, op)) is not None:
                        replace(op, [value])
                    continue
                table = function_table(module) if table is None else table
                _lower(module, table, block, op, namer)


def _lower(module: ModuleOp, table: dict, block: Block, op: Operation, namer: Namer) -> None:
    type_ = op.results[0].type
    operands: list[SSAValue] = list(op.operands)
    if isinstance(op, math.IPowIOp):
        assert isinstance(type_, IntegerType)
        name, compute = f"heron.ipow.i{type_.width.data}", type_
    else:
        compute = type_ if isinstance(type_, Float64Type) else F32
        if isinstance(op, math.FPowIOp):
            operands[1] = insert(block, op, arith.SIToFPOp, operands[1], compute)
        name = namer("pow" if isinstance(op, math.FPowIOp) else FUNCTIONS[type(op)], compute, op)
        if name is None:
            return
        operands = [widen(block, op, v, compute) for v in operands]
    callee = declare(module, table, name, [v.type for v in operands], [compute])
    new = call(callee, operands, [compute])
    block.insert_op_before(new, op)
    result = new.results[0]
    if compute != type_:
        result = insert(block, op, arith.TruncFOp, result, type_)
    replace(op, [result])


def insert(block: Block, before: Operation, kind: type[Operation], operand: SSAValue, result: Attribute) -> SSAValue:
    """A one-operand op before another."""
    new = kind.create(operands=(operand,), result_types=(result,))
    block.insert_op_before(new, before)
    return new.results[0]


def widen(block: Block, before: Operation, value: SSAValue, target: Attribute) -> SSAValue:
    """The value as `target`, through arith.extf when it is a narrower float."""
    if value.type == target or not is_float(value.type):
        return value
    return insert(block, before, arith.ExtFOp, value, target)
