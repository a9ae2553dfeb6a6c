"""``heron tune``: measures implementations of a program's parts on a device, and keeps the best in a lock file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heron import targets
from heron.cli.common import (
    examples,
    file_argument,
    json_option,
    load_module,
    make_options,
    print_json,
    print_table,
    print_text,
    settings_option,
    target_option,
)
from heron.cli.main import INTERRUPTED, OK
from heron.errors import HeronError
from heron.trace.summary import table

if TYPE_CHECKING:
    from heron.autotune.tune import Decision, Result
    from heron.hlo.ir.module import Module
    from heron.lockfile import Choice, Lock
    from heron.options import Options
    from heron.targets import Target


@click.command(
    short_help="Measure kernels and algorithms on a device, keep the fastest.",
    epilog=examples(
        "heron tune model.hlo --target cuda --lock heron.lock",
        "heron tune model.hlo --target sm_90 --list",
        "heron compile model.hlo --target cuda -O lock=heron.lock -O frozen=on",
    ),
)
@file_argument
@target_option
@click.option("--lock", metavar="FILE", default="heron.lock", show_default=True, help="The file of choices.")
@click.option("--budget", metavar="SECONDS", type=click.FloatRange(0), default=600.0, show_default=True)
@click.option(
    "--most",
    metavar="N",
    type=click.IntRange(1),
    default=12,
    show_default=True,
    help="Number of candidates for each choice.",
)
@click.option("--again", is_flag=True, help="Also measure choices that the lock file already has.")
@click.option("--list", "only_list", is_flag=True, help="List the candidates without measuring; needs no device.")
@settings_option
@json_option
def command(
    file: str,
    target: str,
    lock: str,
    budget: float,
    most: int,
    again: bool,
    only_list: bool,
    settings: tuple[str, ...],
    as_json: bool,
) -> int:
    """Measure the candidates for each product of FILE (block kernels of several tiles, cuBLASLt, heron's own kernels),
    for the algorithms of library calls, and for the tiles of other block kernels. Each candidate is first checked
    against the evaluator. The fastest are added to the lock file."""
    from heron.lockfile import Lock, read

    machine, options = targets.get(target), make_options(settings)
    if not machine.is_gpu:
        raise HeronError("TUNE011", f"there is nothing to measure on {target}", hint="--target cuda, or --list")
    module = load_module(file, target)
    if only_list:
        _show(_listed(module, machine, options.replace(lock=""), most), as_json)
        return OK
    if machine.sim:
        raise HeronError("TUNE011", "times on a simulated GPU say nothing", hint="--target cuda, or --list")
    kept = read(lock) if Path(lock).exists() else Lock()
    kept.write(lock)  # what cannot be written later is known before anything is measured
    result = _rounds(module, machine, options, kept, Path(lock), budget, most, again)
    if not result.choices and result.refused and not result.is_interrupted:
        name, way, why = result.refused[0]
        raise HeronError("TUNE012", f"no candidate of '{name}' could be measured", why=f"{way}: {why}")
    _show(result, as_json)
    if not as_json:
        lines = [f"{name}: {result.stopped or 'no time was left'}" for name in result.skipped]
        lines += [f"stopped: {result.stopped}; run it again for what is missing"] if result.stopped else []
        print_text("\n".join([*lines, f"{len(result.choices)} choices in {lock}"]))
    return INTERRUPTED if result.is_interrupted else OK


def _rounds(
    module: Module, machine: Target, options: Options, kept: Lock, lock: Path, budget: float, most: int, again: bool
) -> Result:
    """Measure until a compile with the lock file asks for no new choice: the choice for a product decides which library
    calls exist."""
    from heron.autotune.device import OnDevice
    from heron.autotune.fragments import fragments
    from heron.autotune.tune import Result, tune

    measure, end = OnDevice(machine, options), time.monotonic() + budget
    result, seen = Result(), set[str]()

    def keep(choice: Choice) -> None:
        kept.add(choice)
        try:
            kept.write(lock)
        except HeronError:
            click.echo(f"not kept: {choice.what}: {choice.choice}, {choice.microseconds:.2f} us", err=True)
            raise

    while not result.stopped:
        asked = fragments(module, machine, options.replace(lock="" if again and not seen else str(lock)), most)
        known = {key for device, key in kept.choices if device == machine.machine} if not again else set[str]()
        new = [f for f in asked if f.key not in seen | known]
        if not new:
            break
        seen |= {f.key for f in new}
        left = max(0.0, end - time.monotonic())
        result.add(
            tune(
                new,
                machine.machine,
                measure,
                budget=left,
                ways=lambda f: measure.ways(f, most),
                progress=lambda line: click.echo(line, err=True),
                keep=keep,
            )
        )
    return result


def _listed(module: Module, machine: Target, options: Options, most: int) -> Result:
    """The candidates, without measurements."""
    from heron.autotune.fragments import fragments
    from heron.autotune.tune import Candidate, Decision, Result
    from heron.passes.framework.measured import who

    return Result(
        [
            Decision(f, [Candidate(way, who(way), f.model.get(way)) for way in f.ways])
            for f in fragments(module, machine, options, most)
        ]
    )


def _show(result: Result, as_json: bool) -> None:
    """One table for each decision: every candidate with its estimated and measured time."""
    if as_json:
        document = {
            "choices": len(result.choices),
            "fragments": [_row(d) for d in result.decisions],
            "refused": result.refused,
            "skipped": result.skipped,
            "stopped": result.stopped,
        }
        return print_json(document)

    if not result.decisions:
        print_text("nothing to measure")
    for d in result.decisions:
        chosen = d.choice.choice if d.choice is not None else ""
        shown = table("way", "by", "model us>", "measured us>", "", title=f"{d.fragment.name} ({d.fragment.key})")
        for c in d.candidates:
            note = "chosen" if c.way == chosen else c.refused and f"refused: {c.refused}"
            shown.add_row(c.way, c.who, _us(c.model), _us(c.seconds), note)
        if d.fragment.kind == "algorithm" and d.choice is None:
            library = d.candidates[0].who if d.candidates else ""
            shown.add_row("…", library, "", "", "others by the library, on the device")
        print_table(shown)


def _row(d: Decision) -> dict[str, Any]:
    rows = [
        {"way": c.way, "by": c.who, "model_us": _number(c.model), "us": _number(c.seconds), "refused": c.refused}
        for c in d.candidates
    ]
    chosen = d.choice.choice if d.choice is not None else ""
    return {"name": d.fragment.name, "key": d.fragment.key, "kind": d.fragment.kind, "choice": chosen, "ways": rows}


def _number(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e6, 3)


def _us(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.2f}"
