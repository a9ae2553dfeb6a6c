"""Importing this has xDSL read the assembly format of an op when the op is first parsed or printed.

xDSL reads the formats of all ops of a dialect when the dialect is imported, a fifth of the time that its dialects take
to load. Compiling prints no ops. It works on the dialects that are imported afterwards.
"""

from __future__ import annotations

from typing import Any

from xdsl.irdl import OpDef
from xdsl.irdl.declarative_assembly_format import FormatProgram

_read = FormatProgram.from_str


class LateFormat:
    """The format of an op, read when it is needed."""

    def __init__(self, text: str, op: OpDef) -> None:
        self._text, self._op = text, op
        self._program: FormatProgram | None = None

    @property
    def program(self) -> FormatProgram:
        """The format as xDSL has it. Raises xDSL's ParseError for one that is wrong."""
        if self._program is None:
            self._program = _read(self._text, self._op)
        return self._program

    def parse(self, parser: Any, op_type: Any) -> Any:
        return self.program.parse(parser, op_type)

    def print(self, printer: Any, op: Any) -> None:
        self.program.print(printer, op)


FormatProgram.from_str = staticmethod(LateFormat)  # type: ignore[assignment]
