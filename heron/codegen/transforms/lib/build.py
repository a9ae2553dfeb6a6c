"""Helpers the transforms build ops with: cheap constructors, shared constants, value numbering.

xDSL takes about 25 µs to create an op, its declared constructors twice that, so these use `create` with attributes made
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from heron.analysis.indexing import IndexingMap
from heron.codegen.ir.dialects.indexing_map_attr import IndexingMapAttr
from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp

INDEX = IndexType()
I1, I32, I64 = i1, IntegerType(32), IntegerType(64)
NO_FLAGS: dict[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr("none")}
NSW: dict[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr((arith.IntegerOverflowFlag.NSW,))}
NSW_NUW: dict[str, Attribute] = {
    "overflowFlags": arith.IntegerOverflowAttr((arith.IntegerOverflowFlag.NSW, arith.IntegerOverflowFlag.NUW))
}
NO_PROPERTIES: dict[str, Attribute] = {}
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
Key: TypeAlias = tuple[object, ...]


@lru_cache(maxsize=4096)
def int_attr(value: int, type_: Attribute = INDEX) -> IntegerAttr:
    """`value : type_`, made once; `value` is taken modulo the type's width."""
    return IntegerAttr(value, type_, truncate_bits=True)  # pyright: ignore[reportArgumentType, reportCallIssue]


@lru_cache(maxsize=64)
def predicate(name: str) -> dict[str, Attribute]:
    """The properties of an `arith.cmpi` with this predicate."""
    return {"predicate": IntegerAttr(PREDICATES.index(name), i64)}


def constant(value: int, type_: Attribute = INDEX) -> arith.ConstantOp:
    """An integer (or index) constant op."""
    return arith.ConstantOp.create(result_types=(type_,), properties={"value": int_attr(value, type_)})


def float_constant(value: float, type_: Attribute) -> arith.ConstantOp:
    """A float constant op."""
    attr = FloatAttr(value, type_)  # pyright: ignore[reportArgumentType, reportCallIssue]
    return arith.ConstantOp.create(result_types=(type_,), properties={"value": attr})


def constant_value(value: SSAValue) -> int | None:
    """The integer `value` is known to be at compile time."""
    op = value.owner
    if isinstance(op, arith.ConstantOp):
        attr = op.properties["value"]
        if isinstance(attr, IntegerAttr):
            return attr.value.data
    return None


class Inserter:
    """Inserts ops before one op (or at the end of a block), reusing equal pure ops already in scope.

    Args:
        block, before: the place.
        known: value numbering: key -> value; chained scopes are copies made by the caller (`scope()`).
        constants: constants of the function, kept at its start.
    """

    __slots__ = ("before", "block", "constants", "known")

    def __init__(
        self, block: Block, before: Operation | None, known: dict[Key, SSAValue], constants: Constants
    ) -> None:
        self.block, self.before, self.known, self.constants = block, before, known, constants

    def insert(self, op: Operation) -> Operation:
        """Attaches `op` at the place."""
        if self.before is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, self.before)
        return op

    def const(self, value: int, type_: Attribute = INDEX) -> SSAValue:
        """The shared constant."""
        return self.constants.get(value, type_)

    def binary(
        self,
        op: type[Operation],
        lhs: SSAValue,
        rhs: SSAValue,
        properties: dict[str, Attribute] = NO_PROPERTIES,
        result: Attribute | None = None,
    ) -> SSAValue:
        """`op(lhs, rhs)`, or the equal value already in scope."""
        key = (op, lhs, rhs, id(properties))
        value = self.known.get(key)
        if value is None:
            new = op.create(operands=(lhs, rhs), result_types=(result or lhs.type,), properties=properties)
            value = self.known[key] = self.insert(new).results[0]
        return value

    def unary(
        self,
        op: type[Operation],
        operand: SSAValue,
        result: Attribute,
        properties: dict[str, Attribute] = NO_PROPERTIES,
    ) -> SSAValue:
        """`op(operand) : result`, or the equal value already in scope."""
        key = (op, operand, result)
        value = self.known.get(key)
        if value is None:
            new = op.create(operands=(operand,), result_types=(result,), properties=properties)
            value = self.known[key] = self.insert(new).results[0]
        return value

    def compare(self, name: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`arith.cmpi name, lhs, rhs`."""
        return self.binary(arith.CmpiOp, lhs, rhs, predicate(name), i1)

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """`arith.select`."""
        new = arith.SelectOp.create(operands=(condition, yes, no), result_types=(yes.type,))
        return self.insert(new).results[0]


class Constants:
    """The constants of one function body, created once each at the start of its entry block."""

    __slots__ = ("_block", "_known")

    def __init__(self, entry: Block) -> None:
        self._block = entry
        self._known: dict[tuple[int, Attribute], SSAValue] = {}
        op = entry.first_op
        while isinstance(op, arith.ConstantOp):
            attr = op.properties["value"]
            if isinstance(attr, IntegerAttr):
                self._known.setdefault((attr.value.data, attr.type), op.results[0])
            op = op.next_op

    def get(self, value: int, type_: Attribute = INDEX) -> SSAValue:
        """`value : type_`."""
        found = self._known.get((value, type_))
        if found is None:
            op = constant(value, type_)
            first = self._block.first_op
            if first is None:
                self._block.add_op(op)
            else:
                self._block.insert_op_before(op, first)
            found = self._known[(value, type_)] = op.results[0]
        return found


def functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    """The functions of the module that have a body."""
    for op in ops_of(module.body.block):
        if isinstance(op, func.FuncOp) and op.body.blocks:
            yield op


def function_table(module: ModuleOp) -> dict[str, func.FuncOp]:
    """Function by name, declarations included."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}


def declare(
    module: ModuleOp,
    table: dict[str, func.FuncOp],
    name: str,
    inputs: Sequence[Attribute],
    outputs: Sequence[Attribute],
) -> SymbolRefAttr:
    """A reference to the external function `name`, declared in the module when it is not yet."""
    if name not in table:
        op = func.FuncOp(name, (inputs, outputs), Region(), StringAttr("private"))
        module.body.block.add_op(op)
        table[name] = op
    return SymbolRefAttr(name)


def call(callee: SymbolRefAttr, arguments: Sequence[SSAValue], results: Sequence[Attribute]) -> func.CallOp:
    """`func.call @callee(arguments)`."""
    return func.CallOp.create(operands=arguments, result_types=results, properties={"callee": callee})


def apply_indexing(m: IndexingMap, operands: Sequence[SSAValue]) -> ApplyIndexingOp:
    """`xla_gpu.apply_indexing`."""
    properties = {"map": IndexingMapAttr(m)}
    return ApplyIndexingOp.create(operands=operands, result_types=[INDEX] * len(m.results), properties=properties)


def retype(value: SSAValue, type_: Attribute) -> None:
    """Change a value's type in place, its uses kept."""
    value._type = type_  # pyright: ignore[reportPrivateUsage]


def erase(op: Operation) -> None:
    """Detaches and drops an op whose results have no uses left."""
    op.detach()
    op.erase(safe_erase=False)


def replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """All uses of the op's results become `values`; the op goes."""
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    erase(op)


def ops_of(block: Block) -> list[Operation]:
    """The block's ops, which may then move and go. (`list(block.ops)` would walk them twice, to count them first.)"""
    return list(iter(block.ops))


def walk_blocks(block: Block) -> Iterator[Block]:
    """The block and every block nested in its ops, outer first."""
    yield block
    for op in ops_of(block):
        for region in op.regions:
            for inner in region.blocks:
                yield from walk_blocks(inner)


def scf_if(condition: SSAValue, types: Sequence[Attribute], then: Block, otherwise: Block | None = None) -> scf.IfOp:
    """`scf.if` with the given blocks (already ended by `scf.yield`)."""
    regions = [Region(then), Region(otherwise) if otherwise is not None else Region()]
    return scf.IfOp.create(operands=(condition,), result_types=types, regions=regions)


def yield_(values: Sequence[SSAValue] = ()) -> scf.YieldOp:
    """`scf.yield values`."""
    return scf.YieldOp.create(operands=values)


def scf_for(lb: SSAValue, ub: SSAValue, step: SSAValue, inits: Sequence[SSAValue], body: Block) -> scf.ForOp:
    """`scf.for` whose body block has the induction variable and carried values as arguments."""
    return scf.ForOp.create(
        operands=(lb, ub, step, *inits), result_types=[v.type for v in inits], regions=[Region(body)]
    )
