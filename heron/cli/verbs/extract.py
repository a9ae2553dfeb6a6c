"""``heron extract``: one instruction, fusion or kernel of a program as a program of its own."""

from __future__ import annotations

from typing import Any

import click

from heron.cli.common import examples, file_argument, json_option, settings_option, target_option


@click.command(
    short_help="Make one instruction or kernel a program of its own.",
    epilog=examples(
        "heron extract model.hlo %dot.1",
        "heron extract model.hlo --kernel loop_fusion_2 --target sm_90 --random 7",
        "heron extract model.hlo %fusion.3 --stage fused --inputs in.npz -o fusion",
    ),
)
@file_argument
@click.argument("name", metavar="%NAME", required=False)
@click.option("--kernel", metavar="K", help="The instruction that this kernel computes; `heron compile` lists kernels.")
@click.option("--stage", type=click.Choice(["hlo", "fused", "scheduled"]), help="Take %NAME from the program there.")
@target_option
@click.option("--inputs", metavar="F.npz", help="Read the program's inputs from a file.")
@click.option("--random", type=click.IntRange(min=0), metavar="SEED", help="Make up inputs; 0 where none are given.")
@click.option("-o", "output", metavar="DIR", help="The folder of the result; NAME.extracted by default.")
@settings_option
@json_option
def command(**asked: Any) -> int:
    """Write the instruction %NAME of FILE, with all it calls and the values it has, as a program that runs.

    The folder gets the program and its values: inputs, as the evaluator computes them on the way to the instruction,
    and the output. In a loop they are those of the first round.
    """
    from heron.cli.tasks.extract import run

    return run(**asked)
