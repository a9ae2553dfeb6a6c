"""The estimated steps of a run, and the roofs of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heron.trace.record import Record

COLUMNS = (
    *("name", "opcode", "runs", "runs_known", "seconds", "launch_seconds", "compute_seconds", "memory_seconds"),
    *("limit", "roofline_fraction", "flops", "unit", "written"),
)


def section(trace: Record) -> dict[str, Any]:
    """``columns`` and ``steps``: rows of them, then the bytes read and the Python line."""
    if not trace.costs:
        return {}
    return {
        "machine": trace.costs["machine"],
        "seconds": trace.costs["seconds"],
        "columns": [*COLUMNS, "read", "from"],
        "steps": [
            [*(s[c] for c in COLUMNS), sum(r["distinct"] for r in s["reads"]), _origin(s)] for s in trace.costs["steps"]
        ],
    }


def _origin(step: dict[str, Any]) -> str:
    return f"{step['source']} {step['op_name'].rpartition('/')[2]}".strip()
