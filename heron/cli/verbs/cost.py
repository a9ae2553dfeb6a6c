"""``heron cost``: the estimated cost of each kernel on a machine, without running it."""

from __future__ import annotations

from typing import Any

import click

from heron.cli.common import examples, file_argument, json_option, settings_option, spread_options, target_option


@click.command(
    short_help="Estimate the time of each kernel.",
    epilog=examples(
        "heron cost model.hlo --target sm_90",
        "heron cost model.hlo --target sm_90 --top 5",
        "heron cost model.hlo --as-given",
        "heron cost model.hlo --target sm_90 --mesh data=8,model=8 --in 0=data",
        "heron cost model.hlo --target sm_90 --mesh data=8,model=8 --auto --scale data",
    ),
)
@file_argument
@target_option
@spread_options
@click.option("--devices", metavar="N", type=click.IntRange(2), help="Take so many devices along an axis.")
@click.option(
    "--scale", metavar="AXIS", help="A table for 8 to 4,096 devices, more or fewer along an axis of the mesh."
)
@click.option("--top", metavar="N", type=click.IntRange(1), default=20, show_default=True, help="Rows to show.")
@click.option("--in-order", is_flag=True, help="Sort by execution order instead of by time.")
@click.option("--as-given", is_flag=True, help="Do not optimise: every instruction of FILE is one kernel.")
@settings_option
@json_option
def command(**asked: Any) -> None:
    """Compile FILE for a target up to its kernels, and estimate the time of each from its work and bytes.

    "limit" is what dominates the time: launch, compute or memory. "roof" is the best possible time for the kernel's
    work and bytes, as a percentage of the estimate. The estimate needs neither the machine nor a run.

    A program for several devices, or one that --mesh spreads over them, has the time of a whole run too: what
    computes, what communicates over which links, and what of that is exposed because nothing else can run meanwhile.
    """
    from heron.cli.tasks.cost import run

    run(**asked)
