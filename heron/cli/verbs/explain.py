"""``heron explain``: cause, example and cure of an error code."""

from __future__ import annotations

import click

from heron.cli.common import examples, json_option, print_json, print_table, print_text
from heron.trace.summary import table


@click.command(
    short_help="Say what an error code means, and the cure.",
    epilog=examples("heron explain HLO010", "heron explain RUN", "heron explain GEN001 --json"),
)
@click.argument("code", metavar="CODE", required=False, default="")
@json_option
def command(code: str, as_json: bool) -> int:
    """Print the cause, an example and the cure of the error CODE.

    The letters alone, such as RUN, list the codes of an area; without CODE all are listed.
    """
    from heron.cli.explaining import explanations, find

    listed = [e for e in explanations().values() if e.code.rstrip("0123456789") == code.upper() or not code]
    if listed:
        rows = table("code", "cause")
        for e in listed:
            rows.add_row(e.code, e.cause)
        print_json([e.to_json() for e in listed]) if as_json else print_table(rows)
        return 0
    found = find(code)
    if as_json:
        print_json(found.to_json())
        return 0
    parts = [f"{found.code}: {found.area}", "", f"cause  {found.cause}", f"cure   {found.cure}"]
    if found.example:
        parts += ["", "for example", "", *(f"    {line}".rstrip() for line in found.example.splitlines())]
    print_text("\n".join(parts))
    return 0
