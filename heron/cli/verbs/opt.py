"""``heron opt``: run passes on a program and print it."""

from __future__ import annotations

from typing import Any

import click

from heron.cli.common import examples, file_argument, json_option, settings_option, target_option

#: the meaning of these options without a value; click would take the next word as the value
_WITHOUT_VALUE = {"--print-changed": "text", "--bisect": "values"}


class _Command(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f"{a}={_WITHOUT_VALUE[a]}" if a in _WITHOUT_VALUE else a for a in args])


@click.command(
    cls=_Command,
    short_help="Run passes on a program and print it.",
    epilog=examples(
        "heron opt model.hlo -p dce,cse",
        "heron opt model.hlo --pipeline cpu --stats --print-changed=diff",
        "heron opt model.hlo -p algebraic-simplifier -O math=fast -O check=values",
        "heron opt model.hlo --load my_passes.py -p my-pass",
        "heron opt model.hlo --pipeline cpu --bisect",
        "heron opt model.hlo --pipeline gpu --check-with 'heron run {} --random 0 --target sim:sm_90'",
    ),
)
@file_argument
@click.option("-p", "--passes", metavar="PASS,PASS…", help="The passes, in order; options as in 'name(option=1)'.")
@click.option("--pipeline", metavar="NAME", help="A named pipeline; `heron passes` lists them.")
@target_option
@click.option("-o", "output", metavar="OUT", help="Write the result to OUT.")
@click.option("--load", "loads", multiple=True, metavar="PY", help="A Python file with passes or rules of your own.")
@click.option(
    "--print-changed",
    "show",
    type=click.Choice(["text", "diff"]),
    metavar="[=diff]",
    help="Print the program after each pass that changed it; =diff: only what changed.",
)
@click.option("--stats", is_flag=True, help="Print on standard error the effect of each pass and rule.")
@click.option(
    "--bisect",
    "bisect",
    type=click.Choice(["values", "verify"]),
    metavar="[=verify]",
    help="Find the pass and the rewrite that change the program's values (=verify: that break a rule).",
)
@click.option(
    "--check-with",
    "command_line",
    metavar="CMD",
    help="Bisect with CMD as the check; {} stands for a file with the program.",
)
@settings_option
@json_option
def command(**asked: Any) -> int:
    """Run passes on FILE (HLO text, - for standard input) and print the result.

    With --bisect, print only the pass and the rewrite that break the program; the exit code is then 1.
    """
    from heron.cli.tasks.opt import run

    return run(**asked)
