"""The work of ``heron profile``."""

from __future__ import annotations

from typing import Any

import numpy as np

from heron import targets
from heron.backends.compiler import Compilation
from heron.backends.cpu.profile import Row, rows
from heron.cli.common import load_module, make_options, print_json, print_table, print_text
from heron.cli.job import Job
from heron.cli.progress import progress, running
from heron.collector import collector_paused
from heron.hlo.ir.origin import operation, origin, source_line
from heron.runtime.cpu.executable import CpuExecutable
from heron.runtime.cpu.profile import StepTime
from heron.trace import Trace
from heron.trace.summary import seconds, table


def run(
    file: str,
    inputs: str | None,
    random: int | None,
    runs: int,
    top: int,
    in_order: bool,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compile FILE for this machine's CPU, run it, and show the time of each kernel and library call."""
    machine, options = targets.get("cpu"), make_options(settings).replace(profile=True)
    module = load_module(file, "cpu")
    if inputs is None and random is None:
        random = 0
    arrays = Job(inputs, random, None, None, None, None).arrays(module)
    trace = Trace(module.name, "cpu")
    with progress(trace, f"compiling {module.name} for cpu"), collector_paused():
        compilation = Compilation(module, machine, options, trace)
        executable: Any = compilation.executable()
    with running(executable):
        total, steps = fastest(executable, arrays, runs)
    found = rows(steps, compilation.scheduled, machine, together=not in_order)
    if not in_order:
        found.sort(key=lambda r: -r.seconds)
    if as_json:
        print_json({"target": machine.name, "seconds": total, "steps": [_json(r) for r in found]})
    else:
        _show(found, total, top, module.name)


def fastest(executable: CpuExecutable, arrays: list[np.ndarray], runs: int) -> tuple[float, list[StepTime]]:
    """Seconds and steps of the fastest run, after one warm-up run."""
    profile = executable.profile
    assert profile is not None
    executable.run(arrays)
    best: tuple[float, list[StepTime]] | None = None
    for _ in range(runs):
        profile.reset()
        executable.run(arrays)
        if best is None or profile.seconds < best[0]:
            best = profile.seconds, profile.steps()
    assert best is not None
    return best


def _show(found: list[Row], total: float, top: int, name: str) -> None:

    spent = sum(r.seconds for r in found)
    ideal = sum(r.ideal for r in found)
    print_text(f"{name} on cpu: {seconds(total)}, {sum(r.runs for r in found)} steps; roofline {seconds(ideal)}")
    made = table("step", "kind", "runs>", "time>", "share>", "GB/s>", "Gflop/s>", "roof>", "from")
    for r in found[:top]:
        made.add_row(
            r.name,
            r.kind,
            str(r.runs),
            seconds(r.seconds),
            _share(r.seconds, total),
            _rate(r.bytes, r.seconds),
            _rate(r.flops, r.seconds),
            f"{100 * r.roofline_fraction:.0f} %",
            _origin(r),
        )
    if len(found) > top:
        rest = sum(r.seconds for r in found[top:])
        made.add_row(f"{len(found) - top} more", "", "", seconds(rest), _share(rest, total), "", "", "", "")
    between = max(0.0, total - spent)
    made.add_row("between steps", "", "", seconds(between), _share(between, total), "", "", "", "")
    print_table(made)


def _origin(r: Row) -> str:
    """The user's line and operation of the first instruction, or its name if the row shows another one."""
    if not r.instructions:
        return ""
    first = r.instructions[0]
    return origin(first) or (first.name if first.name != r.name else "")


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


def _rate(amount: float, spent: float) -> str:
    return f"{amount / spent / 1e9:.3g}" if amount and spent else ""


def _json(r: Row) -> dict[str, Any]:
    """Stable fields: seconds, bytes and flops of all runs together."""
    return {
        "name": r.name,
        "kind": r.kind,
        "runs": r.runs,
        "seconds": r.seconds,
        "bytes": r.bytes,
        "flops": r.flops,
        "roofline_fraction": r.roofline_fraction,
        "instructions": [
            {"name": i.name, "op_name": operation(i), "source": source_line(i)} for i in dict.fromkeys(r.instructions)
        ],
    }
