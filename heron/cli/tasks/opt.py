"""The work of ``heron opt``."""

from __future__ import annotations

import ast
import re
from typing import Any

import click

from heron import files, targets
from heron.cli import opt_report
from heron.cli.common import load_module, make_options, print_json, print_text
from heron.cli.opt_report import ChangePrinter, print_statistics
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.text import print_module
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.base import Pass
from heron.passes.framework.bisect import Bisection, values_check, verify_check
from heron.passes.framework.context import PassContext
from heron.passes.framework.loading import loaded
from heron.targets import Target
from heron.trace import Trace


def run(
    file: str,
    passes: str | None,
    pipeline: str | None,
    target: str,
    output: str | None,
    loads: tuple[str, ...],
    show: str | None,
    stats: bool,
    bisect: str | None,
    command_line: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run passes on FILE (HLO text, - for standard input) and print the result."""
    if (passes is None) == (pipeline is None):
        raise HeronError("CLI035", "no passes given", hint="either -p PASS,PASS or --pipeline NAME; see `heron passes`")
    machine, options = targets.get(target), make_options(settings)
    with loaded(loads):
        steps: list[Pass] = parse_passes(passes) if passes is not None else [registry.pipeline(pipeline or "")]
        module = load_module(file)
        if bisect or command_line:
            return _bisect(module, steps, machine, options, bisect, command_line, as_json)
        context = _run(module, steps, machine, options, show)
        _print_result(module, context, output, as_json)
        if stats:
            print_statistics(context)
    return 0


def _run(module: Module, steps: list[Pass], machine: Target, options: Options, show: str | None) -> PassContext:
    trace = Trace(module.name, machine.name)
    trace.options = options.changed()
    context = PassContext(options=options, trace=trace, target=machine)
    if show is not None:
        context.on_changed = ChangePrinter(module, show == "diff")
    for step in steps:
        context.run_pass(step, module)
    return context


def _print_result(module: Module, context: PassContext, output: str | None, as_json: bool) -> None:
    text = print_module(module)
    if output is not None:
        files.write_text(output, text if text.endswith("\n") else text + "\n")
    if as_json:
        record = {key: context.trace.to_json()[key] for key in ("passes", "decisions", "notes")}
        print_json({**record, **({"file": output} if output else {"text": text})})
        return
    if output is None:
        print_text(text)
    for note in context.trace.notes:
        click.echo(f"note: {note}", err=True)


def _bisect(
    module: Module,
    steps: list[Pass],
    machine: Target,
    options: Options,
    by: str | None,
    command_line: str | None,
    as_json: bool,
) -> int:
    if by and command_line:
        raise HeronError("CLI035", "two checks given", hint="either --bisect or --check-with")
    if command_line:
        check = opt_report.command_check(command_line)
    else:
        check = values_check(module) if by == "values" else verify_check
    with opt_report.probes_shown() as show:
        culprit = Bisection(module, steps, check, options, machine, show).search()
    if as_json:
        print_json(opt_report.culprit_json(culprit))
    else:
        opt_report.print_culprit(culprit)
    return int(culprit is not None)


def parse_passes(text: str) -> list[Pass]:
    """Passes written ``name,name(option=value,…)``. Raises CLI036 for a malformed list, PASS001/5 for unknown names."""
    steps = []
    for part in re.split(r",(?![^()]*\))", text):
        match = re.fullmatch(r"\s*([\w.-]+)\s*(?:\((.*)\))?\s*", part)
        if match is None:
            raise HeronError("CLI036", f"'{part}' is not a pass", hint="passes are written name,name(option=1)")
        steps.append(registry.get(match[1], **_options(match[2] or "")))
    return steps


def _options(text: str) -> dict[str, Any]:
    """Keyword options of a pass: Python literals, or bare words as text."""
    found: dict[str, Any] = {}
    for part in filter(str.strip, text.split(",")):
        name, equals, value = (p.strip() for p in part.partition("="))
        if not equals or not name.isidentifier():
            raise HeronError(
                "CLI036", f"'{part.strip()}' is not a pass option", hint="options are written name(option=1)"
            )
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    return found
