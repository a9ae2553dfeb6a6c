"""``heron opt``: run passes on a program and print it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

import click

from heron.cli.common import (
    examples,
    file_argument,
    json_option,
    load_module,
    make_options,
    print_json,
    print_text,
    settings_option,
    target_option,
)
from heron.errors import HeronError

if TYPE_CHECKING:
    from heron.passes.base import Pass


@click.command(
    short_help="Run passes on a program and print it.",
    epilog=examples(
        "heron opt model.hlo -p dce,cse",
        "heron opt model.hlo --pipeline cpu",
        "heron opt model.hlo -p algebraic-simplifier -O math=fast -O check=values",
    ),
)
@file_argument
@click.option("-p", "--passes", metavar="PASS,PASS…", help="Passes in order, options as in 'name(option=1)'.")
@click.option("--pipeline", metavar="NAME", help="A named pipeline; `heron passes` lists them.")
@target_option
@click.option("-o", "output", metavar="OUT", help="Write the result to OUT.")
@settings_option
@json_option
def command(
    file: str,
    passes: str | None,
    pipeline: str | None,
    target: str,
    output: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run passes on FILE (HLO text, - for standard input) and print the result."""
    from heron import files, targets
    from heron.hlo.text import print_module
    from heron.passes import registry
    from heron.passes.context import PassContext
    from heron.trace import Trace

    if (passes is None) == (pipeline is None):
        raise HeronError("CLI035", "which passes?", hint="either -p PASS,PASS or --pipeline NAME; see `heron passes`")
    machine, options = targets.get(target), make_options(settings)
    steps = parse_passes(passes) if passes is not None else [registry.pipeline(pipeline or "")]
    module = load_module(file)
    trace = Trace(module.name, target)
    trace.options = options.changed()
    context = PassContext(options=options, trace=trace, target=machine)
    for step in steps:
        context.run_pass(step, module)
    text = print_module(module)
    if output is not None:
        files.write_text(output, text if text.endswith("\n") else text + "\n")
    if as_json:
        record = {key: trace.to_json()[key] for key in ("passes", "decisions", "notes")}
        print_json({**record, **({"file": output} if output else {"text": text})})
    elif output is None:
        print_text(text)


def parse_passes(text: str) -> list[Pass]:
    """Passes written ``name,name(option=value,…)``. Raises CLI036 for a malformed list, PASS001/5 for unknown names."""
    from heron.passes import registry

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
