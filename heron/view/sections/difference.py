"""The difference from an earlier compile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heron.trace.difference import difference

if TYPE_CHECKING:
    from heron.trace.record import Record


def section(before: Record, trace: Record) -> dict[str, Any]:
    """The fields of `heron.trace.difference.Difference`."""
    return difference(before, trace).to_json()
