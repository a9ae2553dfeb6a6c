"""The ops of Triton's `tt` dialect that block kernels use, spelled as Triton 3.6 spells them.

A program works on tensors of powers of two elements; which program it is, it asks. Memory is `triton_memory`.
Source: https://triton-lang.org/main/dialects/TritonDialect.html.
"""

from __future__ import annotations

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
)
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
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

from heron.codegen.ir.dialects.triton_memory import (
    AddPtrOp,
    DescriptorLoadOp,
    LoadOp,
    MakeTensorDescriptorOp,
    PtrType,
    StoreOp,
    TensorDescType,
)

_AXES = "xyz"


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
    """The number of this program in the grid, along an axis."""

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
