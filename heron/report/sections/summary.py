"""The program and its compile in a few numbers, with the stages and passes that took longest."""

from __future__ import annotations

from collections import Counter

from heron.analysis.cost.program import program_cost
from heron.report.document import Section, Table, Text
from heron.report.subject import Subject
from heron.trace.summary import seconds, size

#: opcodes, passes and notes that are shown
_MOST = 12
#: a program of more characters is not part of the report
_LONGEST_TEXT = 400_000


def summary(s: Subject) -> Section:
    """Instructions before and after, kernels, compile time, run time or its estimate, the program itself."""
    cost = program_cost(s.scheduled, s.target)
    ideal = sum(step.runs * step.estimate.ideal for step in cost.steps)
    before, after = s.given.instruction_count(), s.scheduled.instruction_count()
    launches = sum(k.uses for k in s.trace.kernels)
    facts = {
        "module": s.given.name,
        "instructions": before,
        "instructions_scheduled": after,
        "kernels": len(s.trace.kernels),
        "launches": launches,
        "library_calls": dict(s.trace.thunks),
        "compile_seconds": s.trace.seconds,
        "run_seconds": s.seconds,
        "estimated_seconds": cost.seconds,
        "roofline_seconds": ideal,
        "flops": cost.flops,
        "bytes": cost.bytes,
        "notes": list(s.trace.notes),
    }
    rows = [
        ("instructions", f"{before:,} before the passes, {after:,} after them"),
        ("kernels", f"{launches:,} launches of {len(s.trace.kernels):,} distinct kernels"),
        ("other steps", ", ".join(f"{n} {kind}" for kind, n in sorted(s.trace.thunks.items())) or "none"),
        ("compile time", seconds(s.trace.seconds)),
        ("run time", seconds(s.seconds) if s.seconds is not None else f"not run; estimated {seconds(cost.seconds)}"),
        ("roofline", f"{seconds(ideal)} for {cost.flops / 1e9:.3g} Gflop and {size(cost.bytes)}"),
    ]
    blocks = [Table.of("", "", rows=rows), *s.trace.notes[:_MOST], _opcodes(s)]
    text = str(s.given)
    if len(text) <= _LONGEST_TEXT:
        blocks.append(Text(f"the program, {before:,} instructions", text, "hlo"))
    return Section("Summary", blocks, facts)


def compile_time(s: Subject) -> Section:
    """Seconds by stage, and the slowest passes."""
    whole = s.trace.seconds or 1.0
    stages = [
        ("↳ " * depth + stage.name, seconds(stage.seconds), f"{100 * stage.seconds / whole:.0f} %")
        for top in s.trace.stages
        for depth, stage in top.walk()
        if depth < 3 and (depth == 0 or stage.seconds > 0.01 * whole)
    ]
    spent: Counter[str] = Counter()
    for p in s.trace.passes:
        spent[p.name] += p.seconds  # type: ignore[assignment]
    shown = spent.most_common(_MOST)
    left = len(spent) - len(shown)
    return Section(
        "Compile time",
        [
            Table.of("stage", "time>", "share>", rows=stages),
            Table.of(
                "slowest passes",
                "time>",
                rows=[(name, seconds(t)) for name, t in shown],
                rest=f"{left} more passes take {seconds(sum(spent.values()) - sum(t for _, t in shown))}"
                if left
                else "",
            ),
        ],
        {"stages": {top.name: top.seconds for top in s.trace.stages}, "passes": dict(shown)},
    )


def _opcodes(s: Subject) -> Table:
    counts = Counter(i.opcode for c in s.given.computations for i in c.instructions)
    shown = counts.most_common(_MOST)
    left = sum(counts.values()) - sum(n for _, n in shown)
    rest = f"{left:,} instructions of {len(counts) - len(shown)} other ops" if left else ""
    return Table.of("op", "instructions>", rows=[(op, f"{n:,}") for op, n in shown], rest=rest)
