"""The plain data that a page about a compile shows: one section a file of `heron.view.sections`.

Whatever is in a trace may come from anybody's program: the document holds text and numbers only, and the page puts text
into text nodes only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heron import __version__
from heron.view.sections import decisions, devices, difference, kernels, memory, overview, programs, roofline, timeline

if TYPE_CHECKING:
    from heron.trace.record import Record


def document(trace: Record, before: Record | None = None) -> dict[str, Any]:
    """All sections of a trace's page; ``before`` adds how it differs from another compile."""
    return {
        "heron": __version__,
        "overview": overview.section(trace),
        "timeline": timeline.section(trace),
        "programs": programs.section(trace),
        "kernels": kernels.section(trace),
        "memory": memory.section(trace),
        "roofline": roofline.section(trace),
        "decisions": decisions.section(trace),
        "devices": devices.section(trace),
        "difference": {} if before is None else difference.section(before, trace),
    }
