"""The program after every pass; only the last one where the trace does not have the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heron.hlo.text import parse
from heron.trace.trace import Trace
from heron.view.record.versions import Versions

if TYPE_CHECKING:
    from heron.trace.record import Record


def section(trace: Record) -> dict[str, Any]:
    """The stored form of `heron.view.record.versions`; ``is_whole``: whether the versions between are there."""
    if trace.versions:
        return {**trace.versions, "is_whole": True}
    if not trace.program:
        return {}
    versions = Versions(Trace())
    versions.after("", parse(trace.program, elided_as_zero=True))
    return {**versions.to_json(), "is_whole": False}
