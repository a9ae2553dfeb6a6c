"""A trace as text tables of at most 100 columns; colour is never the only marker."""

from __future__ import annotations

import io
from collections import Counter
from typing import TYPE_CHECKING

from heron.trace.record import KernelRecord, PassRecord, Record

if TYPE_CHECKING:
    from rich.table import Table

WIDTH = 100


def summary(trace: Record) -> str:
    """Kernels by emitter, other steps, memory, time by stage, the slowest passes, notes."""
    from rich.console import Console

    out = Console(file=io.StringIO(), width=WIDTH, color_system=None, highlight=False, markup=False)
    title = trace.module + (f" for {trace.target}" if trace.target else "")
    title += "".join(f" {name}={value}" for name, value in trace.options.items())
    out.print(f"{title}: {_steps(trace)} in {seconds(trace.seconds)}")
    for table in (_kernels(trace), _resources(trace), _memory(trace), _stages(trace), passes(trace)):
        if table.row_count:
            out.print()
            out.print(table)
    out.print()
    refused = Counter((d.rule, d.reason) for d in trace.decisions if not d.ok)
    if trace.decisions:
        accepted = sum(d.ok for d in trace.decisions)
        out.print(f"{accepted} decisions taken, {len(trace.decisions) - accepted} refused")
        for (rule, reason), times in refused.most_common(5):
            out.print(f"  {times} x {rule}: {reason}" if rule else f"  {times} x {reason}", soft_wrap=False)
    for note in trace.notes:
        out.print(f"note: {note}")
    return "\n".join(line.rstrip() for line in out.file.getvalue().rstrip().splitlines()) + "\n"  # type: ignore[attr-defined]


def size(count: int | float) -> str:
    """Bytes with a binary unit: ``64.0 MiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{int(value)} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def seconds(value: float) -> str:
    """A duration with three figures: ``37 ns``, ``3.15 µs``, ``812 µs``, ``12.3 ms``, ``4.15 s``."""
    if value >= 1:
        return f"{value:.2f} s"
    if value >= 1e-3:
        return f"{value * 1e3:.1f} ms"
    if value >= 1e-5:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1e6:.2f} µs" if value >= 1e-6 else f"{value * 1e9:.0f} ns"


def count(value: float) -> str:
    """A number of operations with three figures: ``537``, ``16.4k``, ``1.07G``."""
    for unit in ("", "k", "M", "G", "T"):
        if value < 1000:
            return f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:.3g}P"


def table(*columns: str, title: str | None = None) -> Table:
    """A plain table; columns whose name ends in ``>`` are right-aligned."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(
        box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, show_edge=False, collapse_padding=True
    )
    for column in columns:
        made.add_column(column.rstrip(">"), justify="right" if column.endswith(">") else "left")
    return made


def _steps(trace: Record) -> str:
    launches = sum(k.uses for k in trace.kernels)
    parts = [f"{launches} kernel launches ({len(trace.kernels)} distinct)"]
    parts += [f"{n} {kind}" for kind, n in sorted(trace.thunks.items())]
    return ", ".join(parts)


def _kernels(trace: Record) -> Table:
    by_emitter: dict[str, list[KernelRecord]] = {}
    for k in trace.kernels:
        by_emitter.setdefault(k.emitter, []).append(k)
    timed = any(k.seconds or k.code_size for k in trace.kernels)  # not every target builds kernels one by one
    made = table("emitter", "kernels>", "launches>", *(("code>", "compile>") if timed else ()))
    for emitter, kernels in sorted(by_emitter.items()):
        cells = [emitter, str(len(kernels)), str(sum(k.uses for k in kernels))]
        if timed:
            cells += [size(sum(k.code_size for k in kernels)), seconds(sum(k.seconds for k in kernels))]
        made.add_row(*cells)
    return made


def _resources(trace: Record, most: int = 16) -> Table:
    """The assembler's figures for the kernels with the most registers."""
    made = table("kernel", "emitter", "registers>", "shared>", "barriers>", "spills>", "code>")
    known = [k for k in trace.kernels if k.resources]
    for k in sorted(known, key=lambda k: (-k.resources["registers"], k.name))[:most]:
        r = k.resources
        spills = size(r["spill_stores"] + r["spill_loads"])
        cells = str(r["registers"]), size(r["shared_bytes"]), str(r["barriers"]), spills, size(k.code_size)
        made.add_row(k.name, k.emitter, *cells)
    if len(known) > most:
        made.add_row(f"{len(known) - most} more", *[""] * 6)
    return made


def _memory(trace: Record) -> Table:
    made = table("memory", "bytes>", ">")
    for kind, count in trace.memory.items():
        made.add_row(kind, f"{count:,}", size(count))
    return made


def _stages(trace: Record) -> Table:
    made = table("stage", "time>", "share>")
    whole = trace.seconds or 1.0
    for top in trace.stages:
        for depth, stage in top.walk():
            if depth < 3 and (depth == 0 or stage.seconds > 0.01 * whole):
                share = f"{100 * stage.seconds / whole:.0f} %"
                made.add_row("  " * depth + stage.name, seconds(stage.seconds), share)
    return made


def passes(trace: Record, most: int = 8) -> Table:
    """The slowest passes: runs, runs that changed something, instructions added, time."""
    made = table("pass", "runs>", "changed>", "instructions>", "time>")
    by_name: dict[str, list[PassRecord]] = {}
    for p in trace.passes:
        by_name.setdefault(p.name, []).append(p)
    cost = {name: sum(p.seconds for p in runs) for name, runs in by_name.items()}
    for name in sorted(by_name, key=lambda n: -cost[n])[:most]:
        runs = by_name[name]
        delta = sum(p.after - p.before for p in runs)
        made.add_row(name, str(len(runs)), str(sum(p.changed for p in runs)), f"{delta:+d}", seconds(cost[name]))
    if len(by_name) > most:
        rest = sum(cost.values()) - sum(sorted(cost.values(), reverse=True)[:most])
        made.add_row(f"{len(by_name) - most} more", "", "", "", seconds(rest))
    return made
