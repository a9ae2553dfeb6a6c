"""The ops of Triton's `tt` dialect that block kernels use, spelled as Triton 3.6 spells them.

A program works on tensors of powers of two elements; which program it is, it asks. Pointers are scalars or tensors of
them. Source: https://triton-lang.org/main/dialects/TritonDialect.html.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

_AXES = "xyz"


@irdl_attr_definition
class PtrType(ParametrizedAttribute, TypeAttribute):
    """A pointer into the GPU's global memory: `!tt.ptr<bf16>`."""

    name = "tt.ptr"
    pointee: Attribute


@irdl_attr_definition
class TensorDescType(ParametrizedAttribute, TypeAttribute):
    """How a tile of a matrix is fetched by the machine's copy engine: `!tt.tensordesc<tensor<128x64xbf16>>`."""

    name = "tt.tensordesc"
    tile: TensorType


def pointee(type_: Attribute) -> Attribute:
    """What a pointer, or a tensor of pointers, points to."""
    inner = type_.element_type if isinstance(type_, TensorType) else type_
    assert isinstance(inner, PtrType)
    return inner.pointee


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A kernel: `tt.func public @name(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}) { … }`."""

    name = "tt.func"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    body = region_def("single_block")

    def __init__(self, name: str, body: Region) -> None:
        kind = FunctionType.from_lists([a.type for a in body.block.args], [])
        Operation.__init__(self, properties={"sym_name": StringAttr(name), "function_type": kind}, regions=[body])

    def print(self, printer: Printer) -> None:
        printer.print_string(" public @" + self.sym_name.data + "(")
        printer.print_list(self.body.block.args, lambda a: _print_argument(printer, a))
        printer.print_string(") ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        parser.parse_keyword("public")
        name = parser.parse_symbol_name().data

        def argument() -> Parser.Argument:
            found = parser.parse_argument()
            parser.parse_optional_dictionary_attr_dict()
            return found

        arguments = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, argument)
        return cls(name, parser.parse_region(arguments))


def _print_argument(printer: Printer, argument: SSAValue) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(": ")
    printer.print_attribute(argument.type)
    printer.print_string(" ")
    printer.print_attribute(DictionaryAttr({"tt.divisibility": IntegerAttr(16, i32)}))


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """The end of a kernel."""

    name = "tt.return"
    assembly_format = "attr-dict"
    traits = traits_def(IsTerminator())


@irdl_op_definition
class GetProgramIdOp(IRDLOperation):
    """Which program of the grid this is, along an axis."""

    name = "tt.get_program_id"
    axis = prop_def(IntegerAttr)
    result = result_def(IntegerType)
    traits = traits_def(Pure())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {_AXES[self.axis.value.data]} : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> GetProgramIdOp:
        axis = _AXES.index(parser.parse_identifier())
        parser.parse_punctuation(":")
        return cls.create(result_types=[parser.parse_type()], properties={"axis": IntegerAttr(axis, i32)})


@irdl_op_definition
class MakeRangeOp(IRDLOperation):
    """`start`, `start + 1`, … `end - 1`."""

    name = "tt.make_range"
    end = prop_def(IntegerAttr)
    start = prop_def(IntegerAttr)
    result = result_def(TensorType)
    assembly_format = "attr-dict `:` type($result)"
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())


class _Unary(IRDLOperation):
    """One tensor in, one of another type out."""

    src = operand_def()
    result = result_def()
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())


@irdl_op_definition
class SplatOp(_Unary):
    """A scalar in every element."""

    name = "tt.splat"


@irdl_op_definition
class ExpandDimsOp(_Unary):
    """A dimension of size 1 more."""

    name = "tt.expand_dims"
    axis = prop_def(IntegerAttr)


@irdl_op_definition
class BroadcastOp(_Unary):
    """Dimensions of size 1 repeated."""

    name = "tt.broadcast"


@irdl_op_definition
class TransOp(_Unary):
    """Dimensions in another order."""

    name = "tt.trans"
    order = prop_def(DenseArrayBase)


@irdl_op_definition
class BitcastOp(_Unary):
    """The same bits as another type."""

    name = "tt.bitcast"


@irdl_op_definition
class FpToFpOp(IRDLOperation):
    """A float as another type; narrowing rounds to the nearest, ties to even."""

    name = "tt.fp_to_fp"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.src)
        if _bits(self.result.type) < _bits(self.src.type):
            printer.print_string(", rounding = rtne")
        printer.print_string(" : ")
        printer.print_attribute(self.src.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> FpToFpOp:
        source = parser.parse_unresolved_operand()
        if parser.parse_optional_punctuation(","):
            parser.parse_keyword("rounding")
            parser.parse_punctuation("=")
            parser.parse_keyword("rtne")
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(source, parser.parse_type())
        parser.parse_punctuation("->")
        return cls.create(operands=[operand], result_types=[parser.parse_type()])


def _bits(type_: Attribute) -> int:
    element = type_.element_type if isinstance(type_, TensorType) else type_
    return element.bitwidth  # type: ignore[attr-defined]


class _Precise(IRDLOperation):
    """Operands and a result of one type."""

    arguments = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> _Precise:
        names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.create(operands=[parser.resolve_operand(n, type_) for n in names], result_types=[type_])


@irdl_op_definition
class PreciseSqrtOp(_Precise):
    """The square root, correctly rounded."""

    name = "tt.precise_sqrt"


@irdl_op_definition
class PreciseDivOp(_Precise):
    """The quotient, correctly rounded (`arith.divf` of f32 is not, in Triton)."""

    name = "tt.precise_divf"


@irdl_op_definition
class AddPtrOp(IRDLOperation):
    """Pointers so many elements on."""

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
    """What pointers point to; where the mask is off, `other`."""

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
    """A descriptor of the matrix at a pointer: rows and columns, and how many elements these are apart. What a tile has
    outside is zeros."""

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


@irdl_op_definition
class DotOp(IRDLOperation):
    """`a @ b + c`, in the types as they are, or with f32 as sums of parts that matrix units take. ``imprecise``: of
    floats of 8 bits, whose sums matrix units round to 14 bits, so many are added before that is added in f32."""

    name = "tt.dot"
    precision = prop_def(StringAttr)
    imprecise = prop_def(IntegerAttr)
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    c = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue, precision: str = "ieee", imprecise: int = 0) -> None:
        properties = {"precision": StringAttr(precision), "imprecise": IntegerAttr(imprecise, i32)}
        Operation.__init__(self, operands=[a, b, c], result_types=[c.type], properties=properties)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        most = self.imprecise.value.data
        sums = f" {{maxNumImpreciseAcc = {most} : i32}}" if most else ""
        printer.print_string(f", inputPrecision = {self.precision.data}{sums} : ")
        printer.print_attribute(self.a.type)
        printer.print_string(" * ")
        printer.print_attribute(self.b.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> DotOp:
        names = [parser.parse_unresolved_operand()]
        for _ in range(2):
            parser.parse_punctuation(",")
            names.append(parser.parse_unresolved_operand())
        for punctuation in (",", "inputPrecision", "="):
            parse = parser.parse_keyword if punctuation.isalpha() else parser.parse_punctuation
            parse(punctuation)  # type: ignore[arg-type]
        precision = parser.parse_identifier()
        sums = parser.parse_optional_attr_dict().get("maxNumImpreciseAcc")
        parser.parse_punctuation(":")
        a = parser.resolve_operand(names[0], parser.parse_type())
        parser.parse_characters("*")
        b = parser.resolve_operand(names[1], parser.parse_type())
        parser.parse_punctuation("->")
        c = parser.resolve_operand(names[2], parser.parse_type())
        return cls(a, b, c, precision, sums.value.data if isinstance(sums, IntegerAttr) else 0)

    def verify_(self) -> None:
        a, b, c = (v.type for v in self.operands)
        assert isinstance(a, TensorType) and isinstance(b, TensorType) and isinstance(c, TensorType)
        (m, k), (k2, n) = a.get_shape(), b.get_shape()
        if k != k2 or c.get_shape() != (m, n):
            raise VerifyException("a dot's shapes are m x k, k x n and m x n")


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """A dimension combined by the region."""

    name = "tt.reduce"
    src = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    combine = region_def("single_block")
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class ReduceReturnOp(IRDLOperation):
    """The combination of two elements."""

    name = "tt.reduce.return"
    value = operand_def()
    assembly_format = "$value attr-dict `:` type($value)"
    traits = traits_def(IsTerminator())


@irdl_op_definition
class ExternElementwiseOp(IRDLOperation):
    """A function of libdevice on every element."""

    name = "tt.extern_elementwise"
    arguments = var_operand_def()
    libname = prop_def(StringAttr)
    libpath = prop_def(StringAttr)
    pure = prop_def(BoolAttr)
    symbol = prop_def(StringAttr)
    result = result_def()
    assembly_format = "$arguments attr-dict `:` functional-type(operands, results)"
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())


Triton = Dialect(
    "tt",
    [
        FuncOp,
        ReturnOp,
        GetProgramIdOp,
        MakeRangeOp,
        SplatOp,
        ExpandDimsOp,
        BroadcastOp,
        TransOp,
        BitcastOp,
        FpToFpOp,
        PreciseSqrtOp,
        PreciseDivOp,
        AddPtrOp,
        LoadOp,
        StoreOp,
        MakeTensorDescriptorOp,
        DescriptorLoadOp,
        DotOp,
        ReduceOp,
        ReduceReturnOp,
        ExternElementwiseOp,
    ],
    [PtrType, TensorDescType],
)
