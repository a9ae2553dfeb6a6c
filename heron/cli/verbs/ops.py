"""``heron ops``: the HLO ops, from their declarations."""

from __future__ import annotations

from typing import Any

import click

from heron.cli.common import examples, json_option


@click.command(
    short_help="List the HLO ops.",
    epilog=examples("heron ops", "heron ops clamp", "heron ops --json", "heron ops --markdown > ops.md"),
)
@click.argument("name", required=False)
@click.option("--markdown", is_flag=True, help="Print all ops as the page docs/reference/ops.md.")
@json_option
def command(**asked: Any) -> None:
    """List the HLO ops that heron supports; with NAME, describe that op."""
    from heron.cli.tasks.ops import run

    run(**asked)
