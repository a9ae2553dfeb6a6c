"""Programs that show themselves in a notebook: modules, executables, traces and decisions as HTML.

`register` adds a formatter for each type to IPython, by the type's name: no type has to know of notebooks, and none is
loaded for it. `import heron` in a notebook calls it.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heron.report.document import Block, Table, Text
from heron.report.html import fragment
from heron.trace.summary import seconds, size

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module
    from heron.jitting import Explanation
    from heron.runtime.executable import Executable
    from heron.trace.record import Decision, Record
    from heron.trace.why import Answer

#: boxes of a program that is drawn, rows of a table
_BOXES, _ROWS = 80, 30


def register() -> None:
    """Show heron's types as HTML in the notebook that runs; nothing happens elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    formatter = shell.display_formatter.formatters["text/html"]
    for (home, name), show in _SHOWN.items():
        formatter.for_type_by_name(home, name, show)


def module(m: Module) -> str:
    """The interface of a program, its graph if that is small, and its text."""
    from heron.trace.graph.boxes import graph_of
    from heron.trace.graph.drawing import svg

    entry = m.entry
    rows = [("parameter", p.name, str(p.shape)) for p in entry.parameters]
    rows.append(("result", entry.root.name, str(entry.root.shape)))
    count = m.instruction_count()
    title = f"{m.name}: {_number(count, 'instruction')} in {_number(len(m.computations), 'computation')}"
    graph = graph_of(entry) if count <= _BOXES else None
    picture = "" if graph is None or graph.count() > _BOXES else _drawing(svg(graph))
    return fragment(title, Table.of("", "name", "shape", rows=_cut(rows), rest=_rest(rows))) + picture + _text(m)


def executable(e: Executable) -> str:
    """The kernels of a compiled program, its memory as a table and over time."""
    from heron.buffers.picture import svg
    from heron.buffers.profile import MemoryProfile

    rows = [
        (k.name, k.emitter, str(k.uses), "x".join(map(str, k.grid)), ", ".join(k.instructions[:4])) for k in e.kernels
    ]
    profile = MemoryProfile(e.assignment)
    picture = _drawing(svg(profile)) if profile.peak else ""
    return (
        fragment(
            f"{e.name} for {e.target}: {_number(sum(k.uses for k in e.kernels), 'launch', 'launches')}",
            Table.of("kernel", "emitter", "launches>", "grid", "instructions", rows=_cut(rows), rest=_rest(rows)),
            memory(dict(e.memory)),
        )
        + picture
    )


def memory(kinds: dict[str, int]) -> Table:
    """Bytes by kind."""
    return Table.of("memory", "bytes>", "size>", rows=[(k, f"{n:,}", size(n)) for k, n in kinds.items()])


def trace(t: Record) -> str:
    """Stages, kernels and decisions of a compile."""
    stages = [("↳ " * depth + s.name, seconds(s.seconds)) for top in t.stages for depth, s in top.walk() if depth < 3]
    kernels = [(k.name, k.emitter, str(k.uses), seconds(k.seconds)) for k in t.kernels]
    return fragment(
        f"{t.module} for {t.target}: compiled in {seconds(t.seconds)}",
        Table.of("stage", "time>", rows=stages),
        Table.of("kernel", "emitter", "launches>", "compile>", rows=_cut(kernels), rest=_rest(kernels)),
        decisions(t.decisions),
    )


def decisions(given: list[Decision]) -> Table:
    """One row a decision: the answer, the pass, the instructions, the reason."""
    rows = [("yes" if d.ok else "no", d.rule, d.subject, d.object, d.reason) for d in given]
    return Table.of("taken", "pass", "of", "with", "reason", rows=_cut(rows), rest=_rest(rows))


def answer(a: Answer) -> str:
    """The sentence of an answer and the decisions behind it."""
    blocks: list[Block] = [a.text, *a.lines]
    if a.decisions:
        blocks.append(decisions(a.decisions))
    return fragment(*blocks)


def explanation(e: Explanation) -> str:
    """The executable and the record of its compile."""
    return executable(e.executable) + trace(e.trace)


#: the formatter of each type, by its module and name
_SHOWN: dict[tuple[str, str], Callable[[Any], str]] = {
    ("heron.hlo.ir.module", "Module"): module,
    ("heron.runtime.executable", "Executable"): executable,
    ("heron.trace.record", "Record"): trace,
    ("heron.trace.why", "Answer"): answer,
    ("heron.trace.record", "Decision"): lambda d: fragment(decisions([d])),
    ("heron.buffers.memory", "Memory"): lambda m: fragment(memory(dict(m))),
    ("heron.jitting", "Explanation"): explanation,
}


def _cut(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return rows[:_ROWS]


def _rest(rows: list[tuple[str, ...]]) -> str:
    return f"{len(rows) - _ROWS:,} more" if len(rows) > _ROWS else ""


def _number(n: int, one: str, several: str = "") -> str:
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def _drawing(svg: str) -> str:
    """A picture as an image: its styles and names must not meet those of the notebook's page."""
    data = base64.b64encode(svg.encode()).decode()
    return f'<div style="overflow:auto;max-height:40em"><img src="data:image/svg+xml;base64,{data}" alt=""></div>'


def _text(m: Module) -> str:
    return fragment(Text("the program as HLO text", str(m), "hlo"))
