"""The program, the options and the totals."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heron.trace.record import Record


def section(trace: Record) -> dict[str, Any]:
    """Names, options, notes; memory by kind; steps by kind; how many decisions were taken and refused."""
    emitters = Counter[str]()
    for k in trace.kernels:
        emitters[k.emitter] += k.uses
    return {
        "module": trace.module,
        "target": trace.target,
        "options": dict(trace.options),
        "notes": list(trace.notes),
        "seconds": trace.seconds,
        "memory": dict(trace.memory),
        "kernels": len(trace.kernels),
        "launches": sum(k.uses for k in trace.kernels),
        "emitters": dict(emitters.most_common()),
        "thunks": dict(trace.thunks),
        "taken": sum(d.ok for d in trace.decisions),
        "refused": sum(not d.ok for d in trace.decisions),
    }
