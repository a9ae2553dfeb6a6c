"""``heron report``: one page about a program, for a bug report or a review of its performance."""

from __future__ import annotations

import sys

import click

from heron import files, targets
from heron.cli.common import (
    examples,
    file_argument,
    json_option,
    load_module,
    make_options,
    memory_limit_option,
    print_json,
    print_text,
    settings_option,
    target_option,
)
from heron.cli.job import Job
from heron.cli.progress import at_step, interruptible, progress
from heron.errors import HeronError
from heron.trace import Trace


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
def command(
    file: str,
    target: str,
    output: str | None,
    inputs: str | None,
    no_run: bool,
    no_xla: bool,
    memory_limit: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compile FILE and write one page: versions, target, summary, the kernels that take longest with their limits,
    memory at the peak, time by stage, decisions refused by cost, and a comparison with XLA:CPU.

    For this machine's CPU the program is run and timed. For other targets times are estimates.
    """
    from heron import peer
    from heron.report.html import html
    from heron.report.markdown import markdown
    from heron.report.review import measure, review
    from heron.report.subject import Subject

    if output is not None and not output.endswith((".html", ".md")):
        raise HeronError("CLI034", f"'{output}' is neither HTML nor Markdown", hint="-o OUT.html or -o OUT.md")
    machine, options = targets.get(target), make_options(settings, memory_limit)
    job = Job(inputs, 0 if inputs is None else None, None, None, None, None)
    module = load_module(file, target, arrays=job.at_hand)
    trace = Trace(module.name, target)
    with progress(trace, f"compiling {module.name} for {target}"):
        subject = Subject.compile(module, machine, options, trace)
    if target == "cpu" and not no_run and module.num_partitions * module.replica_count == 1:
        arrays = job.arrays(module)
        with at_step(f"measuring {module.name}") as say, interruptible():
            measure(subject, arrays, not no_xla and peer.is_available(), say)
    page = review(subject, " ".join(["heron", *sys.argv[1:]]))
    if output is not None:
        files.write_text(output, html(page) if output.endswith(".html") else markdown(page))
    if as_json:
        print_json(page.to_json())
    elif output is None:
        print_text(markdown(page))
