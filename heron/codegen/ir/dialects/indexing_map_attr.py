"""The attribute that holds an `IndexingMap` in the IR."""

from __future__ import annotations

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from heron.analysis.indexing import IndexingMap, format_map, parse_map
from heron.errors import HeronError


@irdl_attr_definition
class IndexingMapAttr(Data[IndexingMap]):
    """An `IndexingMap` as an attribute; its text is the map's, quoted."""

    name = "xla_gpu.indexing_map"

    def __init__(self, data: IndexingMap) -> None:
        object.__setattr__(self, "data", data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> IndexingMap:
        with parser.in_angle_brackets():
            return parse_quoted_map(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(format_map(self.data))


def parse_quoted_map(parser: AttrParser) -> IndexingMap:
    """The map that a string literal spells; a mistake in it becomes a parse error."""
    text = parser.parse_str_literal(" (an indexing map)")
    try:
        return parse_map(text)
    except HeronError as error:
        parser.raise_error(str(error))
