"""The work of ``heron mem``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from heron import files, targets
from heron.analysis.graph.donation import possible_donations
from heron.backends.compiler import Compilation
from heron.backends.memory import Trial, trials
from heron.buffers.memory import Memory
from heron.buffers.picture import bars, svg
from heron.buffers.profile import MemoryProfile
from heron.cli.common import load_module, make_options, print_json, print_table, print_text
from heron.cli.progress import progress
from heron.errors import HeronError
from heron.hlo.ir.aliasing import Alias
from heron.hlo.ir.module import Module
from heron.records import dataclass
from heron.targets import Target
from heron.trace import Trace
from heron.trace.summary import seconds, size, table
from heron.trace.why import no_program


def run(
    file: str,
    target: str,
    top: int,
    output: str | None,
    memory_limit: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compile FILE up to its buffers and show the memory that a run needs."""
    if output is not None and not output.endswith(".svg"):
        raise HeronError("CLI034", f"'{output}' is not an SVG file", hint="-o OUT.svg")
    if file.endswith(".trace"):
        if output is not None or memory_limit is not None:
            raise HeronError("CLI045", "a trace tells no more than its own memory", hint="give the program instead")
        document = _saved(file)
        print_json(document) if as_json else _show(document, None, top)
        return
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
        files.write_text(output, svg(profile))
    savings = Savings(donations if saved > 0 else [], max(0, saved), tried)
    document = _document(profile, machine)
    if as_json:
        print_json({**document, **savings.to_json()})
    else:
        _show(document, machine, top)
        _show_savings(savings, document["memory"]["temp"])


@dataclass
class Savings:
    """Ways to lower the peak: donating arguments (`donated` bytes for all of them together), or a memory limit."""

    donations: list[Alias]
    donated: int
    trials: list[Trial]

    def to_json(self) -> dict[str, Any]:
        """Stable fields: ``donations``, and ``recomputations``: the effect of memory limits."""
        return {
            "donations": {
                "bytes": self.donated,
                "pairs": [
                    {"output": list(d.output), "parameter": d.parameter, "index": list(d.index)} for d in self.donations
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
                for t in self.trials
            ],
        }


def _with(module: Module, donations: list[Alias]) -> Module:
    """The module with those arguments donated."""
    changed = module.clone()
    for d in donations:
        changed.input_output_aliases.set_up(d.output, d.parameter, d.index)
    return changed


def _saved(file: str) -> dict[str, Any]:
    """The memory that a trace tells of. Raises CLI051 where it tells of none."""
    trace = Trace.load(file)
    if "profile" not in trace.buffers:
        raise no_program()
    return {"module": trace.module, "target": trace.target, "memory": trace.memory, **trace.buffers["profile"]}


def _show(document: dict[str, Any], target: Target | None, top: int) -> None:
    memory, peak = document["memory"], document["peak"]
    room = "" if target is None else f", of {size(target.memory_bytes)}"
    print_text(f"{document['module']} on {document['target']}: {size(memory['peak'])} at most{room}")
    totals = table("", "bytes>", ">")
    for kind, count in memory.items():
        totals.add_row(kind, f"{count:,}", size(count))
    print_table(totals)
    if peak["running"] is None or not peak["bytes"]:
        return
    print_text(
        f"\nintermediate values over the schedule, at most {size(peak['bytes'])} while '{peak['running']}' runs:"
    )
    print_text("\n".join(bars(document["used"])))
    held = peak["buffers"]
    made = table("in use then", "bytes>", "ticks>", "shape", "from")
    for h in held[:top]:
        origin = f"{h['source']} {h['op_name'].rpartition('/')[2]}".strip()
        made.add_row(h["value"], size(h["bytes"]), f"{h['first']}-{h['last']}", h["shape"], origin)
    print_text("")
    print_table(made)
    if len(held) > top:
        print_text(f"… and {len(held) - top} more, {size(sum(h['bytes'] for h in held[top:]))}")
    if document["lost_bytes"]:
        print_text(f"{size(document['lost_bytes'])} of temp lie between buffers")


def _show_savings(savings: Savings, temp: int) -> None:
    tried = [t for t in savings.trials if t.temp < temp]
    if savings.donations or tried:
        print_text("\nwhat would save memory:")
    if savings.donations:
        numbers = ", ".join(_ranges(sorted({d.parameter for d in savings.donations})))
        print_text(f"  {size(savings.donated)}: donate arguments {numbers}, which outputs of their shapes can take")
    for t in tried:
        percent = t.percent if t.met else -(-100 * t.temp // temp)
        values, again = _count(t.values, "value"), _count(t.instructions, "instruction")
        more = f"{values} computed again by {again}, about {seconds(t.seconds)} more"
        least = "" if t.met else "; the least there is"
        print_text(f"  {size(temp - t.temp)}: --memory-limit {percent}%, {more}{least}")


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _ranges(numbers: list[int]) -> Iterator[str]:
    """``0-3``, ``7`` of [0, 1, 2, 3, 7]."""
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        first, *rest = (n for _, n in run)
        yield f"{first}-{rest[-1]}" if rest else f"{first}"


def _document(profile: MemoryProfile, target: Target) -> dict[str, Any]:
    """Stable fields: ``memory`` by kind, and those of the profile; `Savings.to_json` adds its own."""
    memory = dict(Memory.of(profile.assignment))
    return {"module": profile.assignment.module.name, "target": target.name, "memory": memory, **profile.to_json()}
