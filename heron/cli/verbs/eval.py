"""``heron eval``: the same as `run` by the evaluator, the definition of what programs mean."""

from __future__ import annotations

import time

import click

from heron.cli.common import examples, file_argument, json_option, load_module
from heron.cli.job import Job, job_options


@click.command(
    short_help="Evaluate a program by NumPy: the definition of what it means.",
    epilog=examples(
        "heron eval model.hlo --random 0",
        "heron eval model.hlo --inputs in.npz --expect golden.npz",
    ),
)
@file_argument
@job_options
@json_option
def command(file: str, job: Job, as_json: bool) -> int:
    """Evaluate FILE (HLO text, - for standard input) by NumPy, slowly and by definition; nothing is compiled."""
    from heron.cli import room
    from heron.cli.report import flat
    from heron.hlo.evaluator import evaluate

    module = load_module(file)
    room.require_for_values(module)
    arrays = job.arrays(module)
    start = time.perf_counter()
    outputs = flat(evaluate(module, *arrays))
    spent = time.perf_counter() - start
    if not as_json:
        from heron.trace.summary import seconds

        click.echo(f"{module.name} evaluated in {seconds(spent)}")
    return job.finish(arrays, outputs, {"module": module.name, "target": "evaluator", "run_seconds": spent}, as_json)
