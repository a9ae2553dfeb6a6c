"""Annotations of any instruction ↔ fields: sharding, frontend attributes, statistics, accuracy, configuration."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.words import Words
from heron.hlo.proto.origins import read_origin, write_origin
from heron.hlo.proto.schema import MESSAGES, Message
from heron.hlo.proto.sharding import read_sharding, write_sharding

_OpSharding = MESSAGES["OpSharding"]
#: the extra that keeps fields heron does not read
CARRIED = "carried"
_ACCURACY_MODES = ("default", "highest")


def to_bytes(text: str) -> bytes:
    """Text as bytes; bytes that were no UTF-8 come back as they were."""
    return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    """Bytes as text; bytes that are no UTF-8 are escaped as Python does it."""
    return data.decode("utf-8", "surrogateescape")


def unread_fields(proto: Message) -> bytes:
    """The fields of a message, itself and no part of it, that the schema does not have."""
    if not len(UnknownFieldSet(proto)):
        return b""
    alone = type(proto)()
    alone.CopyFrom(proto)
    for field in alone.DESCRIPTOR.fields:
        alone.ClearField(field.name)
    return alone.SerializeToString()


def merge_unread(extras: dict[str, Any], name: str, to: Message) -> None:
    """Put unread fields back. Raises PROTO006 when they are none."""
    if CARRIED not in extras:
        return
    try:
        to.MergeFromString(extras[CARRIED])
    except (DecodeError, TypeError) as error:
        raise HeronError("PROTO006", f"what '{name}' carries are not fields", where=name, why=str(error)) from None


# -- writing ---------------------------------------------------------------------------------------------------------
class AnnotationWriter:
    """Remembers shardings: programs repeat a few of them thousands of times."""

    def __init__(self) -> None:
        self._shardings: dict[str, Message] = {}

    def sharding(self, text: str, to: Message) -> None:
        """Fill an empty OpSharding."""
        found = self._shardings.get(text)
        if found is None:
            found = self._shardings[text] = _OpSharding()
            write_sharding(text, found)
        to.CopyFrom(found)
        to.SetInParent()

    def write(self, i: Instruction, to: Message) -> None:
        """All extras of an instruction. Raises PROTO005 for one that has no field."""
        for name, value in i.extras.items():
            if name == "sharding":
                self.sharding(value, to.sharding)
            elif name == "backend_config":
                to.backend_config = to_bytes(value)
            elif name == "frontend_attributes":
                write_frontend_attributes(value, to.frontend_attributes)
            elif name == "parameter_replication":
                to.parameter_replication.replicated_at_leaf_buffers.extend(value)
            elif name == "statistics":
                _write_statistics(value, to.statistics_viz)
            elif name == "result_accuracy":
                write_accuracy(value, to.result_accuracy)
            elif name == "origin":
                write_origin(value, to.original_value)
            elif name == CARRIED:
                merge_unread(i.extras, i.name, to)
            else:
                raise HeronError("PROTO005", f"'{name}' has no field in HloInstructionProto", where=i.name)


def write_frontend_attributes(values: dict[str, str], to: Message) -> None:
    """By name."""
    to.SetInParent()
    for name in sorted(values):
        to.map.add(key=name, value=values[name])


def _write_statistics(text: str, to: Message) -> None:
    w = Words(text, "statistics")
    w.expect("{")
    while not w.accept("}"):
        if w.tokens[w.n - 1] != "{":
            w.expect(",")
        name = w.word()
        w.expect("=")
        if name == "visualizing_index":
            to.stat_index_to_visualize = w.integer()
        else:
            to.statistics.add(stat_name=name, stat_val=w.number())
    w.end()


def write_accuracy(text: str, to: Message) -> None:
    """``{mode=highest}`` or ``{tolerance={atol=1,rtol=2,ulps=3}}``."""
    w = Words(text, "result_accuracy")
    w.expect("{")
    name = w.word()
    w.expect("=")
    if name == "mode":
        mode = w.word()
        if mode not in _ACCURACY_MODES:
            w.fail(" or ".join(_ACCURACY_MODES))
        to.mode = _ACCURACY_MODES.index(mode)
    elif name == "tolerance":
        _write_tolerance(w, to.tolerance)
    else:
        w.fail("mode or tolerance")
    w.expect("}")
    w.end()


def _write_tolerance(w: Words, to: Message) -> None:
    to.SetInParent()
    w.expect("{")
    while not w.accept("}"):
        if w.tokens[w.n - 1] != "{":
            w.expect(",")
        name = w.word()
        w.expect("=")
        if name == "ulps":
            to.ulps = w.integer()
        elif name in ("atol", "rtol"):
            setattr(to, name, w.number())
        else:
            w.fail("atol, rtol or ulps")


# -- reading ---------------------------------------------------------------------------------------------------------
class AnnotationReader:
    """Remembers shardings, as the writer does."""

    def __init__(self) -> None:
        self._shardings: dict[bytes, str] = {}

    def sharding(self, proto: Message) -> str:
        """XLA's text of an OpSharding."""
        key: bytes = proto.SerializeToString()
        found = self._shardings.get(key)
        if found is None:
            found = self._shardings[key] = read_sharding(proto)
        return found

    def read(self, proto: Message, payloads: list[bytes]) -> dict[str, Any]:
        """The extras of an instruction."""
        extras: dict[str, Any] = {}
        if proto.HasField("parameter_replication"):
            extras["parameter_replication"] = tuple(proto.parameter_replication.replicated_at_leaf_buffers)
        if proto.HasField("sharding"):
            extras["sharding"] = self.sharding(proto.sharding)
        if found := proto.frontend_attributes.map:
            extras["frontend_attributes"] = {entry.key: entry.value for entry in found}
        if found := proto.statistics_viz.statistics:
            index = proto.statistics_viz.stat_index_to_visualize
            parts = [f"visualizing_index={index}", *(f"{s.stat_name}={s.stat_val:.6g}" for s in found)]
            extras["statistics"] = "{" + ",".join(parts) + "}"
        if proto.HasField("original_value"):
            extras["origin"] = read_origin(proto.original_value)
        config = proto.backend_config
        if proto.HasField("backend_config_payload"):
            config = _payload(proto.backend_config_payload, payloads)
        if config:
            extras["backend_config"] = to_text(config)
        if unread := unread_fields(proto):
            extras[CARRIED] = unread
        return extras


def _payload(proto: Message, payloads: list[bytes]) -> bytes:
    if not proto.HasField("id"):
        return proto.value
    if not 0 <= proto.id < len(payloads):
        raise HeronError("PROTO002", f"backend configuration {proto.id} is not among the module's {len(payloads)}")
    return payloads[proto.id]


def read_accuracy(proto: Message) -> str | None:
    """The text, or None for the default."""
    if proto.HasField("tolerance"):
        t = proto.tolerance
        return f"{{tolerance={{atol={t.atol:.6g},rtol={t.rtol:.6g},ulps={t.ulps}}}}}"
    if not 0 < proto.mode < len(_ACCURACY_MODES):
        return None
    return f"{{mode={_ACCURACY_MODES[proto.mode]}}}"
