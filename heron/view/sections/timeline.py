"""When each stage, pass and piece of LLVM's work ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heron.trace.record import Record, Stage


def section(trace: Record) -> dict[str, Any]:
    """Rows of ``stages`` (depth, name, start, seconds), ``passes`` and ``spans`` (name, kind, start,
    seconds)."""
    return {
        "stages": [_stage(depth, s) for top in trace.stages for depth, s in top.walk()],
        "passes": [
            [p.name, p.pipeline, p.start, p.seconds, p.changed, p.before, p.after, list(p.rules.items())]
            for p in trace.passes
        ],
        "spans": [[s.name, s.kind, s.start, s.seconds] for s in sorted(trace.spans, key=lambda s: s.start)],
    }


def _stage(depth: int, s: Stage) -> list[Any]:
    return [depth, s.name, s.start, s.seconds]
