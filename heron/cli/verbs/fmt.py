"""``heron fmt``: parse, verify, print."""

from __future__ import annotations

import click

from heron.cli.common import examples, file_argument, json_option, load_module, print_json, print_text


@click.command(
    short_help="Parse, verify and print a program.",
    epilog=examples("heron fmt model.hlo", "heron fmt - < model.hlo", "heron fmt model.hlo -o clean.hlo"),
)
@file_argument
@click.option("-o", "output", metavar="OUT", help="Write to OUT, which may be FILE itself.")
@json_option
def command(file: str, output: str | None, as_json: bool) -> None:
    """Parse and verify FILE (HLO text, - for standard input) and print it in canonical form."""
    from heron import files

    module = load_module(file)
    from heron.hlo.text import print_module

    text = print_module(module)
    if output is not None:
        files.write_text(output, text if text.endswith("\n") else text + "\n")
    if as_json:
        facts = {
            "module": module.name,
            "computations": len(module.computations),
            "instructions": module.instruction_count(),
        }
        print_json({**facts, **({"file": output} if output else {"text": text})})
    elif output is None:
        print_text(text)
