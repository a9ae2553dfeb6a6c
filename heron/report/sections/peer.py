"""The program beside XLA:CPU: run time by turns in one process, compile time, scratch memory, values."""

from __future__ import annotations

from heron.report.document import Section, Table
from heron.report.subject import Peer, Subject
from heron.trace.summary import seconds, size


def peer(s: Subject, p: Peer) -> Section:
    """Both programs in a table, with the ratio of heron's figure to XLA's."""
    temp = s.executable.memory.temp
    rows = [
        ("run time", seconds(p.ours), seconds(p.seconds), _ratio(p.ours, p.seconds)),
        (
            "compile time",
            seconds(s.trace.seconds),
            seconds(p.program.compile_seconds),
            _ratio(s.trace.seconds, p.program.compile_seconds),
        ),
    ]
    if p.program.temp_bytes is not None:
        rows.append(("scratch memory", size(temp), size(p.program.temp_bytes), _ratio(temp, p.program.temp_bytes)))
    facts = {
        "version": p.program.version,
        "run_seconds": p.seconds,
        "heron_run_seconds": p.ours,
        "compile_seconds": p.program.compile_seconds,
        "temp_bytes": p.program.temp_bytes,
        "largest_difference": p.difference,
    }
    told = (
        f"jaxlib {p.program.version}, the fastest of runs by turns on the same random arguments. Outputs differ by at "
        f"most {p.difference:.2g} of an output's largest magnitude (or of 1, if that is larger)."
    )
    return Section("Against XLA", [told, Table.of("", "heron>", "XLA:CPU>", "ratio>", rows=rows)], facts)


def _ratio(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.2f} x" if theirs else ""
