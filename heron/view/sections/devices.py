"""The devices of a program for several of them: mesh, arrays and the tile that each device has, collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heron.trace.record import Record


def section(trace: Record) -> dict[str, Any]:
    """The facts of the trace; empty for one device."""
    return dict(trace.devices)
