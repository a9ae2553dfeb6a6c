"""``heron tune``: measure the ways to compute a program's products on a device, and keep the best in a lock file."""

from __future__ import annotations

from pathlib import Path

import click

from heron.cli.common import (
    examples,
    file_argument,
    json_option,
    load_module,
    make_options,
    print_json,
    print_text,
    settings_option,
    target_option,
)
from heron.errors import HeronError


@click.command(
    short_help="Measure what a model only estimates.",
    epilog=examples(
        "heron tune model.hlo --target cuda --lock heron.lock",
        "heron tune model.hlo --target sm_90 --list",
        "heron compile model.hlo --target cuda -O lock=heron.lock -O frozen=on",
    ),
)
@file_argument
@target_option
@click.option("--lock", metavar="FILE", default="heron.lock", show_default=True, help="Where choices are kept.")
@click.option("--budget", metavar="SECONDS", type=click.FloatRange(0), default=600.0, show_default=True)
@click.option("--most", metavar="N", type=click.IntRange(1), default=12, show_default=True, help="Candidates of each.")
@click.option("--list", "only_list", is_flag=True, help="Show what would be measured; needs no device.")
@settings_option
@json_option
def command(
    file: str,
    target: str,
    lock: str,
    budget: float,
    most: int,
    only_list: bool,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure the tiles that a model finds promising for every block kernel of FILE, each checked against the
    evaluator, and write the quickest into the lock file, beside what it has already."""
    from heron import targets
    from heron.autotune.device import OnDevice
    from heron.autotune.fragments import fragments
    from heron.autotune.tune import tune
    from heron.lockfile import Choice, Lock, read

    machine, options = targets.get(target), make_options(settings)
    if machine.kind != "gpu":
        raise HeronError("TUNE011", f"there is nothing to measure on {target}", hint="--target cuda, or --list")
    found = fragments(load_module(file, target), machine, options, most)
    if only_list:
        shown = {f.fusion.name: [str(c) for c in f.candidates] for f in found}
        if as_json:
            return print_json(shown)
        return print_text("\n".join(f"{name}: {', '.join(c)}" for name, c in shown.items()) or "nothing to measure")
    if machine.sim:
        raise HeronError("TUNE011", "times on a simulated GPU say nothing", hint="--target cuda, or --list")
    kept = read(lock) if Path(lock).exists() else Lock()

    def tell(line: str) -> None:
        click.echo(line, err=True)

    def keep(choice: Choice) -> None:
        kept.add(choice)
        kept.write(lock)

    result = tune(found, machine.machine, OnDevice(machine, options), budget=budget, progress=tell, keep=keep)
    if found and not result.choices and result.refused:
        name, config, why = result.refused[0]
        raise HeronError("TUNE012", f"no candidate of '{name}' could be measured", why=f"{config}: {why}")
    kept.write(lock)
    if as_json:
        facts = {"refused": result.refused, "skipped": result.skipped, "stopped": result.stopped}
        return print_json({"choices": len(result.choices), **facts})
    lines = [f"{c.what}: {c.choice}, {c.microseconds:.2f} us" for c in result.choices]
    lines += [f"{name}: {config} refused: {why}" for name, config, why in result.refused]
    lines += [f"{name}: {result.stopped or 'no time was left'}" for name in result.skipped]
    lines += [f"stopped: {result.stopped}; run it again with what is missing"] if result.stopped else []
    print_text("\n".join([*lines, f"{len(result.choices)} choices in {lock}"]))
