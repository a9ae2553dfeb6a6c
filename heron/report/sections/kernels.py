"""The steps that take longest: measured or estimated time, the limit of each, and the limit that comes next."""

from __future__ import annotations

from heron.analysis.cost.estimate import Estimate
from heron.analysis.cost.program import Step, program_cost
from heron.hlo.ir.origin import origin
from heron.report.document import Section, Table
from heron.report.subject import Subject
from heron.trace.summary import count, seconds, size

_MOST = 15


def kernels(s: Subject) -> Section:
    """One row for each of the steps that take longest; measured where the program was run with counters."""
    steps = list(program_cost(s.scheduled, s.target).steps)
    timed = bool(s.measured)
    spent = {step: s.measured.get(step.cost.name, 0.0) if timed else step.seconds for step in steps}
    whole = sum(spent.values()) or 1.0
    steps.sort(key=lambda step: -spent[step])
    shown = steps[:_MOST]
    left = steps[_MOST:]
    rest = f"{len(left)} more steps take {seconds(sum(spent[x] for x in left))}" if left else ""
    columns = ("kernel", "runs>", *(("measured>",) if timed else ()), "estimated>", "share>", "flops>", "bytes>")
    table = Table.of(
        *columns,
        *("limit", "of roofline>", "next limit", "from"),
        rows=[_row(x, spent[x], whole, timed) for x in shown],
        rest=rest,
    )
    facts = [_facts(x, spent[x] if timed else None) for x in shown]
    told = "Times are measured on this machine." if timed else "Times are estimates of the cost model."
    return Section("Kernels", [told + " " + _LEGEND, table], facts)


_LEGEND = (
    "The limit is the part of the estimate that dominates: launch, compute or memory. The next limit is the one that "
    "remains without it, and how much faster the step would be then."
)


def next_limit(e: Estimate) -> tuple[str, float]:
    """The term that dominates once the present limit is gone, and the time before over the time after."""
    terms = {"launch": e.launch, "compute": e.compute, "memory": e.memory}
    terms[e.bound] = 0.0
    remaining = terms["launch"] + max(terms["compute"], terms["memory"])
    name = max(terms, key=lambda k: terms[k])
    return (name, e.seconds / remaining) if remaining > 0 else ("none", float("inf"))


def _row(step: Step, spent: float, whole: float, timed: bool) -> tuple[str, ...]:
    name, gain = next_limit(step.estimate)
    roof = step.runs * step.estimate.ideal / spent if spent else 1.0
    return (
        step.cost.name,
        f"{step.runs:g}" if step.known else f"{step.runs:g}?",
        *((seconds(spent),) if timed else ()),
        seconds(step.seconds),
        f"{100 * spent / whole:.0f} %",
        count(step.runs * step.cost.flops),
        size(step.runs * step.cost.distinct),
        step.estimate.bound,
        f"{100 * min(1.0, roof):.0f} %",
        f"{name}, {gain:.1f} x faster" if gain < 1e3 else name,
        origin(step.instruction),
    )


def _facts(step: Step, measured: float | None) -> dict[str, object]:
    name, gain = next_limit(step.estimate)
    return {
        "name": step.cost.name,
        "runs": step.runs,
        "measured_seconds": measured,
        "estimated_seconds": step.seconds,
        "flops": step.runs * step.cost.flops,
        "bytes": step.runs * step.cost.distinct,
        "limit": step.estimate.bound,
        "next_limit": name,
        "next_limit_gain": gain,
        "source": origin(step.instruction),
    }
