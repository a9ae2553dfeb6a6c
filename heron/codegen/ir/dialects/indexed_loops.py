"""Ops of the `xla_gpu` dialect that are about indexing maps and functions: what one thread does by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import (
    IndexType,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from heron.analysis.indexing import IndexingMap, format_map
from heron.codegen.ir.dialects.indexing_map_attr import IndexingMapAttr, parse_quoted_map
from heron.codegen.ir.dialects.syntax import INDEX, parse_values, print_values, verify_callee


@irdl_op_definition
class ApplyIndexingOp(IRDLOperation):
    """The results of `map` at the point given by the operands: its dims, then syms, then runtime variables."""

    name = "xla_gpu.apply_indexing"
    arguments = var_operand_def(IndexType)
    map_attr = prop_def(IndexingMapAttr, prop_name="map")
    res = var_result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, map_: IndexingMap, arguments: Sequence[SSAValue]) -> None:
        Operation.__init__(
            self,
            operands=arguments,
            result_types=[INDEX] * len(map_.results),
            properties={"map": IndexingMapAttr(map_)},
        )

    @property
    def map(self) -> IndexingMap:
        return self.properties["map"].data  # pyright: ignore[reportAttributeAccessIssue]

    def verify_(self) -> None:
        m = self.map
        wanted = len(m.dims) + len(m.syms) + len(m.rt_vars)
        if len(self.operands) != wanted:
            raise VerifyException(f"the map has {wanted} variables, the op {len(self.operands)} operands")
        if len(self.results) != len(m.results):
            raise VerifyException(f"the map has {len(m.results)} results, the op {len(self.results)}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(format_map(self.map))
        n = len(self.map.dims)
        print_values(printer, self.operands[:n], "()")
        if len(self.operands) > n:
            print_values(printer, self.operands[n:], "[]")

    @classmethod
    def parse(cls, parser: Parser) -> ApplyIndexingOp:
        m = parse_quoted_map(parser)
        values = parse_values(parser, Parser.Delimiter.PAREN, INDEX)
        if len(m.syms) + len(m.rt_vars):
            values += parse_values(parser, Parser.Delimiter.SQUARE, INDEX)
        return cls(m, values)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of a `loop` (next iteration's values) or of an `atomic_rmw` (the new element)."""

    name = "xla_gpu.yield"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(self, values: Sequence[SSAValue] = ()) -> None:
        Operation.__init__(self, operands=values)


@irdl_op_definition
class LoopOp(IRDLOperation):
    """Runs its body for every point of the symbols' domain.

    The body's arguments are the symbols, the map's results, and the carried values; `yield` gives the next values.
    Points that break a constraint of the map are skipped. Runtime variables are not allowed.
    """

    name = "xla_gpu.loop"
    arguments = var_operand_def()  # the map's dims, then the initial values
    map_attr = prop_def(IndexingMapAttr, prop_name="map")
    res = var_result_def()
    body = region_def("single_block")

    def __init__(
        self, map_: IndexingMap, dims: Sequence[SSAValue], inits: Sequence[SSAValue], body: Region | Block
    ) -> None:
        Operation.__init__(
            self,
            operands=[*dims, *inits],
            result_types=[v.type for v in inits],
            properties={"map": IndexingMapAttr(map_)},
            regions=[body if isinstance(body, Region) else Region(body)],
        )

    @staticmethod
    def build(
        map_: IndexingMap,
        dims: Sequence[SSAValue],
        inits: Sequence[SSAValue],
        body: Callable[[Block, Sequence[SSAValue], Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> LoopOp:
        """The loop whose body is filled by `body(block, symbols, map results, carried) -> next carried values`."""
        block = Block(arg_types=[INDEX] * (len(map_.syms) + len(map_.results)) + [v.type for v in inits])
        n, m = len(map_.syms), len(map_.syms) + len(map_.results)
        block.add_op(YieldOp(body(block, block.args[:n], block.args[n:m], block.args[m:])))
        return LoopOp(map_, dims, inits, block)

    @property
    def map(self) -> IndexingMap:
        return self.properties["map"].data  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def dims(self) -> Sequence[SSAValue]:
        return self.operands[: len(self.map.dims)]

    @property
    def inits(self) -> Sequence[SSAValue]:
        return self.operands[len(self.map.dims) :]

    def verify_(self) -> None:
        m = self.map
        if m.rt_vars:
            raise VerifyException("a loop's map has no runtime variables")
        types = [v.type for v in self.inits]
        if any(v.type != INDEX for v in self.dims):
            raise VerifyException("a loop's dimensions are of type index")
        if len(self.operands) < len(m.dims) or [r.type for r in self.results] != types:
            raise VerifyException("a loop's results have the types of its initial values")
        wanted = [INDEX] * (len(m.syms) + len(m.results)) + types
        if [a.type for a in self.body.block.args] != wanted:
            raise VerifyException("a loop body takes the symbols, the map's results and the carried values")
        last = self.body.block.last_op
        if not isinstance(last, YieldOp) or [v.type for v in last.operands] != types:
            raise VerifyException("a loop body yields the next carried values")

    def print(self, printer: Printer) -> None:
        m, args = self.map, self.body.block.args
        n, k = len(m.syms), len(m.syms) + len(m.results)
        printer.print_string(" ")
        print_values(printer, self.dims, "()")
        print_values(printer, args[:n], "[]")
        printer.print_string(" -> ")
        print_values(printer, args[n:k], "()")
        printer.print_string(" in ")
        printer.print_string_literal(format_map(m))
        if self.inits:
            printer.print_string(" iter_args(")
            printer.print_list(zip(args[k:], self.inits, strict=True), lambda p: _print_assignment(printer, p))
            printer.print_string(") -> (")
            printer.print_list([v.type for v in self.inits], printer.print_attribute)
            printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> LoopOp:
        dims = parse_values(parser, Parser.Delimiter.PAREN, INDEX)

        def index_argument() -> Parser.Argument:
            return parser.parse_argument(expect_type=False).resolve(INDEX)

        args = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, index_argument)
        parser.parse_punctuation("->")
        args += parser.parse_comma_separated_list(Parser.Delimiter.PAREN, index_argument)
        parser.parse_keyword("in")
        m = parse_quoted_map(parser)
        inits: list[SSAValue] = []
        if parser.parse_optional_keyword("iter_args"):
            pairs = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: _parse_assignment(parser))
            parser.parse_punctuation("->")
            types = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
            inits = [parser.resolve_operand(v, t) for (_, v), t in zip(pairs, types, strict=True)]
            args += [a.resolve(t) for (a, _), t in zip(pairs, types, strict=True)]
        return cls(m, dims, inits, parser.parse_region(args))


def _print_assignment(printer: Printer, pair: tuple[SSAValue, SSAValue]) -> None:
    printer.print_ssa_value(pair[0])
    printer.print_string(" = ")
    printer.print_ssa_value(pair[1])


def _parse_assignment(parser: Parser) -> tuple[Any, Any]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


@irdl_op_definition
class PureCallOp(IRDLOperation):
    """Calls a private function that has no side effects."""

    name = "xla_gpu.pure_call"
    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    res = var_result_def()
    traits = traits_def(Pure())
    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $res)"

    def __init__(self, callee: str, arguments: Sequence[SSAValue], result_types: Sequence[Attribute]) -> None:
        Operation.__init__(
            self, operands=arguments, result_types=result_types, properties={"callee": SymbolRefAttr(callee)}
        )

    def verify_(self) -> None:
        verify_callee(self, self.callee, [v.type for v in self.operands], [r.type for r in self.results])
