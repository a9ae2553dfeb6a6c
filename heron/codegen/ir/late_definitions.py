"""Importing this has xDSL work out the definition of an op when the op is first made, parsed or printed, and that of an
attribute when the attribute is first made.

xDSL works out all of a dialect when the dialect is imported: methods of classes, constraints of ops and attributes,
assembly formats. That took a third of a process's first compile, which makes some twenty kinds of op and prints none.
It works on the dialects that are imported afterwards, and must therefore come ahead of the first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

from heron import records


@contextmanager
def _methods_when_called() -> Iterator[None]:
    """Make the dataclasses of modules that are imported meanwhile heron's: those of ops' constraints, of attributes."""
    standard = dataclasses.dataclass
    if not TYPE_CHECKING:
        dataclasses.dataclass = records.dataclass
    try:
        yield
    finally:
        dataclasses.dataclass = standard


with _methods_when_called():
    from xdsl import irdl
    from xdsl.ir import Attribute, Data, OpTraits, ParametrizedAttribute, TypedAttribute, core
    from xdsl.irdl import IRDLOperation, OpDef, ParamAttrDef, attributes, operations
    from xdsl.utils.runtime_final import runtime_final


def _kept_hash(self: Attribute) -> int:
    """The hash of an attribute, worked out once: types are parts of nearly all keys. (xDSL hashes what is in it.)"""
    try:
        return self._hash  # type: ignore[attr-defined]
    except AttributeError:
        found = hash((type(self), self.data if isinstance(self, Data) else self.parameters))  # type: ignore[attr-defined]
        object.__setattr__(self, "_hash", found)
        return found


def define_attribute_late(cls: type[ParametrizedAttribute]) -> type[ParametrizedAttribute]:
    """xDSL's `irdl_param_attr_definition`, which looks at the parameters when something first asks for them."""

    def definition(_: type) -> ParamAttrDef:
        found = ParamAttrDef.from_pyrdl(cls)
        cls.get_irdl_definition = classmethod(lambda _: found)  # type: ignore[assignment]
        return found

    def type_index(_: type) -> int:
        return [name for name, _ in cls.get_irdl_definition().parameters].index("type")

    cls.get_irdl_definition = classmethod(definition)  # type: ignore[assignment]
    if issubclass(cls, TypedAttribute):
        cls.get_type_index = classmethod(type_index)  # type: ignore[attr-defined]
    if "__hash__" not in cls.__dict__:
        cls.__hash__ = _kept_hash  # type: ignore[assignment]
    return runtime_final(records.dataclass(frozen=True, init=False)(cls))


Data.__hash__ = _kept_hash  # type: ignore[assignment]
attributes.irdl_param_attr_definition = define_attribute_late  # type: ignore[assignment]
with _methods_when_called():
    from xdsl.dialects.builtin import UNKNOWN_LOC
    from xdsl.irdl.declarative_assembly_format import FormatProgram

from heron.codegen.ir.quick_ops import settled, with_defaults, without_defaults  # noqa: E402  xDSL is to be imported first

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
    if cls.__post_init__ in settled:  # that of a class above
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
            if owner.__post_init__ is IRDLOperation.__post_init__:
                owner.__post_init__ = _settle(definition)
            del _LATE[owner]
    return cls


def _settle(definition: OpDef) -> Callable[..., None]:
    """The function that adds defaults of properties and attributes to a new op: xDSL looks for them each time."""
    properties, attributes = (
        {name: d.default_value for name, d in defined.items() if d.default_value is not None}
        for defined in (definition.properties, definition.attributes)
    )
    return with_defaults(properties, attributes) if properties or attributes else without_defaults


def undefined() -> list[type]:
    """The ops whose definition nothing has asked for."""
    return list(_LATE)


FormatProgram.from_str = staticmethod(LateFormat)  # type: ignore[assignment]
irdl.irdl_op_definition = operations.irdl_op_definition = define_late
with _methods_when_called():
    from xdsl.dialects import arith, complex, func, gpu, llvm, math, scf, tensor, vector  # noqa: F401
core._unknown_loc = lambda: UNKNOWN_LOC  # xDSL imports it again for each op
