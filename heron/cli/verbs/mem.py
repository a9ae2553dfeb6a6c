"""``heron mem``: the memory of a program over time, its largest buffers, and ways to lower the peak."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from heron import files, targets
from heron.cli.common import (
    examples,
    file_argument,
    json_option,
    load_module,
    make_options,
    memory_limit_option,
    print_json,
    print_table,
    print_text,
    settings_option,
    target_option,
)
from heron.cli.progress import progress
from heron.errors import HeronError
from heron.trace import Trace
from heron.trace.summary import seconds, size, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heron.backends.memory import Trial
    from heron.buffers.profile import MemoryProfile
    from heron.hlo.ir.aliasing import Alias
    from heron.hlo.ir.module import Module
    from heron.targets import Target


@click.command(
    short_help="Show the memory of a program over time, and ways to save some.",
    epilog=examples(
        "heron mem model.hlo --target sm_90",
        "heron mem model.hlo --target sm_90 --top 30",
        "heron mem model.hlo -o model.svg",
    ),
)
@file_argument
@target_option
@click.option("--top", metavar="N", type=click.IntRange(1), default=10, show_default=True, help="Buffers to show.")
@click.option("-o", "output", metavar="OUT.svg", help="Draw every buffer over the schedule.")
@memory_limit_option
@settings_option
@json_option
def command(
    file: str,
    target: str,
    top: int,
    output: str | None,
    memory_limit: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compile FILE up to its buffers and show the totals, the memory over time, the largest buffers at the peak with
    their source lines, and the donations or memory limits that would lower it. The target machine is not needed."""
    from heron.analysis.graph.donation import possible_donations
    from heron.backends.compiler import Compilation
    from heron.backends.memory import trials
    from heron.buffers.memory import Memory
    from heron.buffers.profile import MemoryProfile

    if output is not None and not output.endswith(".svg"):
        raise HeronError("CLI034", f"'{output}' is not an SVG file", hint="-o OUT.svg")
    machine, options = targets.get(target), make_options(settings, memory_limit)
    module = load_module(file, target)
    trace = Trace(module.name, target)
    with progress(trace, f"compiling {module.name} for {target}"):
        compilation = Compilation(module, machine, options, trace)
        profile = MemoryProfile(compilation.buffers)
        tried = [] if options.memory_limit else list(trials(compilation.scheduled, compilation.machine))
        donations = possible_donations(module)
        donated = _with(module, donations)
        less = Memory.of(Compilation(donated, machine, options, trace).buffers) if donations else None
    saved = 0 if less is None else Memory.of(profile.assignment).peak - less.peak
    if output is not None:
        from heron.buffers.picture import svg

        files.write_text(output, svg(profile))
    savings = Savings(donations if saved > 0 else [], max(0, saved), tried)
    if as_json:
        print_json(_document(profile, machine, savings))
    else:
        _show(profile, machine, savings, top)


@dataclass
class Savings:
    """Ways to lower the peak: donating arguments (`donated` bytes for all of them together), or a memory limit."""

    donations: list[Alias]
    donated: int
    trials: list[Trial]


def _with(module: Module, donations: list[Alias]) -> Module:
    """The module with those arguments donated."""
    changed = module.clone()
    for d in donations:
        changed.input_output_aliases.set_up(d.output, d.parameter, d.index)
    return changed


def _show(profile: MemoryProfile, target: Target, savings: Savings, top: int) -> None:
    from heron.buffers.memory import Memory
    from heron.buffers.picture import bars
    from heron.hlo.ir.origin import origin

    memory = Memory.of(profile.assignment)
    name = profile.assignment.module.name
    print_text(f"{name} on {target.name}: {size(memory.peak)} at most, of {size(target.memory_bytes)}")
    totals = table("", "bytes>", ">")
    for kind, count in memory.items():
        totals.add_row(kind, f"{count:,}", size(count))
    print_table(totals)
    running = profile.running
    if running is None or not profile.peak:
        return
    print_text(f"\nintermediate values over the schedule, at most {size(profile.peak)} while '{running.name}' runs:")
    print_text("\n".join(bars(profile.used)))
    held = profile.at_peak()
    made = table("in use then", "bytes>", "ticks>", "shape", "from")
    for h in held[:top]:
        made.add_row(
            h.value.name, size(h.bytes), f"{h.first}-{h.last}", str(h.value.shape), origin(h.value.instruction)
        )
    print_text("")
    print_table(made)
    if len(held) > top:
        print_text(f"… and {len(held) - top} more, {size(sum(h.bytes for h in held[top:]))}")
    if profile.lost:
        print_text(f"{size(profile.lost)} of temp lie between buffers")
    tried = [t for t in savings.trials if t.temp < memory.temp]
    if savings.donations or tried:
        print_text("\nwhat would save memory:")
    if savings.donations:
        numbers = ", ".join(_ranges(sorted({d.parameter for d in savings.donations})))
        print_text(f"  {size(savings.donated)}: donate arguments {numbers}, which outputs of their shapes can take")
    for t in tried:
        percent = t.percent if t.met else -(-100 * t.temp // memory.temp)
        values, again = _count(t.values, "value"), _count(t.instructions, "instruction")
        more = f"{values} computed again by {again}, about {seconds(t.seconds)} more"
        least = "" if t.met else "; the least there is"
        print_text(f"  {size(memory.temp - t.temp)}: --memory-limit {percent}%, {more}{least}")


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _ranges(numbers: list[int]) -> Iterator[str]:
    """``0-3``, ``7`` of [0, 1, 2, 3, 7]."""
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        first, *rest = (n for _, n in run)
        yield f"{first}-{rest[-1]}" if rest else f"{first}"


def _document(profile: MemoryProfile, target: Target, savings: Savings) -> dict[str, Any]:
    """Stable fields: ``memory`` by kind, ``used`` by tick, ``peak`` and the buffers in use then, ``donations`` and
    ``recomputations``: the effect of memory limits."""
    from heron.buffers.memory import Memory
    from heron.hlo.ir.origin import operation, source_line

    running = profile.running
    return {
        "module": profile.assignment.module.name,
        "target": target.name,
        "memory": dict(Memory.of(profile.assignment)),
        "lost_bytes": profile.lost,
        "used": [int(b) for b in profile.used],
        "peak": {
            "bytes": profile.peak,
            "tick": profile.peak_tick,
            "running": running.name if running is not None else None,
            "buffers": [
                {
                    "value": h.value.name,
                    "bytes": h.bytes,
                    "first": h.first,
                    "last": h.last,
                    "shape": str(h.value.shape),
                    "op_name": operation(h.value.instruction),
                    "source": source_line(h.value.instruction),
                }
                for h in profile.at_peak()
            ],
        },
        "donations": {
            "bytes": savings.donated,
            "pairs": [
                {"output": list(d.output), "parameter": d.parameter, "index": list(d.index)} for d in savings.donations
            ],
        },
        "recomputations": [
            {
                "percent": t.percent,
                "met": t.met,
                "temp": t.temp,
                "values": t.values,
                "instructions": t.instructions,
                "seconds": t.seconds,
            }
            for t in savings.trials
        ],
    }
