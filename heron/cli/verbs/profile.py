"""``heron profile``: runs a program and shows the time of each step."""

from __future__ import annotations

from typing import Any

import click

from heron.cli.common import examples, file_argument, json_option, settings_option


@click.command(
    short_help="Run a program and show the time of each step.",
    epilog=examples(
        "heron profile model.hlo",
        "heron profile model.hlo --inputs in.npz --top 5",
        "heron profile model.hlo --in-order -O threads=1",
        "heron profile model.py:layer --json",
    ),
)
@file_argument
@click.option("--inputs", metavar="F.npz", help="Read inputs from a file.")
@click.option(
    "--random", type=click.IntRange(min=0), metavar="SEED", help="Use random inputs (the default, with seed 0)."
)
@click.option(
    "--runs", type=click.IntRange(1), default=5, show_default=True, help="Number of runs; the fastest counts."
)
@click.option("--top", metavar="N", type=click.IntRange(1), default=20, show_default=True, help="Rows to show.")
@click.option("--in-order", is_flag=True, help="Every step by itself, in execution order.")
@settings_option
@json_option
def command(**asked: Any) -> None:
    """Compile FILE for this machine's CPU, run it, and show the time of each kernel and library call.

    "GB/s" counts each byte that a step needs once. "roof" is the best time that the machine allows for the step's work
    and bytes, as a percentage of the measured time. "between steps" is the time of loops, branches and the clock.
    """
    from heron.cli.tasks.profile import run

    run(**asked)
