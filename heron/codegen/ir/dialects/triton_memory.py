"""Pointers, loads and stores of Triton's `tt` dialect, and its descriptors of tiles, spelled as Triton 3.6 spells them.

Pointers are scalars or tensors of them. Source: https://triton-lang.org/main/dialects/TritonDialect.html.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerType,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure


@irdl_attr_definition
class PtrType(ParametrizedAttribute, TypeAttribute):
    """A pointer into the GPU's global memory: `!tt.ptr<bf16>`."""

    name = "tt.ptr"
    pointee: Attribute


@irdl_attr_definition
class TensorDescType(ParametrizedAttribute, TypeAttribute):
    """A descriptor by which the copy engine fetches a tile: `!tt.tensordesc<tensor<128x64xbf16>>`."""

    name = "tt.tensordesc"
    tile: TensorType


def pointee(type_: Attribute) -> Attribute:
    """The type that a pointer, or a tensor of pointers, points to."""
    inner = type_.element_type if isinstance(type_, TensorType) else type_
    assert isinstance(inner, PtrType)
    return inner.pointee


@irdl_op_definition
class AddPtrOp(IRDLOperation):
    """Pointers moved by a number of elements."""

    name = "tt.addptr"
    ptr = operand_def()
    offset = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list([v.type for v in self.operands], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> AddPtrOp:
        operands = _operands_with_types(parser)
        return cls.create(operands=operands, result_types=[operands[0].type])


def _operands_with_types(parser: Parser) -> Sequence[SSAValue]:
    names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
    return parser.resolve_operands(names, types, parser.pos)


def _with_shape(type_: Attribute, element: Attribute) -> Attribute:
    """`element`, or a tensor of it of the shape `type_` has."""
    return TensorType(element, type_.get_shape()) if isinstance(type_, TensorType) else element


def _print_access(printer: Printer, op: Operation) -> None:
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    printer.print_string(" : ")
    printer.print_attribute(op.operands[0].type)


def _parse_access(parser: Parser, roles: str) -> list[SSAValue]:
    """Operands with the types that a pointer's type gives them: ``p`` pointer, ``v`` value, ``m`` mask."""
    names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    kinds = {"p": type_, "v": _with_shape(type_, pointee(type_)), "m": _with_shape(type_, IntegerType(1))}
    return [parser.resolve_operand(n, kinds[role]) for n, role in zip(names, roles, strict=False)]


@irdl_op_definition
class LoadOp(IRDLOperation):
    """The values that pointers point to; `other` where the mask is off."""

    name = "tt.load"
    ptr = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, operands: Sequence[SSAValue]) -> None:
        sizes = [1 if n < len(operands) else 0 for n in range(3)]
        type_ = operands[0].type
        Operation.__init__(
            self,
            operands=operands,
            result_types=[_with_shape(type_, pointee(type_))],
            properties={"operandSegmentSizes": DenseArrayBase.from_list(i32, sizes)},
        )

    def print(self, printer: Printer) -> None:
        _print_access(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        return cls(_parse_access(parser, "pmv"))


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Write through pointers where the mask is on."""

    name = "tt.store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()

    def __init__(self, operands: Sequence[SSAValue]) -> None:
        Operation.__init__(self, operands=operands)

    def print(self, printer: Printer) -> None:
        _print_access(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        return cls(_parse_access(parser, "pvm"))


@irdl_op_definition
class MakeTensorDescriptorOp(IRDLOperation):
    """A descriptor of the matrix at a pointer: rows and columns, and how many elements these are apart. Elements of
    a tile that lie outside are zeros."""

    name = "tt.make_tensor_descriptor"
    base = operand_def(PtrType)
    sizes = var_operand_def()
    strides = var_operand_def()
    result = result_def(TensorDescType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self, base: SSAValue, sizes: Sequence[SSAValue], strides: Sequence[SSAValue], tile: TensorType
    ) -> None:
        super().__init__(operands=[[base], sizes, strides], result_types=[TensorDescType(tile)])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.base)
        for values in (self.sizes, self.strides):
            printer.print_string(", [")
            printer.print_list(values, printer.print_ssa_value)
            printer.print_string("]")
        assert isinstance(self.base.type, PtrType) and isinstance(self.result.type, TensorDescType)
        printer.print_string(" : <")
        printer.print_attribute(self.base.type.pointee)
        printer.print_string(">, <")
        printer.print_attribute(self.result.type.tile)
        printer.print_string(">")

    @classmethod
    def parse(cls, parser: Parser) -> MakeTensorDescriptorOp:
        base = parser.parse_unresolved_operand()
        lists = []
        for _ in range(2):
            parser.parse_punctuation(",")
            lists.append(parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_unresolved_operand))
        parser.parse_punctuation(":")
        with parser.in_angle_brackets():
            element = parser.parse_type()
        parser.parse_punctuation(",")
        with parser.in_angle_brackets():
            tile = parser.parse_type()
        assert isinstance(tile, TensorType)
        sizes, strides = ([parser.resolve_operand(n, t) for n in x] for x, t in zip(lists, (i32, i64), strict=True))
        return cls(parser.resolve_operand(base, PtrType(element)), sizes, strides, tile)


@irdl_op_definition
class DescriptorLoadOp(IRDLOperation):
    """The tile of a descriptor's matrix that begins at a row and a column."""

    name = "tt.descriptor_load"
    descriptor = operand_def(TensorDescType)
    places = var_operand_def()
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, descriptor: SSAValue, places: Sequence[SSAValue]) -> None:
        assert isinstance(descriptor.type, TensorDescType)
        super().__init__(operands=[descriptor, places], result_types=[descriptor.type.tile])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.descriptor)
        printer.print_string("[")
        printer.print_list(self.places, printer.print_ssa_value)
        printer.print_string("] : ")
        printer.print_attribute(self.descriptor.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> DescriptorLoadOp:
        name = parser.parse_unresolved_operand()
        places = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        descriptor = parser.resolve_operand(name, parser.parse_type())
        parser.parse_punctuation("->")
        parser.parse_type()
        return cls(descriptor, [parser.resolve_operand(n, i32) for n in places])
