"""The place of every value in memory, and its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heron.trace.record import Record


def section(trace: Record) -> dict[str, Any]:
    """``allocations`` (name, kind, size) and ``values``: their allocation, offset, size, live ticks, Python line;
    ``used``: bytes by tick; ``schedule``: instructions with the ticks at which they start."""
    found = trace.buffers.get("allocations", [])
    return {
        "allocations": [[_label(a), a["kind"], a["size"]] for a in found],
        "values": [
            [n, v["name"], v["shape"], v["offset"], v["size"], v["live"], v["from"]]
            for n, a in enumerate(found)
            for v in a["values"]
        ],
        "used": trace.buffers.get("profile", {}).get("used", []),
        "schedule": trace.buffers.get("schedule", []),
    }


def _label(a: dict[str, Any]) -> str:
    number = a.get(a["kind"])
    return a["kind"] if number is None else f"{a['kind']} {number}"
