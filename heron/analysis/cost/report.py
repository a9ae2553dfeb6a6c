"""The cost of a program, and of a run on several devices, as plain JSON values."""

from __future__ import annotations

from typing import Any

from heron.analysis.cost.program import ProgramCost, Step
from heron.analysis.cost.step import Exchange
from heron.hlo.ir.origin import operation, origin, source_line
from heron.targets import Target


def to_json(cost: ProgramCost, target: Target) -> dict[str, Any]:
    """Stable fields: totals in seconds, flops and bytes, and ``steps`` in the order of execution."""
    return {
        "target": target.name,
        "seconds": cost.seconds,
        "steps_run": cost.launches,
        "flops": cost.flops,
        "bytes": cost.bytes,
        "steps": [_row(s) for s in cost.steps],
    }


def exchange_to_json(e: Exchange) -> dict[str, Any]:
    """Stable fields of a collective: its devices and links, runs, bytes and seconds of one run."""
    return {
        "name": e.instruction.name,
        "opcode": e.instruction.opcode,
        "from": origin(e.instruction),
        "devices": e.pace.members,
        "links": [{"name": r.link.name, "members": r.members} for r in e.pace.rings],
        "runs": e.runs,
        "runs_known": e.known,
        "bytes": e.bytes,
        "wire_bytes": e.wire_bytes,
        "seconds": e.seconds,
        "exposed_seconds": e.exposed,
    }


def _row(s: Step) -> dict[str, Any]:
    c, e = s.cost, s.estimate
    return {
        "name": c.name,
        "opcode": c.opcode,
        "runs": s.runs,
        "runs_known": s.known,
        "seconds": e.seconds,
        "launch_seconds": e.launch,
        "compute_seconds": e.compute,
        "memory_seconds": e.memory,
        "limit": e.bound,
        "roofline_fraction": e.fraction,
        "flops": c.flops,
        "transcendentals": c.transcendentals,
        "unit": c.unit,
        "reads": [
            {"operand": r.operand, "size": r.size, "distinct": r.distinct, "total": r.total, "used": r.used}
            for r in c.reads
        ],
        "written": c.written,
        "work_items": c.work_items,
        "op_name": operation(s.instruction),
        "source": source_line(s.instruction),
    }
