"""Pictures of a program's memory: bars for a terminal, and an SVG of every buffer over the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from heron.analysis.graph.dataflow import Value
from heron.buffers.heap import merged
from heron.buffers.profile import MemoryProfile

_EIGHTHS = " ▁▂▃▄▅▆▇█"

#: fills by what makes the value: products, kernels, copies, loops, the rest
_FILLS = {"dot": "#d1495b", "convolution": "#d1495b", "fusion": "#30638e", "copy": "#edae49", "while": "#66a182"}
_OTHER = "#8d8d99"


def bars(used: Sequence[int] | np.ndarray, width: int = 80, height: int = 8) -> list[str]:
    """Lines of text, the highest first: bytes in use over time, each column the most of its ticks."""
    used = np.asarray(used)
    if not len(used) or not used.max():
        return []
    edges = np.linspace(0, len(used), min(width, len(used)) + 1).astype(int)
    columns = [int(used[a : max(b, a + 1)].max()) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    scale = height * 8 / max(columns)
    eighths = [round(c * scale) for c in columns]
    rows = []
    for row in range(height - 1, -1, -1):
        rows.append("".join(_EIGHTHS[min(8, max(0, e - row * 8))] for e in eighths).rstrip())
    return rows


def svg(profile: MemoryProfile, width: int = 1200, height: int = 600) -> str:
    """Every buffer as a box: time to the right, place in memory downwards; the allocations one below the other.

    A box's title, shown by a browser under the pointer, has the value's name, shape, bytes and life.
    """
    a = profile.assignment
    lanes = [x for x in a.allocations if x.kind in ("temp", "output") and x.size]
    total = sum(x.size for x in lanes) or 1
    ticks = profile.timeline.length + 3
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 40}" font-family="sans-serif">',
        f'<text x="4" y="16" font-size="13">{escape(a.module.name)}: outputs {a.output_bytes:,} B, '
        f"temp {a.temp_bytes:,} B, most in use {profile.peak:,} B</text>",
    ]
    top = 24.0
    for lane in lanes:
        tall = max(1.0, height * lane.size / total)
        out.append(
            f'<rect x="0" y="{top:.1f}" width="{width}" height="{tall:.1f}" fill="#f4f4f6" stroke="#cccccc">'
            f"<title>{escape(lane.name)}: {lane.size:,} B</title></rect>"
        )
        for v in lane.values:
            if v.kind != "output" and v.size:
                out += _boxes(profile, v, top, tall / lane.size, width / ticks)
        top += tall
    at = profile.peak_tick * width / ticks
    out.append(f'<path d="M{at:.1f} 24V{top:.1f}" stroke="#000000" stroke-dasharray="4 3"><title>peak</title></path>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _boxes(profile: MemoryProfile, v: Value, top: float, per_byte: float, per_tick: float) -> list[str]:
    a = profile.assignment
    s = a.slices[v]
    fill = _FILLS.get(v.instruction.opcode, _OTHER)
    title = escape(f"{v.name} {v.shape}: {v.size:,} B at {s.offset:,}")
    return [
        f'<rect x="{first * per_tick:.1f}" y="{top + s.offset * per_byte:.1f}" '
        f'width="{max(0.5, (last - first + 1) * per_tick):.1f}" height="{max(0.3, v.size * per_byte):.1f}" '
        f'fill="{fill}" stroke="#ffffff" stroke-width="0.3"><title>{title}, ticks {first} to {last}</title></rect>'
        for first, last in merged((x, y, v) for x, y in a.sets.liveness.intervals[v])
    ]
