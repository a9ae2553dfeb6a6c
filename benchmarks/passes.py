"""``python -m benchmarks.passes [NAME…]``: what the HLO passes take on whole programs, pass by pass, and the buffers.

Each program goes through all pipelines of a target and gets its buffers; times are the processor's, on one core, the
fastest of several rounds. Then the same block is chained 8 to 64 times to see whether time grows with the number of
instructions only.
"""

from __future__ import annotations

import cProfile
import datetime
import gc
import json
import platform
import pstats
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePath

import click

import heron
from benchmarks import programs, sections
from heron import files, targets
from heron.backends.compiler import machine_for
from heron.buffers import assign
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from heron.trace import Trace

#: seconds for all passes of a program
GOALS = {"gpt2_train_step": 1.5, "gpt2_12l_train_step": 4.0}
#: microseconds a pass may take for each instruction it looks at
PER_INSTRUCTION = 2.0
BLOCK = "transformer_block"
LAYERS = (8, 16, 32, 64)
TARGETS = {"cpu": "cpu", "gpu": "sm_90"}


@dataclass(slots=True)
class Cost:
    """What all runs of one pass took: ``looked`` is the sum of the instruction counts the runs began with."""

    runs: int = 0
    changed: int = 0
    seconds: float = 0.0
    looked: int = 0

    @property
    def per_instruction(self) -> float:
        """Microseconds for each instruction and run."""
        return 1e6 * self.seconds / self.looked if self.looked else 0.0


@dataclass(slots=True)
class Row:
    """One program on one target: seconds of each pipeline by its name, of the `buffers`, and of each pass."""

    program: str
    target: str
    before: int
    after: int = 0
    pipelines: dict[str, float] = field(default_factory=dict)
    passes: dict[str, Cost] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """All pipelines and the buffers."""
        return sum(self.pipelines.values())


def chained(name: str, times: int) -> Module:
    """A program of one array that gives such an array, called again and again on what it gave; weights are shared."""
    module = heron.parse(programs.path(name).read_text())
    block = module.entry
    chain = Computation("chain")
    parameters = [chain.add_parameter(p.attrs["number"], p.shape, p.name) for p in block.parameters]
    carried = next(n for n, p in enumerate(parameters) if p.shape.bare is block.root.shape.bare)
    value = parameters[carried]
    for _ in range(times):
        arguments = [*parameters[:carried], value, *parameters[carried + 1 :]]
        value = chain.add("call", arguments, value.shape, to_apply=block)
    chain.root = value
    module.add_computation(chain, entry=True)
    inline = registry.get("call-inliner")
    inline.run(module, PassContext())
    module.remove_unused_computations()
    return module


def measure(program: str, module: Module, target: str, rounds: int) -> Row:
    """All pipelines of a target on copies of a module; of several rounds the fastest, each pass by itself."""
    row = Row(program, target, module.instruction_count())
    for _ in range(rounds):
        copy = module.clone()
        trace = Trace()
        for name, seconds in _run(copy, target, trace):
            row.pipelines[name] = min(row.pipelines.get(name, float("inf")), seconds)
        row.after = copy.instruction_count()
        for name, cost in _costs(trace).items():
            if name not in row.passes or cost.seconds < row.passes[name].seconds:
                row.passes[name] = cost
    return row


def _run(module: Module, target: str, trace: Trace) -> Iterator[tuple[str, float]]:
    ctx = PassContext(Options(), targets.get(TARGETS[target]), trace)
    ctx.clock = time.process_time
    gc.collect()
    gc.disable()  # as a compile does
    try:
        for stage in registry.pipeline(target).steps:
            start = time.process_time()
            ctx.run_pass(stage, module)
            yield stage.name, time.process_time() - start
        machine = machine_for(targets.get(TARGETS[target]), Options())
        start = time.process_time()
        assign(module, alignment=machine.alignment)
        yield "buffers", time.process_time() - start
    finally:
        gc.enable()


def _costs(trace: Trace) -> dict[str, Cost]:
    found: dict[str, Cost] = {}
    for p in trace.passes:
        cost = found.setdefault(p.name, Cost())
        cost.runs += 1
        cost.changed += p.changed
        cost.seconds += p.seconds
        cost.looked += p.before
    return found


def profile(module: Module, target: str, lines: int = 12) -> str:
    """The functions that take most time of their own, as text."""
    profiler = cProfile.Profile()
    with profiler:
        for _ in _run(module.clone(), target, Trace()):
            pass
    stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    whole = sum(own for _, _, own, _, _ in stats.values())
    text = [f"{'share':>6} {'calls':>9}  function"]
    for (file, line, function), (_, calls, own, _, _) in sorted(stats.items(), key=lambda s: -s[1][2])[:lines]:
        where = f"{'/'.join(PurePath(file).parts[-2:])}:{line} " if line else ""
        text.append(f"{own / whole:6.1%} {calls:9,}  {where}{function}")
    return "\n".join(text)


def programs_table(rows: Sequence[Row]) -> str:
    """One line a program and target."""
    stages = list(dict.fromkeys(name for r in rows for name in r.pipelines))
    lines = [
        f"{'program':24} {'target':6} {'before':>7} {'after':>7} "
        + " ".join(f"{s + ' s':>12}" for s in stages)
        + f" {'all s':>7} {'us/instr.':>10}"
    ]
    for r in rows:
        goal = GOALS.get(r.program)
        times = " ".join(f"{r.pipelines.get(s, 0):12.3f}" for s in stages)
        missed = f"  over the goal of {goal} s" if goal is not None and r.seconds > goal else ""
        lines.append(
            f"{r.program:24} {r.target:6} {r.before:7,} {r.after:7,} {times} {r.seconds:7.3f} "
            f"{1e6 * r.seconds / r.before:10.0f}{missed}"
        )
    return "\n".join(lines)


def passes_table(row: Row, least_ms: float = 1.0) -> str:
    """The passes of one program, the dearest first; those under `least_ms` in one line."""
    lines = [f"{'pass':32} {'runs':>5} {'changed':>8} {'ms':>8} {'us/instr.':>10}"]
    costs = sorted(row.passes.items(), key=lambda item: -item[1].seconds)
    for name, c in costs:
        if 1e3 * c.seconds >= least_ms:
            lines.append(f"{name:32} {c.runs:5} {c.changed:8} {1e3 * c.seconds:8.1f} {c.per_instruction:10.2f}")
    rest = [c for _, c in costs if 1e3 * c.seconds < least_ms]
    if rest:
        lines.append(f"{f'{len(rest)} more':32} {'':5} {'':8} {1e3 * sum(c.seconds for c in rest):8.1f}")
    return "\n".join(lines)


def section(rows: Sequence[Row], series: Sequence[Row], profiles: dict[str, str], rounds: int) -> str:
    """What docs/reference/benchmarks.md says."""
    tables = "\n\n".join(f"{r.program}, {r.target}:\n\n```\n{passes_table(r)}\n```" for r in rows[-2:])
    hot = "\n\n".join(f"{what}:\n\n```\n{text}\n```" for what, text in profiles.items())
    goals = ", ".join(f"{seconds} s for {name}" for name, seconds in GOALS.items())
    return f"""All HLO passes and buffer assignment, {datetime.date.today()}, by `python -m benchmarks.passes --write`:
processor seconds on one core of {_machine()}, the fastest of {rounds} rounds; other work on
the machine makes them longer. The goal is {goals},
and {PER_INSTRUCTION:g} us for each instruction and pass.

```
{programs_table(rows)}
```

The same layer again and again ({BLOCK}, weights shared): time per instruction should not grow.

```
{programs_table(series)}
```

Each pass, all its runs together. "us/instr." is for one run and one instruction:

{tables}

Where the time goes, by function:

{hot}
"""


def _machine() -> str:
    for line in open("/proc/cpuinfo") if platform.system() == "Linux" else ():
        if line.startswith("model name"):
            return f"{line.partition(':')[2].strip()}, Python {platform.python_version()}"
    return f"{platform.machine()}, Python {platform.python_version()}"


@click.command()
@click.argument("names", nargs=-1)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Runs of each program.")
@click.option("--series/--no-series", default=True, help="Also the chain of 8 to 64 layers.")
@click.option("--profile", "profiled", is_flag=True, help="Also which functions take the time.")
@click.option("--write", is_flag=True, help="Write the tables to docs/reference/benchmarks.md.")
@click.option("--json", "output", metavar="OUT", help="Write all figures to a file.")
def main(names: tuple[str, ...], rounds: int, series: bool, profiled: bool, write: bool, output: str | None) -> None:
    """Measure the passes on NAMES (default: the two training steps)."""
    rows, profiles = [], {}
    for name in names or tuple(GOALS):
        for target in TARGETS:
            module = heron.parse(programs.path(name, platform="cuda" if target == "gpu" else "cpu").read_text())
            rows.append(measure(name, module, target, rounds))
            if profiled or write:
                profiles[f"{name}, {target}"] = profile(module, target)
    click.echo("\n\n".join([programs_table(rows), *(f"{r.program}, {r.target}\n{passes_table(r)}" for r in rows)]))
    chain = [measure(f"{n} layers", chained(BLOCK, n), t, rounds) for t in TARGETS for n in LAYERS if series or write]
    if chain:
        click.echo("\n" + programs_table(chain))
    for what, text in profiles.items():
        click.echo(f"\n{what}\n{text}")
    if write:
        sections.put("Passes", section(rows, chain, dict(list(profiles.items())[-2:]), rounds))
    if output:
        files.write_text(output, json.dumps([asdict(r) for r in (*rows, *chain)], indent=1) + "\n")


if __name__ == "__main__":
    main()
