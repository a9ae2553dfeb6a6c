"""``heron report``: one page about a program, for a bug report or a review of its performance."""

from __future__ import annotations

from typing import Any

import click

from heron.cli.common import examples, file_argument, json_option, memory_limit_option, settings_option, target_option


@click.command(
    short_help="Write a page about a program: kernels, memory, decisions, XLA.",
    epilog=examples(
        "heron report model.hlo -o model.html",
        "heron report model.hlo --target sm_90 -o model.md",
        "heron report model.hlo --inputs in.npz --no-xla",
    ),
)
@file_argument
@target_option
@click.option("-o", "output", metavar="OUT", help="Write OUT.html or OUT.md; without it Markdown is printed.")
@click.option("--inputs", metavar="F.npz", help="Run on the inputs in a file; random ones by default.")
@click.option("--no-run", is_flag=True, help="Do not run the program: times are estimates.")
@click.option("--no-xla", is_flag=True, help="Do not compare with XLA:CPU, which is done where jaxlib is installed.")
@memory_limit_option
@settings_option
@json_option
def command(**asked: Any) -> None:
    """Compile FILE and write one page: versions, target, summary, the kernels that take longest with their limits,
    memory at the peak, time by stage, decisions refused by cost, and a comparison with XLA:CPU.

    For this machine's CPU the program is run and timed. For other targets times are estimates.
    """
    from heron.cli.tasks.report import run

    run(**asked)
