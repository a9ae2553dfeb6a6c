"""The builder of MLIR (xDSL) code: adds ops at one place of a function.

xDSL takes about 25 µs to create an op, its declared constructors twice that, so ops are made with `create`, from
attributes made once. Constants are made once a function and stand at its start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from heron.codegen.ir import origins
from heron.codegen.ir.types import I1, I64, INDEX

#: what value numbering compares
Key: TypeAlias = tuple[object, ...]
Properties: TypeAlias = dict[str, Attribute]

NO_PROPERTIES: Properties = {}
NO_FLAGS: Properties = {"overflowFlags": arith.IntegerOverflowAttr("none")}
NSW: Properties = {"overflowFlags": arith.IntegerOverflowAttr((arith.IntegerOverflowFlag.NSW,))}
NSW_NUW: Properties = {
    "overflowFlags": arith.IntegerOverflowAttr((arith.IntegerOverflowFlag.NSW, arith.IntegerOverflowFlag.NUW))
}
#: the predicates of `arith.cmpi` and `arith.cmpf`, in MLIR's numbering
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = tuple("false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split())


@cache
def _predicate(names: tuple[str, ...], name: str) -> Properties:
    return {"predicate": IntegerAttr(names.index(name), I64)}


@lru_cache(maxsize=4096)
def int_attr(value: int, type_: Attribute = INDEX) -> IntegerAttr:
    """`value : type_`, made once; `value` is taken modulo the type's width."""
    return IntegerAttr(value, type_, truncate_bits=True)  # pyright: ignore[reportArgumentType, reportCallIssue]


@lru_cache(maxsize=4096)
def _integer(value: int, type_: Attribute) -> Properties:
    return {"value": int_attr(value, type_)}


@lru_cache(maxsize=4096)
def _float(text: str, type_: Attribute) -> Properties:
    return {"value": FloatAttr(float(text), type_)}  # pyright: ignore[reportArgumentType, reportCallIssue]


def integer_constant(value: int, type_: Attribute = INDEX) -> arith.ConstantOp:
    """An integer or index constant at no place yet."""
    return arith.ConstantOp.create(result_types=(type_,), properties=_integer(value, type_))


def integer_comparison(predicate: str, lhs: SSAValue, rhs: SSAValue) -> arith.CmpiOp:
    """`arith.cmpi` at no place yet; see `INTEGER_PREDICATES`."""
    properties = _predicate(INTEGER_PREDICATES, predicate)
    return arith.CmpiOp.create(operands=(lhs, rhs), result_types=(I1,), properties=properties)


class Constants:
    """The constants of one function, made once each at the start of its first block, ``entry``."""

    __slots__ = ("_entry", "_known")

    def __init__(self, entry: Block) -> None:
        self._entry = entry
        self._known: dict[Key, SSAValue] = {}
        op = entry.first_op
        while isinstance(op, arith.ConstantOp):
            attr = op.properties["value"]
            if isinstance(attr, IntegerAttr):
                self._known.setdefault(_integer_key(attr.value.data, attr.type), op.results[0])
            op = op.next_op

    def integer(self, value: int, type_: Attribute = INDEX) -> SSAValue:
        """An integer or index constant; `value` is taken modulo the type's width."""
        key = _integer_key(value, type_)
        return self._known.get(key) or self._make(key, type_, _integer(value, type_))

    def floating(self, value: float, type_: Attribute) -> SSAValue:
        """A float constant; -0.0 and 0.0 differ, NaN is the quiet one."""
        key = type_, (text := repr(value))
        return self._known.get(key) or self._make(key, type_, _float(text, type_))

    def dense(self, attr: Attribute, type_: Attribute) -> SSAValue:
        """A constant tensor."""
        key = type_, attr
        return self._known.get(key) or self._make(key, type_, {"value": attr})

    def drop_unused(self) -> None:
        """Erase the constants that nothing uses (a small float whose f32 form was used instead)."""
        for key, value in list(self._known.items()):
            if value.first_use is None:
                self._entry.erase_op(self._known.pop(key).owner)  # pyright: ignore[reportArgumentType]

    def _make(self, key: Key, type_: Attribute, properties: Properties) -> SSAValue:
        op = arith.ConstantOp.create(result_types=(type_,), properties=properties)
        first = self._entry.first_op
        if first is None:
            self._entry.add_op(op)
        else:
            self._entry.insert_op_before(op, first)
        self._known[key] = result = op.results[0]
        return result


def _integer_key(value: int, type_: Attribute) -> Key:
    if type(type_) is IntegerType:
        value &= (1 << type_.width.data) - 1
    return type_, value


class Builder:
    """Adds ops to ``block``: at its end, or in front of the op ``before``.

    Args:
        block: the place; without ``constants`` it is the first block of a new function.
        constants: those of the function that `block` belongs to.
        before: the op to insert in front of, which may change while building.
        known: numbers the values that `op` makes, so that an equal one in scope is used again; without it every call
            makes an op. A nested scope takes a copy.
    """

    __slots__ = ("before", "block", "constants", "known")

    def __init__(
        self,
        block: Block,
        constants: Constants | None = None,
        *,
        before: Operation | None = None,
        known: dict[Key, SSAValue] | None = None,
    ) -> None:
        self.block, self.before, self.known = block, before, known
        self.constants = constants if constants is not None else Constants(block)

    def add(self, op: Operation) -> Operation:
        """Insert an op made elsewhere."""
        if origins.noted is not None:
            origins.noted.note(op, self.before)
        if self.before is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, self.before)
        return op

    def op(
        self,
        kind: type[Operation],
        *operands: SSAValue,
        type: Attribute | None = None,  # noqa: A002
        properties: Properties = NO_PROPERTIES,
    ) -> SSAValue:
        """The result of an op with one result, of the first operand's type unless given.

        Where values are numbered, `properties` is one of the dictionaries that are made once.
        """
        result = operands[0].type if type is None else type
        if self.known is None:
            return self.add(kind.create(operands=operands, result_types=(result,), properties=properties)).results[0]
        key = (kind, operands, result, id(properties))
        return self.once(key, lambda: kind.create(operands=operands, result_types=(result,), properties=properties))

    def once(self, key: Key, make: Callable[[], Operation]) -> SSAValue:
        """The result of the op that `make` gives, made once a scope under `key`."""
        value = self.known.get(key) if self.known is not None else None
        if value is None:
            value = self.add(make()).results[0]
            if self.known is not None:
                self.known[key] = value
        return value

    def nested_scope(self) -> dict[Key, SSAValue]:
        """The values that a nested block may use again."""
        return dict(self.known or {})

    def integer(self, value: int, type_: Attribute = INDEX) -> SSAValue:
        """An integer or index constant; `value` is taken modulo the type's width."""
        return self.constants.integer(value, type_)

    def floating(self, value: float, type_: Attribute) -> SSAValue:
        """A float constant; -0.0 and 0.0 differ, NaN is the quiet one."""
        return self.constants.floating(value, type_)

    def cmpi(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`arith.cmpi`; see `INTEGER_PREDICATES`."""
        return self.op(arith.CmpiOp, lhs, rhs, type=I1, properties=_predicate(INTEGER_PREDICATES, predicate))

    def cmpf(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`arith.cmpf`; see `FLOAT_PREDICATES`."""
        return self.op(arith.CmpfOp, lhs, rhs, type=I1, properties=_predicate(FLOAT_PREDICATES, predicate))

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """`arith.select`."""
        return self.op(arith.SelectOp, condition, yes, no, type=yes.type)

    def negate(self, condition: SSAValue) -> SSAValue:
        """Logical not of an `i1`."""
        return self.op(arith.XOrIOp, condition, self.integer(1, I1))

    def terminate(self, kind: type[Operation], values: Sequence[SSAValue]) -> None:
        """End the block with a yield or return."""
        self.add(kind.create(operands=values))
