"""``heron mem``: the memory of a program over time, its largest buffers, and ways to lower the peak."""

from __future__ import annotations

from typing import Any

import click

from heron.cli.common import examples, file_argument, json_option, memory_limit_option, settings_option, target_option


@click.command(
    short_help="Show the memory of a program over time, and ways to save some.",
    epilog=examples(
        "heron mem model.hlo --target sm_90",
        "heron mem model.hlo --target sm_90 --top 30",
        "heron mem model.hlo -o model.svg",
        "heron mem model.trace",
    ),
)
@file_argument
@target_option
@click.option("--top", metavar="N", type=click.IntRange(1), default=10, show_default=True, help="Buffers to show.")
@click.option("-o", "output", metavar="OUT.svg", help="Draw every buffer over the schedule.")
@memory_limit_option
@settings_option
@json_option
def command(**asked: Any) -> None:
    """Compile FILE up to its buffers and show the totals, the memory over time, the largest buffers at the peak with
    their source lines, and the donations or memory limits that would lower it. The target machine is not needed.

    A trace from `heron compile -o x.trace` tells the same at once, without what would lower the peak."""
    from heron.cli.tasks.mem import run

    run(**asked)
