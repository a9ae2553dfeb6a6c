"""A buffer assignment as text and as JSON."""

from __future__ import annotations

from typing import Any

from heron.analysis.graph.dataflow import Value
from heron.analysis.graph.donation import donated_parameters
from heron.buffers.assignment import Allocation, BufferAssignment
from heron.buffers.heap import merged
from heron.hlo.ir.origin import origin


def report(assignment: BufferAssignment, top: int = 15, values: bool = False) -> str:
    """Totals, one line per allocation, and the largest temporaries at the tick where most bytes are in use.

    With ``values`` also every value: its allocation, offset, size, the ticks at which it is held, and its shape.
    """
    a = assignment
    lines = [
        f"buffer assignment of {a.module.name}",
        f"  arguments {a.argument_bytes:,} B, outputs {a.output_bytes:,} B, constants {a.constant_bytes:,} B, "
        f"temp {a.temp_bytes:,} B (peak use {a.peak_bytes:,} B)",
        "",
        *_table(("allocation", "bytes", "values", "what"), [_row(x) for x in a.allocations]),
    ]
    tick, held = at_peak(a)
    if held:
        lines += ["", f"temporaries at the peak (while {_running(a, tick)} runs):"]
        rows = [
            (v.name, f"{a.slices[v].size:,}", f"{a.slices[v].offset:,}", f"{s}..{e}", str(v.shape))
            for v, s, e in held[:top]
        ]
        lines += _table(("value", "bytes", "offset", "live", "shape"), rows)
        if len(held) > top:
            lines.append(f"  … and {len(held) - top} more")
    lines += _unused_donors(a)
    if values:
        lines += ["", "values by allocation:"]
        lines += _table(
            ("value", "bytes", "offset", "live", "shape"), [row for x in a.allocations for row in _rows(a, x)]
        )
    return "\n".join(lines)


def _row(a: Allocation) -> tuple[str, str, str, str]:
    names = [v.name for v in a.values if v.kind != "output"]
    shown = ", ".join(names[:4]) + (f", … {len(names) - 4} more" if len(names) > 4 else "")
    return a.name, f"{a.size:,}", str(len(names)), shown


def _rows(a: BufferAssignment, x: Allocation) -> list[tuple[str, str, str, str, str]]:
    """An allocation's name, then what lies in it in order of time."""
    intervals = a.sets.liveness.intervals
    found = [(f"[{x.name}]", f"{x.size:,}", "", "", "")]
    for v in sorted((v for v in x.values if v.kind != "output"), key=lambda v: intervals[v]):
        live = ", ".join(f"{first}..{last}" for first, last in intervals[v])
        found.append((f"  {v.name}", f"{v.size:,}", f"{a.slices[v].offset:,}", live, str(v.shape)))
    return found


def _unused_donors(a: BufferAssignment) -> list[str]:
    """A line for each parameter that was given up for nothing: no value lies in it."""
    given = {(number, index) for number, index in donated_parameters(a.module)}
    unused = [x for x in a.allocations if (x.parameter, x.index) in given and x.is_read_only]
    return [f"  {x.name} ({x.size:,} B) is donated, but nothing takes its place" for x in unused]


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(r[n]) for r in [head, *rows]) for n in range(len(head))]
    right = {n for n, h in enumerate(head) if h in ("bytes", "offset", "values")}

    def line(row: tuple[str, ...]) -> str:
        cells = (c.rjust(w) if n in right else c.ljust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True)))
        return ("  " + "  ".join(cells)).rstrip()

    return [line(head), *map(line, rows)]


def at_peak(a: BufferAssignment) -> tuple[int, list[tuple[Value, int, int]]]:
    """The tick where most temp bytes are in use, and what is: (value, first tick, last tick), largest first."""
    temp = a.temp
    if temp is None:
        return 0, []
    standing = dict.fromkeys(a.sets.find(v) for v in temp.values)
    changes: list[tuple[int, int]] = []
    for v in standing:
        for start, end in merged(a.sets.holds(v)):
            changes += [(start, v.size), (end + 1, -v.size)]
    changes.sort()
    now = top = tick = 0
    for when, change in changes:
        now += change
        if now > top:
            top, tick = now, when
    # of a buffer that changes hands at this tick, the value that leaves
    held = [next(((v, s, e) for s, e, v in a.sets.holds(x) if s <= tick <= e), None) for x in standing]
    held = [h for h in held if h is not None]
    held.sort(key=lambda h: (-h[0].size, h[1]))
    return tick, held


def _running(a: BufferAssignment, tick: int) -> str:
    timeline = a.sets.liveness.timeline
    last = next((i for i in reversed(timeline.order) if timeline.start[i] <= tick), None)
    return f"'{last.name}'" if last is not None else "nothing"


def to_json(a: BufferAssignment) -> dict[str, Any]:
    """Stable fields: totals, ``allocations`` with their values (offset, size, live ticks, Python
    line), ``peak``, ``schedule``: each instruction with the tick at which it starts."""
    intervals, timeline = a.sets.liveness.intervals, a.sets.liveness.timeline
    tick, held = at_peak(a)
    return {
        "module": a.module.name,
        "argument_bytes": a.argument_bytes,
        "output_bytes": a.output_bytes,
        "constant_bytes": a.constant_bytes,
        "temp_bytes": a.temp_bytes,
        "peak_bytes": a.peak_bytes,
        "alignment": a.alignment,
        "allocations": [
            {
                "number": x.number,
                "kind": x.kind,
                "size": x.size,
                "parameter": x.parameter if x.parameter >= 0 else None,
                "index": list(x.index),
                "output": x.output if x.output >= 0 else None,
                "values": [
                    {
                        "name": v.name,
                        "shape": str(v.shape),
                        "offset": a.slices[v].offset,
                        "size": a.slices[v].size,
                        "live": [list(i) for i in intervals[v]],
                        "from": origin(v.instruction),
                    }
                    for v in x.values
                    if v.kind != "output"
                ],
            }
            for x in a.allocations
        ],
        "peak": {"tick": tick, "values": [v.name for v, _, _ in held]},
        "schedule": [[i.name, timeline.start[i]] for i in timeline.order],
    }
