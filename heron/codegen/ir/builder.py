"""Builder: appends xDSL ops to a block, as cheaply as xDSL lets one.

`b.op(arith.AddfOp, x, y)` creates an op whose result has the type of its first operand; constants are made once a
function and stand at its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from heron.codegen.ir.types import I1, I64, INDEX

_CMPI = {p: n for n, p in enumerate(("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"))}
_CMPF = {
    p: n
    for n, p in enumerate(
        "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()  # MLIR's numbering
    )
}
_NONE: dict[str, Attribute] = {}


@cache
def _predicate(kind: str, name: str) -> dict[str, Attribute]:
    return {"predicate": IntegerAttr((_CMPI if kind == "i" else _CMPF)[name], I64)}


@lru_cache(maxsize=4096)
def _integer(value: int, type_: Attribute) -> dict[str, Attribute]:
    attr = IntegerAttr(value, type_, truncate_bits=True)  # type: ignore[call-overload]
    return {"value": attr}


@lru_cache(maxsize=4096)
def _float(text: str, type_: Attribute) -> dict[str, Attribute]:
    return {"value": FloatAttr(float(text), type_)}  # type: ignore[arg-type]


class Builder:
    """Appends ops to ``block``. ``entry`` is the function's first block, where constants go."""

    __slots__ = ("block", "entry", "_constants", "count")

    def __init__(self, entry: Block) -> None:
        self.block = self.entry = entry
        self._constants: dict[tuple[Attribute, object], SSAValue] = {}
        self.count = 0

    def add(self, op: Operation) -> Operation:
        """Append an op made elsewhere."""
        self.count += 1
        self.block.add_op(op)
        return op

    def op(
        self,
        kind: type[Operation],
        *operands: SSAValue,
        type: Attribute | None = None,  # noqa: A002
        properties: dict[str, Attribute] = _NONE,
    ) -> SSAValue:
        """A new op with one result (of the first operand's type unless given); returns the result."""
        result = operands[0].type if type is None else type
        op = kind.create(operands=operands, result_types=(result,), properties=properties)
        self.count += 1
        self.block.add_op(op)
        return op.results[0]

    # -- constants -----------------------------------------------------------------------------------------------------
    def _constant(self, key: tuple[Attribute, object], properties: dict[str, Attribute]) -> SSAValue:
        op = arith.ConstantOp.create(result_types=(key[0],), properties=properties)
        self.count += 1
        first = self.entry.first_op
        if first is None:
            self.entry.add_op(op)
        else:
            self.entry.insert_op_before(op, first)
        self._constants[key] = result = op.results[0]
        return result

    def integer(self, value: int, type_: Attribute = INDEX) -> SSAValue:
        """An integer or index constant; `value` is taken modulo the type's width."""
        if isinstance(type_, IntegerType):
            value &= (1 << type_.width.data) - 1
        key = (type_, value)
        found = self._constants.get(key)
        return found if found is not None else self._constant(key, _integer(value, type_))

    def floating(self, value: float, type_: Attribute) -> SSAValue:
        """A float constant; -0.0 and 0.0 differ, NaN is the quiet one."""
        text = repr(value)
        key = (type_, text)
        found = self._constants.get(key)
        return found if found is not None else self._constant(key, _float(text, type_))

    def constant(self, attr: Attribute, type_: Attribute) -> SSAValue:
        """Any other constant attribute (dense tensors)."""
        key = (type_, attr)
        found = self._constants.get(key)
        return found if found is not None else self._constant(key, {"value": attr})

    # -- shorthands ----------------------------------------------------------------------------------------------------
    def cmpi(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """`arith.cmpi`: eq ne slt sle sgt sge ult ule ugt uge."""
        return self.op(arith.CmpiOp, a, b, type=I1, properties=_predicate("i", predicate))

    def cmpf(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """`arith.cmpf`: oeq ogt … une uno."""
        return self.op(arith.CmpfOp, a, b, type=I1, properties=_predicate("f", predicate))

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """`arith.select`."""
        return self.op(arith.SelectOp, condition, yes, no, type=yes.type)

    def negate(self, condition: SSAValue) -> SSAValue:
        """Logical not of an `i1`."""
        return self.op(arith.XOrIOp, condition, self.integer(1, I1))

    def drop_unused_constants(self) -> None:
        """Take out constants nothing came to use (a small float whose f32 form was used instead)."""
        for value in self._constants.values():
            if value.first_use is None:
                self.entry.erase_op(value.owner)  # type: ignore[arg-type]
                self.count -= 1
        self._constants = {}

    def terminate(self, kind: type[Operation], values: Sequence[SSAValue]) -> None:
        """End the block with a yield or return."""
        self.add(kind.create(operands=values))
