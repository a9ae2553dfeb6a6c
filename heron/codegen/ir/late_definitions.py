"""Importing this has xDSL work out the definition of an op when the op is first made, parsed or printed.

xDSL works out all of a dialect when the dialect is imported: methods of classes, constraints of ops, assembly formats.
That took a third of a process's first compile, which makes some twenty kinds of op and prints none. It works on the
dialects that are imported afterwards, and must therefore come ahead of the first.
"""

from __future__ import annotations

import dataclasses
from threading import RLock
from typing import TYPE_CHECKING, Any

from heron import records

_standard = dataclasses.dataclass
if not TYPE_CHECKING:  # the classes that xDSL imports the decorator for are those of ops' constraints and of attributes
    dataclasses.dataclass = records.dataclass
try:
    from xdsl import irdl
    from xdsl.dialects.builtin import UNKNOWN_LOC
    from xdsl.ir import Operation, OpTraits, core
    from xdsl.irdl import IRDLOperation, OpDef, operations
    from xdsl.irdl.declarative_assembly_format import FormatProgram
finally:
    dataclasses.dataclass = _standard

_read = FormatProgram.from_str
_LOCK = RLock()
#: classes that are not yet defined, each with its own attributes
_LATE: dict[type, dict[str, Any]] = {}


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


def define_late(cls: type[IRDLOperation]) -> type[IRDLOperation]:
    """xDSL's `irdl_op_definition`, which defines the class when something first asks for its definition.

    Every way to an op of the class does: making it, copying it, parsing it.
    """
    if cls.__post_init__ is _without_defaults:  # that of a class above
        cls.__post_init__ = IRDLOperation.__post_init__
    _LATE[cls] = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
    traits: list[OpTraits] = [c.__dict__["traits"] for c in cls.__mro__ if "traits" in c.__dict__]
    cls.traits = OpTraits(lambda: tuple(trait for some in traits for trait in some.gen_traits()))
    cls.get_irdl_definition = classmethod(lambda cls: _defined(cls).get_irdl_definition())  # type: ignore[assignment]
    if cls.assembly_format is not None:
        cls.parse = classmethod(lambda cls, parser: _defined(cls).parse(parser))  # type: ignore[assignment]
    return cls


def _defined(cls: type[IRDLOperation]) -> type[IRDLOperation]:
    """The class once it is defined. Other threads that ask meanwhile wait: the way to the definition comes last."""
    with _LOCK:
        for owner in cls.__mro__:
            if owner not in _LATE:
                continue
            # what is in the class until now is no part of its definition, and xDSL refuses it
            as_written: Any = type(owner)(owner.__name__, owner.__bases__, _LATE[owner])
            definition = OpDef.from_pyrdl(as_written)
            found = operations.get_accessors_from_op_def(definition, getattr(owner, "verify_", None))
            for name in sorted(found, key=lambda name: name == "get_irdl_definition"):
                setattr(owner, name, found[name])
            if owner.__post_init__ is IRDLOperation.__post_init__ and not _has_defaults(definition):
                owner.__post_init__ = _without_defaults
            del _LATE[owner]
    return cls


def _has_defaults(definition: OpDef) -> bool:
    """Whether making an op adds properties or attributes of its own to it: xDSL looks each time."""
    return any(d.default_value is not None for d in (*definition.properties.values(), *definition.attributes.values()))


def _without_defaults(op: Operation) -> None:
    Operation.__post_init__(op)  # xDSL's implicit builder puts itself there for a while


def undefined() -> list[type]:
    """The ops whose definition nothing has asked for."""
    return list(_LATE)


FormatProgram.from_str = staticmethod(LateFormat)  # type: ignore[assignment]
core._unknown_loc = lambda: UNKNOWN_LOC  # xDSL imports it again for each op
irdl.irdl_op_definition = operations.irdl_op_definition = define_late
