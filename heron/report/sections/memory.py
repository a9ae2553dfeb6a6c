"""Memory by kind, and the values that are held at the peak."""

from __future__ import annotations

from heron.buffers.profile import MemoryProfile
from heron.hlo.ir.origin import origin
from heron.report.document import Block, Section, Table
from heron.report.subject import Subject
from heron.trace.summary import size

_MOST = 10


def memory(s: Subject) -> Section:
    """Bytes of one run by kind, the instruction that runs at the peak, the largest values that are held then."""
    totals = dict(s.executable.memory)
    blocks: list[Block] = [
        Table.of("kind", "bytes>", "size>", rows=[(k, f"{n:,}", size(n)) for k, n in totals.items()])
    ]
    profile = MemoryProfile(s.executable.assignment)
    running, held = profile.running, profile.at_peak() if profile.peak else []
    if running is not None and held:
        blocks.append(f"Intermediate values take {size(profile.peak)} at most, while {running.name} runs.")
        left = held[_MOST:]
        rows = [
            (h.value.name, size(h.bytes), f"{h.first} to {h.last}", str(h.value.shape), origin(h.value.instruction))
            for h in held[:_MOST]
        ]
        rest = f"{len(left)} more values take {size(sum(h.bytes for h in left))}" if left else ""
        blocks.append(Table.of("held at the peak", "size>", "ticks", "shape", "from", rows=rows, rest=rest))
    facts = {
        "bytes": totals,
        "peak_running": running.name if running is not None else None,
        "peak": [{"value": h.value.name, "bytes": h.bytes} for h in held[:_MOST]],
    }
    return Section("Memory", blocks, facts)
