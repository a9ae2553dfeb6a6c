"""HloSnapshot: a module together with the arguments of one run and its result."""

from __future__ import annotations

from typing import Any

from heron.hlo.ir.literal import Literal
from heron.hlo.ir.module import Module
from heron.hlo.proto.literals import literal_of, read_literal, write_literal
from heron.hlo.proto.reader import from_message, parse_message
from heron.hlo.proto.schema import MESSAGES
from heron.hlo.proto.shapes import ShapeReader, ShapeWriter
from heron.hlo.proto.writer import serialize, to_message
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A program, its arguments, and its result (None if it did not finish); ``platform`` names the machine."""

    module: Module
    arguments: tuple[Literal, ...] = ()
    result: Literal | None = None
    platform: str = ""

    @staticmethod
    def of(module: Module, *arguments: Any, result: Any = None, platform: str = "") -> Snapshot:
        """A snapshot of NumPy arrays (tuples of them, literals) instead of literals."""
        found = None if result is None else literal_of(result)
        return Snapshot(module, tuple(map(literal_of, arguments)), found, platform)


def to_snapshot(snapshot: Snapshot) -> bytes:
    """The bytes of an HloSnapshot. Raises PROTO005, PROTO006 as `to_proto` does."""
    to, shapes = MESSAGES["HloSnapshot"](), ShapeWriter()
    to.hlo.hlo_module.CopyFrom(to_message(snapshot.module))
    for argument in snapshot.arguments:
        write_literal(argument, to.arguments.add(), shapes)
    if snapshot.result is not None:
        write_literal(snapshot.result, to.result, shapes)
    to.execution_platform = snapshot.platform
    return serialize(to)


def from_snapshot(data: bytes, filename: str = "<proto>") -> Snapshot:
    """The snapshot in the bytes of an HloSnapshot. Raises PROTO001 to PROTO005 as `from_proto` does."""
    proto, shapes = parse_message("HloSnapshot", data), ShapeReader()
    arguments = tuple(read_literal(a, shapes) for a in proto.arguments)
    result = read_literal(proto.result, shapes) if proto.HasField("result") else None
    return Snapshot(from_message(proto.hlo.hlo_module, filename), arguments, result, proto.execution_platform)
