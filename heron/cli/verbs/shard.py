"""``heron shard``: how the values of a program are spread over devices, why, and what it costs."""

from __future__ import annotations

from typing import Any

import click

from heron.cli.common import examples, file_argument, json_option, spread_options, target_option


@click.command(
    short_help="Show how values are spread over devices, why, and the collectives.",
    epilog=examples(
        "heron shard model.hlo --mesh x=2,y=4 --in 0=x,y",
        "heron shard model.hlo --mesh x=2,y=4 --in 0=x,y --tiles 0",
        "heron shard model.hlo --mesh x=2 --in 0=x --draw model.svg",
        "heron shard model.hlo --mesh data=2,model=4 --auto --memory 16GiB",
    ),
)
@file_argument
@spread_options
@click.option("--top", metavar="N", type=click.IntRange(1), default=20, show_default=True, help="Values to show.")
@click.option("--all", "everything", is_flag=True, help="Show all values.")
@click.option("--why", metavar="NAME", help="Show how each axis of a value came to it, back to what was given.")
@click.option("--try", "trial", is_flag=True, help="With --why: try each change of one axis of the value.")
@click.option("--tiles", metavar="NAME", help="Show the tiles of a value and the devices that have them.")
@click.option("--draw", metavar="OUT", help="Draw the program, or the tiles: OUT.svg, or a page OUT.html.")
@target_option
@json_option
def command(**asked: Any) -> None:
    """Find a sharding for every value of FILE, which is sharded or is given shardings by --mesh, --in and --out.

    For each value: the part that one device has, and which neighbour gave each axis at which priority; `heron why FILE
    --sharding NAME` shows the whole chain. Below are the collectives of the program that each device runs, with their
    source lines, bytes and estimated time on the target.
    """
    from heron.cli.tasks.shard import run

    run(**asked)
