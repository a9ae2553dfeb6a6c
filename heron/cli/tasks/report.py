"""The work of ``heron report``."""

from __future__ import annotations

import sys

from heron import files, peer, targets
from heron.cli.common import load_module, make_options, print_json, print_text
from heron.cli.job import Job
from heron.cli.progress import at_step, interruptible, progress
from heron.errors import HeronError
from heron.report.html import html
from heron.report.markdown import markdown
from heron.report.review import measure, review
from heron.report.subject import Subject
from heron.trace import Trace


def run(
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
    """Compile FILE and write a page about it."""
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
