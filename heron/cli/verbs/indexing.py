"""``heron indexing``: the elements that instructions read, as indexing maps."""

from __future__ import annotations

from typing import Any

import click

from heron.cli.common import examples, file_argument, json_option


@click.command(
    short_help="Show the elements that instructions read.",
    epilog=examples(
        "heron indexing model.hlo",
        "heron indexing model.hlo --instruction dot.7",
        "heron indexing model.hlo --instruction dot.7 --to-output",
        "heron indexing model.hlo --instruction fusion.2 --through",
    ),
)
@file_argument
@click.option("-i", "--instruction", "name", metavar="NAME", help="Only this instruction.")
@click.option("--to-output", is_flag=True, help="Map an operand's element to the results that depend on it.")
@click.option(
    "--through", is_flag=True, help="Map the instruction's result to the parameters and constants it is computed from."
)
@json_option
def command(**asked: Any) -> None:
    """Print, for each instruction of FILE, the maps from an index of its result to the operand elements that it reads.

    Dimensions d0, d1, … are the index of the result, symbols s0, … run over their ranges, and rt0, … are read at run
    time. UNDEFINED means that any element may be read.
    """
    from heron.cli.tasks.indexing import run

    run(**asked)
