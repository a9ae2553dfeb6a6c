"""``heron graph``: a picture of a program, or the neighbourhood of an instruction as text."""

from __future__ import annotations

from typing import Any

import click

from heron.cli.common import examples, file_argument, settings_option, target_option

_STAGES = ("given", "hlo", "fused", "scheduled")


@click.command(
    short_help="Draw a program.",
    epilog=examples(
        "heron graph model.hlo -o model.svg",
        "heron graph model.hlo --at fused --target sm_90 -o fused.html",
        "heron graph model.hlo --around dot.7 --steps 3",
    ),
)
@file_argument
@click.option("--around", metavar="NAME", help="Draw only the neighbourhood of this instruction; without -o, as text.")
@click.option(
    "--steps",
    metavar="N",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Size of the neighbourhood, in edges.",
)
@click.option(
    "--at", "stage", type=click.Choice(_STAGES), default="given", show_default=True, help="Draw FILE at this stage."
)
@click.option("--closed", is_flag=True, help="Do not open fusions, loops and branches.")
@click.option("-o", "output", metavar="OUT", help="Write a picture, OUT.svg, or a page with zoom and search, OUT.html.")
@target_option
@settings_option
def command(**asked: Any) -> None:
    """Draw FILE: operands above their users, fusions and loop bodies as nested boxes."""
    from heron.cli.tasks.graph import run

    run(**asked)
