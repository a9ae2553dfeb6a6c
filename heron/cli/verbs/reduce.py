"""``heron reduce``: the smallest program that still shows a fault."""

from __future__ import annotations

from typing import Any

import click

from heron.cli.common import examples, file_argument, json_option, settings_option, target_option


@click.command(
    short_help="Make a program small that shows a fault.",
    epilog=examples(
        "heron reduce model.hlo --differs",
        "heron reduce model.hlo --differs --target sim:sm_90 --against cpu",
        "heron reduce model.hlo --crashes --target cuda -o crash --jobs 4",
        "heron reduce model.hlo --slow-compile 20 --time 600",
        "heron reduce model.hlo --check 'heron run {} --inputs {inputs}' --says RUN044",
    ),
)
@file_argument
@click.option("--differs", is_flag=True, help="The fault: the target gives other values than --against.")
@click.option("--crashes", is_flag=True, help="The fault: the target's compile or run fails, with the same error.")
@click.option("--slow-compile", "slow", type=click.FloatRange(min=0), metavar="N", help="The fault: N s and more.")
@click.option("--check", "command_line", metavar="CMD", help="The fault: CMD fails on {}, with {inputs}.")
@click.option("--says", default="", metavar="REGEX", help="With --check: the output of CMD matches, too.")
@target_option
@click.option("--against", default="evaluator", show_default=True, metavar="M", help="evaluator, xla, sim or a target.")
@click.option("--inputs", metavar="F.npz", help="Read inputs from a file.")
@click.option("--random", type=click.IntRange(min=0), metavar="SEED", help="Make up inputs; 0 where none are given.")
@click.option("-o", "output", metavar="DIR", help="The folder of the result; FILE.reduced by default.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Programs tried at a time.")
@click.option("--time", "seconds", type=click.FloatRange(min=0), metavar="S", help="Stop after this many seconds.")
@click.option("--timeout", type=click.FloatRange(min=1), metavar="S", help="Seconds for one program.")
@click.option("--load", "loads", multiple=True, metavar="PY", help="A Python file with passes or rules of your own.")
@click.option("--once", is_flag=True, help="Only say whether the fault is there: exit code 1 if it is.")
@settings_option
@json_option
def command(**asked: Any) -> int:
    """Make FILE (HLO or StableHLO, - for standard input) as small as it goes while a fault is still there.

    The smallest program so far is in the folder at every moment, with inputs and a script. Ctrl-C loses nothing: the
    same command goes on. Programs run in processes of their own, which a fault may end.
    """
    from heron.cli.tasks.reduce import run

    return run(**asked)
