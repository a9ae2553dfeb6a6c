"""Ops of the `xla_gpu` dialect that the threads of a block do together: shared memory, barriers, shuffles, atomics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    IntegerType,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from heron.codegen.ir.dialects.indexed_loops import YieldOp
from heron.codegen.ir.dialects.syntax import INDEX, parse_values, print_values, verify_callee


@irdl_op_definition
class AllocateSharedOp(IRDLOperation):
    """An uninitialised tensor in the block's shared memory."""

    name = "xla_gpu.allocate_shared"
    result = result_def(TensorType)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type_: Attribute) -> None:
        Operation.__init__(self, result_types=[type_])

    def verify_(self) -> None:
        type_ = self.result.type
        if isinstance(type_, TensorType) and any(n < 0 for n in type_.get_shape()):
            raise VerifyException("shared memory is of a known size")


@irdl_op_definition
class SyncThreadsOp(IRDLOperation):
    """A barrier for the block: writes to the operands before it are seen by reads of the results."""

    name = "xla_gpu.sync_threads"
    arguments = var_operand_def(TensorType)
    res = var_result_def(TensorType)

    def __init__(self, tensors: Sequence[SSAValue] = ()) -> None:
        Operation.__init__(self, operands=tensors, result_types=[t.type for t in tensors])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_values(printer, self.operands, "()")
        if self.operands:
            printer.print_string(" : ")
            printer.print_list([v.type for v in self.operands], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> SyncThreadsOp:
        values = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        if not values:
            return cls()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        return cls(parser.resolve_operands(values, types, parser.pos))

    def verify_(self) -> None:
        if [v.type for v in self.operands] != [r.type for r in self.results]:
            raise VerifyException("sync_threads returns its operands")


@irdl_op_definition
class ShuffleReduceOp(IRDLOperation):
    """Reduces `arguments` over lanes: at distances `max_distance`, …, 2, 1 each lane combines with the lane above it.

    Args:
        combiner: private function `(acc…, x…) -> acc…`.
        max_distance: a power of two up to 16; with 16 lane 0 ends with the warp's total.
    """

    name = "xla_gpu.shuffle_reduce"
    combiner = prop_def(SymbolRefAttr)
    max_distance = prop_def(IntegerAttr[IntegerType])
    arguments = var_operand_def()
    res = var_result_def()

    def __init__(self, combiner: str, arguments: Sequence[SSAValue], max_distance: int) -> None:
        Operation.__init__(
            self,
            operands=arguments,
            result_types=[v.type for v in arguments],
            properties={"combiner": SymbolRefAttr(combiner), "max_distance": IntegerAttr(max_distance, i64)},
        )

    def verify_(self) -> None:
        distance = self.max_distance.value.data
        if distance not in (1, 2, 4, 8, 16):
            raise VerifyException(f"shuffle distance {distance} is not a power of two up to 16")
        if [v.type for v in self.operands] != [r.type for r in self.results]:
            raise VerifyException("shuffle_reduce returns values of its operands' types")
        types = [v.type for v in self.operands]
        verify_callee(self, self.combiner, types * 2, types)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.combiner)
        print_values(printer, self.operands, "()")
        printer.print_string(f" to {self.max_distance.value.data} : ")
        printer.print_list([v.type for v in self.operands], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleReduceOp:
        combiner = parser.parse_symbol_name()
        values = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("to")
        distance = parser.parse_integer()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        resolved = parser.resolve_operands(values, types, parser.pos)
        return cls(combiner.data, resolved, distance)


def _print_shuffle(printer: Printer, values: Sequence[SSAValue], word: str, number: int) -> None:
    """``(%a, %b) by 4 : f32, i32``"""
    printer.print_string(" ")
    print_values(printer, values, "()")
    printer.print_string(f" {word} {number} : ")
    printer.print_list([v.type for v in values], printer.print_attribute)


def _parse_shuffle(parser: Parser, word: str) -> tuple[Sequence[SSAValue], int]:
    """Parses the output of `_print_shuffle`: the values and the number."""
    values = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    parser.parse_keyword(word)
    number = parser.parse_integer()
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
    return parser.resolve_operands(values, types, parser.pos), number


@irdl_op_definition
class ShuffleUpOp(IRDLOperation):
    """Each lane gets the values of the lane `distance` below it; the first `distance` lanes keep their own."""

    name = "xla_gpu.shuffle_up"
    distance = prop_def(IntegerAttr[IntegerType])
    arguments = var_operand_def()
    res = var_result_def()

    def __init__(self, arguments: Sequence[SSAValue], distance: int) -> None:
        Operation.__init__(
            self,
            operands=arguments,
            result_types=[v.type for v in arguments],
            properties={"distance": IntegerAttr(distance, i64)},
        )

    def verify_(self) -> None:
        if not 1 <= self.distance.value.data <= 31:
            raise VerifyException(f"no lane of a warp is {self.distance.value.data} below another")
        if [v.type for v in self.operands] != [r.type for r in self.results]:
            raise VerifyException("shuffle_up returns values of its operands' types")

    def print(self, printer: Printer) -> None:
        _print_shuffle(printer, self.operands, "by", self.distance.value.data)

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleUpOp:
        return cls(*_parse_shuffle(parser, "by"))


@irdl_op_definition
class ShuffleFirstOp(IRDLOperation):
    """Each lane gets the values of the first lane of its group: of `lanes` neighbours, a power of two up to 32."""

    name = "xla_gpu.shuffle_first"
    lanes = prop_def(IntegerAttr[IntegerType])
    arguments = var_operand_def()
    res = var_result_def()

    def __init__(self, arguments: Sequence[SSAValue], lanes: int) -> None:
        Operation.__init__(
            self,
            operands=arguments,
            result_types=[v.type for v in arguments],
            properties={"lanes": IntegerAttr(lanes, i64)},
        )

    def verify_(self) -> None:
        lanes = self.lanes.value.data
        if lanes not in (2, 4, 8, 16, 32):
            raise VerifyException(f"a warp is not made of groups of {lanes} lanes, a power of two up to 32")
        if [v.type for v in self.operands] != [r.type for r in self.results]:
            raise VerifyException("shuffle_first returns values of its operands' types")

    def print(self, printer: Printer) -> None:
        _print_shuffle(printer, self.operands, "of", self.lanes.value.data)

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleFirstOp:
        return cls(*_parse_shuffle(parser, "of"))


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """Atomically replaces `tensor[indices]` by what the body makes of its current value (the body's argument)."""

    name = "xla_gpu.atomic_rmw"
    tensor = operand_def(TensorType)
    indices = var_operand_def(IndexType)
    result = result_def(TensorType)
    body = region_def("single_block")

    def __init__(self, tensor: SSAValue, indices: Sequence[SSAValue], body: Region | Block) -> None:
        Operation.__init__(
            self,
            operands=[tensor, *indices],
            result_types=[tensor.type],
            regions=[body if isinstance(body, Region) else Region(body)],
        )

    @staticmethod
    def build(
        tensor: SSAValue, indices: Sequence[SSAValue], body: Callable[[Block, SSAValue], SSAValue]
    ) -> AtomicRMWOp:
        """The op whose body is filled by `body(block, current) -> new`."""
        assert isinstance(tensor.type, TensorType)
        block = Block(arg_types=[tensor.type.element_type])
        block.add_op(YieldOp([body(block, block.args[0])]))
        return AtomicRMWOp(tensor, indices, block)

    def verify_(self) -> None:
        type_ = self.tensor.type
        assert isinstance(type_, TensorType)
        element = type_.element_type
        if len(self.indices) != type_.get_num_dims() or self.result.type != type_:
            raise VerifyException("atomic_rmw wants an index for each dimension of the tensor it returns")
        last = self.body.block.last_op
        if [a.type for a in self.body.block.args] != [element]:
            raise VerifyException("the body of atomic_rmw takes the current element")
        if not isinstance(last, YieldOp) or [v.type for v in last.operands] != [element]:
            raise VerifyException("the body of atomic_rmw yields the new element")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.tensor)
        print_values(printer, self.operands[1:], "[]")
        printer.print_string(" : ")
        printer.print_attribute(self.tensor.type)
        printer.print_string(" ")
        printer.print_region(self.body)

    @classmethod
    def parse(cls, parser: Parser) -> AtomicRMWOp:
        tensor = parser.parse_unresolved_operand()
        indices = parse_values(parser, Parser.Delimiter.SQUARE, INDEX)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls(parser.resolve_operand(tensor, type_), indices, parser.parse_region())


@irdl_op_definition
class TransposeBlockOp(IRDLOperation):
    """Writes the `size` x `size` block of `source` at its indices, turned, to `target` at its; CPU kernels only.

    Rows of the block lie `source_step` elements apart in the source and `target_step` in the target, the elements of a
    row side by side: `target[j + r * target_step + c] = source[i + c * source_step + r]` by linear index.
    """

    name = "xla_gpu.transpose_block"
    source = operand_def(TensorType)
    target = operand_def(TensorType)
    indices = var_operand_def(IndexType)
    size = prop_def(IntegerAttr)
    source_step = prop_def(IntegerAttr)
    target_step = prop_def(IntegerAttr)
    result = result_def(TensorType)

    def __init__(
        self,
        source: SSAValue,
        source_indices: Sequence[SSAValue],
        target: SSAValue,
        target_indices: Sequence[SSAValue],
        size: int,
        source_step: int,
        target_step: int,
    ) -> None:
        numbers = {"size": size, "source_step": source_step, "target_step": target_step}
        Operation.__init__(
            self,
            operands=[source, target, *source_indices, *target_indices],
            result_types=[target.type],
            properties={key: IntegerAttr(value, i64) for key, value in numbers.items()},
        )

    @property
    def source_indices(self) -> Sequence[SSAValue]:
        return self.operands[2 : 2 + self._rank(0)]

    @property
    def target_indices(self) -> Sequence[SSAValue]:
        return self.operands[2 + self._rank(0) :]

    def _rank(self, operand: int) -> int:
        type_ = self.operands[operand].type
        assert isinstance(type_, TensorType)
        return len(type_.get_shape())

    def verify_(self) -> None:
        size = self.size.value.data
        if size < 2 or size & (size - 1):
            raise VerifyException(f"a block of {size} x {size} cannot be turned by halving")
        if len(self.indices) != self._rank(0) + self._rank(1):
            raise VerifyException("transpose_block wants an index for each dimension of source and target")
        types = [v.type.element_type for v in self.operands[:2] if isinstance(v.type, TensorType)]
        if types[0] != types[1]:
            raise VerifyException("source and target of transpose_block have one element type")
        if self.result.type != self.target.type:
            raise VerifyException("transpose_block returns its target")

    def print(self, printer: Printer) -> None:
        pairs = ((self.source, self.source_indices), (self.target, self.target_indices))
        for separator, (tensor, indices) in zip((" ", ", "), pairs, strict=True):
            printer.print_string(separator)
            printer.print_ssa_value(tensor)
            print_values(printer, indices, "[]")
        numbers = (self.size, self.source_step, self.target_step)
        size, source, target = (n.value.data for n in numbers)
        printer.print_string(f" size {size} steps ({source}, {target}) : ")
        printer.print_list([self.source.type, self.target.type], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> TransposeBlockOp:
        source = parser.parse_unresolved_operand()
        source_indices = parse_values(parser, Parser.Delimiter.SQUARE, INDEX)
        parser.parse_punctuation(",")
        target = parser.parse_unresolved_operand()
        target_indices = parse_values(parser, Parser.Delimiter.SQUARE, INDEX)
        parser.parse_keyword("size")
        size = parser.parse_integer()
        parser.parse_keyword("steps")
        steps = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_integer)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        tensors = parser.resolve_operands([source, target], types, parser.pos)
        return cls(tensors[0], source_indices, tensors[1], target_indices, size, *steps)
