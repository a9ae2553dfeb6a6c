"""Ops that LLVM's backend for NVIDIA's GPUs computes wrongly (LLVM 22), written in another way.

- A shift of 64 bits that is 0 where the amount is too large: PTX's shift takes an amount of 32 bits and does that
  itself, so the backend drops the comparison, and with it the upper half of the amount. A masked amount keeps it.
- A float as an integer of one bit: the backend asks whether it is 0, where it should be whether it is not.
- A signed integer of one bit as bf16: -1 becomes 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from heron.codegen.ir.editing import constant_value, replace
from heron.codegen.ir.types import I8

_WIDE = 64


def _is(value: SSAValue, bits: int) -> bool:
    return isinstance(value.type, IntegerType) and value.type.width.data == bits


def _insert(
    block: Block, before: Operation, kind: type[Operation], operands: list[SSAValue], type_: Attribute
) -> SSAValue:
    new = kind.create(operands=operands, result_types=(type_,))
    block.insert_op_before(new, before)
    return new.results[0]


def _shift(block: Block, op: Operation) -> SSAValue | None:
    value, amount = op.operands
    if not _is(amount, _WIDE) or constant_value(amount) is not None:
        return None
    last = arith.ConstantOp.create(
        properties={"value": IntegerAttr(_WIDE - 1, IntegerType(_WIDE))}, result_types=(amount.type,)
    )
    block.insert_op_before(last, op)
    masked = _insert(block, op, arith.AndIOp, [amount, last.results[0]], amount.type)
    return _insert(block, op, type(op), [value, masked], value.type)


def _to_integer(block: Block, op: Operation) -> SSAValue | None:
    (result,) = op.results
    if not _is(result, 1):
        return None
    byte = _insert(block, op, type(op), [op.operands[0]], I8)
    return _insert(block, op, arith.TruncIOp, [byte], result.type)


def _of_integer(block: Block, op: Operation) -> SSAValue | None:
    (operand,) = op.operands
    if not _is(operand, 1):
        return None
    byte = _insert(block, op, arith.ExtSIOp, [operand], I8)
    return _insert(block, op, type(op), [byte], op.results[0].type)


#: the value in the place of an op's, where its types are those of a fault
FAULTS: Mapping[type[Operation], Callable[[Block, Operation], SSAValue | None]] = {
    arith.ShLIOp: _shift,
    arith.ShRUIOp: _shift,
    arith.ShRSIOp: _shift,
    arith.FPToSIOp: _to_integer,
    arith.FPToUIOp: _to_integer,
    arith.SIToFPOp: _of_integer,
}


def avoid(block: Block, result: SSAValue) -> SSAValue:
    """Rewrite the ops of a block; what ``result`` is then."""
    for op in list(block.ops):
        mend = FAULTS.get(type(op))
        new = mend(block, op) if mend else None
        if new is not None:
            result = new if result is op.results[0] else result
            replace(op, [new])
    return result
