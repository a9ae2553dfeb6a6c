"""backend_config of XLA:GPU's own custom calls: one JSON object, of which one member is about the library."""

from __future__ import annotations

import json
from typing import Any

from heron.errors import HeronError
from heron.hlo.instruction import Instruction


def read(i: Instruction, member: str) -> dict[str, Any]:
    """That member of the call's configuration; the whole of it where it has none (as older programs print it).

    Raises HLO170 for text that is no JSON object.
    """
    text = str(i.extras.get("backend_config", "")) or "{}"
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad(i, str(error)[:200]) from None
    if not isinstance(whole, dict):
        raise bad(i, "it is no object")
    found = whole.get(member, whole)
    if not isinstance(found, dict):
        raise bad(i, f"'{member}' is no object")
    return found


def write(member: str, config: dict[str, Any]) -> str:
    """The configuration as XLA prints it."""
    whole = {
        "operation_queue_id": "0",
        member: config,
        "force_earliest_schedule": False,
        "reification_cost": [],
        "device_type": "DEVICE_TYPE_INVALID",
    }
    return json.dumps(whole, separators=(",", ":"))


def number(i: Instruction, value: Any) -> float:
    """A number, which may be written as text, as 64-bit integers are. Raises HLO170."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise bad(i, f"{value!r} is no number") from None


def integers(i: Instruction, values: Any) -> tuple[int, ...]:
    """Integers written as text. Raises HLO170."""
    if not isinstance(values, list):
        raise bad(i, f"{values!r} is no list")
    return tuple([int(number(i, v)) for v in values])


def plain(value: float) -> float | int:
    """A number as JSON shows it: without a point where it is whole."""
    return int(value) if value == int(value) else value


def bad(i: Instruction, why: str) -> HeronError:
    """The error for a configuration that cannot be read."""
    return HeronError("HLO170", f"the backend_config of '{i.name}' cannot be read", where=str(i), why=why)
