"""``heron passes``: the passes and pipelines."""

from __future__ import annotations

from typing import Any

import click

from heron.cli.common import examples, json_option


@click.command(
    short_help="List passes and pipelines.",
    epilog=examples("heron passes", "heron passes cse", "heron passes gpu", "heron passes --pipeline gpu-optimise"),
)
@click.argument("name", required=False)
@click.option("--pipeline", metavar="NAME", help="Print the passes of a pipeline, in order.")
@click.option("--load", "loads", multiple=True, metavar="PY", help="A Python file with passes or rules of your own.")
@click.option("--markdown", "as_page", is_flag=True, help="Print all passes as the page docs/reference/passes.md.")
@json_option
def command(**asked: Any) -> None:
    """List passes and named pipelines; with NAME, describe that one."""
    from heron.cli.tasks.passes import run

    run(**asked)
