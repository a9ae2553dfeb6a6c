"""docs/reference/performance.md: the goals, whether they are met, and every program's figures."""

from __future__ import annotations

import datetime
import math
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.compare import geomean
from benchmarks.performance import calls, startup
from benchmarks.performance.calls import Call
from benchmarks.performance.growth import Growth
from benchmarks.performance.limits import KINDS
from benchmarks.performance.machine import Rates, processor
from benchmarks.performance.programs import Program
from benchmarks.performance.startup import Startup

#: programs whose run time has a goal of its own, 0.35 x XLA:CPU
FAST = ("uniform", "nbody", "sort_topk", "cumsum", "reductions", "heat_while")


@dataclass(slots=True)
class Figures:
    """All that one run of the benchmark found."""

    one: Rates
    all: Rates
    small: bool = False
    programs: list[Program] = field(default_factory=list)
    growths: list[Growth] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    startup: Startup | None = None

    def ratios(self, what: str) -> list[float]:
        """Finite ratios of heron over XLA:CPU."""
        return [r for p in self.programs if math.isfinite(r := p.ratio(what))]


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal in words, what was measured, and whether that meets it (None: not measured)."""

    text: str
    measured: str
    met: bool | None


def goals(f: Figures) -> list[Goal]:
    """Every goal with its figure."""
    by_name = {p.name: p for p in f.programs}
    found = [
        _mean(f, "run", "run time, geometric mean", 0.5),
        _worst(f, "run", "run time of each program", 1.1, f.programs),
        _worst(f, "run", f"run time of {', '.join(FAST)}", 0.35, [by_name[n] for n in FAST if n in by_name]),
        _mean(f, "compile", "compile time, geometric mean", 1.0),
        _worst(f, "compile", "compile time of gpt2_12l_train_step", 0.35, _named(by_name, "gpt2_12l_train_step")),
        _mean(f, "warm", "compile time with a warm cache, geometric mean", 0.2),
        _worst(f, "peak_bytes", "peak memory of a compile", 2.0, f.programs),
        _worst(f, "temp_bytes", "temp bytes", 1.0, f.programs),
        _most("run time against NumPy", 1.0, [(p.name, p.numpy) for p in f.programs]),
    ]
    light = [(p.name, p.speedup) for p in f.programs if p.memory_light and math.isfinite(p.speedup)]
    if light:
        mean = geomean(x for _, x in light)
        least = min(light, key=lambda x: x[1])
        text = f"{mean:.2f} x in geometric mean of {len(light)}; least {least[0]}, {least[1]:.2f} x"
        found.append(Goal(f"{f.all.threads} threads against one, where arithmetic counts: 1.7 x", text, mean >= 1.7))
    if f.growths:
        worst = max(f.growths, key=lambda g: g.exponent)
        text = f"size to the {worst.exponent:.2f} at most ({worst.op})"
        found.append(Goal("time grows with size linearly", text, worst.exponent <= 1.15))
    if f.calls:
        first = f.calls[0]
        found.append(_below("a call of a one-kernel program", first.microseconds, calls.GOAL, "µs"))
    if f.startup:
        found.append(_below("`import heron`", f.startup.import_heron, startup.GOAL, "s"))
    return found


def page(f: Figures) -> str:
    """The whole page."""
    scale = "small" if f.small else "full"
    lines = [
        "# How fast heron is on a CPU, and what holds it back",
        "",
        "Written by `python -m benchmarks.performance --write`; do not edit. Every figure is of one run, peers in",
        "turn, each program in processes of its own. Ratios are heron over its peer: below 1 heron is better. Times",
        "alone mean little on a machine that others use too.",
        "",
        _machine(f),
        "",
        "## Goals",
        "",
        "| goal | measured | |",
        "|---|---|---|",
    ]
    for g in goals(f):
        lines.append(f"| {g.text} | {g.measured} | {'–' if g.met is None else 'met' if g.met else '**not met**'} |")
    lines += [
        "",
        "## Programs",
        "",
        f'The programs of [workloads.md](workloads.md), {scale} scale. "warm": compile time when a cache of files has',
        'all code ([cache.md](../use/cache.md)); "peak": peak memory of a fresh process after the compile, imports',
        'included; "threads": the time of one thread over that of all. Against XLA medians of turns count,',
        "against NumPy and one thread the best.",
        "",
        *_table(f),
        "",
        "![run and compile time over XLA:CPU](performance/ratios.svg)",
        "",
        "## Roofline",
        "",
        "The best time the machine allows for a program's steps: the longer of their arithmetic at the measured peak",
        'and of their bytes, each needed once, at the measured bandwidth. "next limit" is where most is lost, by what',
        "`heron profile` says of every step:",
        "",
        *[f"- **{kind}**: {text}" for kind, text in KINDS.items()],
        "",
        "![part of the roofline reached](performance/roofline.svg)",
        "",
        "## Threads",
        "",
        f"One thread against {f.all.threads}. Where memory is what counts, threads share its bandwidth:",
        f"{f.one.bandwidth / 1e9:.1f} GB/s for one, {f.all.bandwidth / 1e9:.1f} GB/s for all.",
        "",
        "![time of one thread over that of all](performance/threads.svg)",
        "",
        "## Sizes",
        "",
        "Time for each element, by size, where each run finds its arguments in no cache: what a call takes beyond its",
        'elements shows on the left, and the rest should be level. "exponent": time',
        "grows as size to that power from the first size on that no cache holds.",
        "",
        *_growths(f.growths),
        "",
        "![time for each element by size](performance/growth.svg)",
        "",
        "## Calls from Python",
        "",
        *_calls(f),
    ]
    problems = [f"- {p.name}: {text}" for p in f.programs for text in (*_refusals(p), *p.problems)]
    if problems:
        lines += ["", "## What could not be measured", "", *problems]
    return "\n".join(lines).rstrip() + "\n"


def _machine(f: Figures) -> str:
    from heron import targets

    cores = targets.get("cpu").description.removeprefix("this machine: ")
    return (
        f"{datetime.date.today()}, {processor()}, {cores}, Python {platform.python_version()}. Measured in this run:"
        f" {f.all.f32 / 1e9:.0f} Gflop/s of f32 and {f.all.f64 / 1e9:.0f} of f64 by {f.all.threads} threads"
        f" ({f.one.f32 / 1e9:.0f} and {f.one.f64 / 1e9:.0f} by one); {f.all.read / 1e9:.1f} GB/s read,"
        f" {f.all.copy / 1e9:.1f} GB/s copied, both ways counted ({f.one.read / 1e9:.1f} and {f.one.copy / 1e9:.1f})."
    )


def _table(f: Figures) -> list[str]:
    head = (
        "program",
        "run ms",
        "/ XLA",
        "/ NumPy",
        "compile ms",
        "/ XLA",
        "warm / XLA",
        "peak MiB",
        "/ XLA",
        "threads",
    )
    lines = ["| " + " | ".join((*head, "roofline", "next limit")) + " |", "|---|" + "---:|" * 10 + "---|"]
    for p in sorted(f.programs, key=lambda p: p.name):
        ours, limits = p.row.heron, p.limits
        cells = [
            number(ours.median("run") * 1e3),
            *(number(x) for x in (p.ratio("run"), p.numpy)),
            number(ours.median("compile") * 1e3),
            *(number(p.ratio(w)) for w in ("compile", "warm")),
            f"{ours.peak_bytes / 2**20:.0f}",
            *(number(x) for x in (p.ratio("peak_bytes"), p.speedup)),
            "" if limits is None else f"{limits.roofline:.0%}",
            "" if limits is None else limits.next,
        ]
        lines.append(f"| {p.name} | " + " | ".join(cells) + " |")
    means = [geomean(f.ratios(w)) for w in ("run", "compile", "warm", "peak_bytes")]
    run, compiled, warm, peak = map(number, means)
    numpy = number(geomean(p.numpy for p in f.programs))
    lines.append(f"| geometric mean | | {run} | {numpy} | | {compiled} | {warm} | | {peak} | | | |")
    return lines


def _growths(growths: Iterable[Growth]) -> list[str]:
    lines = ["| op | elements | exponent |", "|---|---|---:|"]
    return lines + [f"| {g.op} | {g.sizes[0]:,} to {g.sizes[-1]:,} | {g.exponent:.2f} |" for g in growths]


def _calls(f: Figures) -> list[str]:
    lines = ["| call | µs | beside it | µs |", "|---|---:|---|---:|"]
    for c in f.calls:
        peer = f"{c.peer} | {number(c.peer_microseconds)}" if c.peer else " | "
        lines.append(f"| {c.name} | {number(c.microseconds)} | {peer} |")
    if f.startup:
        lines += [
            "",
            f"In a fresh process `import heron` takes {f.startup.import_heron:.3f} s, and the first result of a small",
            f"program is there after {f.startup.first_result:.2f} s, or {f.startup.first_kept:.2f} s when the",
            "[cache](../use/cache.md) has the program.",
        ]
    return lines


def _refusals(p: Program) -> list[str]:
    return [f"{side}: {m.refused}" for side, m in (("heron", p.row.heron), ("XLA:CPU", p.row.xla)) if m.refused]


def _named(by_name: dict[str, Program], name: str) -> list[Program]:
    return [by_name[name]] if name in by_name else []


def _mean(f: Figures, what: str, text: str, bar: float) -> Goal:
    ratios = f.ratios(what)
    mean = geomean(ratios)
    if not ratios:
        return Goal(f"{text}: {bar} x XLA:CPU", "", None)
    return Goal(f"{text}: {bar} x XLA:CPU", f"{mean:.3f} over {len(ratios)} programs", mean <= bar)


def _worst(f: Figures, what: str, text: str, bar: float, programs: Sequence[Program]) -> Goal:
    return _most(f"{text}, against XLA:CPU", bar, [(p.name, p.ratio(what)) for p in programs])


def _most(text: str, bar: float, found: Sequence[tuple[str, float]]) -> Goal:
    """A goal that each of some figures is to meet."""
    known = [(name, x) for name, x in found if not math.isnan(x)]
    if not known:
        return Goal(f"{text}: {bar} x", "", None)
    above = sorted((x, name) for name, x in known if x > bar)[::-1]
    worst = max(known, key=lambda x: x[1])
    text = f"{text}: {bar} x at most"
    if not above:
        return Goal(text, f"at most {number(worst[1])} ({worst[0]}) of {len(known)}", True)
    return Goal(text, f"{len(above)} of {len(known)} above: " + ", ".join(f"{n} {number(x)}" for x, n in above), False)


def _below(text: str, value: float, bar: float, unit: str) -> Goal:
    return Goal(f"{text}: under {bar:g} {unit}", f"{value:.3g} {unit}", value < bar)


def number(value: float) -> str:
    """Three digits; nothing for NaN."""
    if math.isnan(value):
        return ""
    return "inf" if math.isinf(value) else f"{value:.3g}" if value < 100 else f"{value:.0f}"
