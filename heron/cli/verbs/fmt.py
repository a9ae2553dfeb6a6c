"""``heron fmt``: parse, verify, print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heron.cli.common import examples, file_argument, json_option, load_module, print_json, print_text
from heron.errors import HeronError

if TYPE_CHECKING:
    from heron.hlo.module import Module


@click.command(
    short_help="Parse, verify and print a program.",
    epilog=examples(
        "heron fmt model.hlo",
        "heron fmt - < model.hlo",
        "heron fmt model.hlo -o clean.hlo",
        "heron fmt model.hlo --to proto -o model.pb",
    ),
)
@file_argument
@click.option("-o", "output", metavar="OUT", help="Write to OUT, which may be FILE itself.")
@click.option(
    "--to",
    "form",
    type=click.Choice(("text", "proto")),
    default="text",
    show_default=True,
    help="HLO text, or the bytes of an HloModuleProto (with -o).",
)
@json_option
def command(file: str, output: str | None, form: str, as_json: bool) -> None:
    """Parse and verify FILE (text or binary, - for standard input) and print it in canonical form."""
    from heron import files

    module = load_module(file)
    from heron.hlo.text import print_module

    text = print_module(module) if form == "text" else ""
    if form == "proto":
        _write_proto(module, output)
    elif output is not None:
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


def _write_proto(module: Module, output: str | None) -> None:
    from heron import files
    from heron.hlo.proto import to_proto

    if output is None:
        raise HeronError("CLI002", "--to proto writes bytes, not text", hint="name a file with -o")
    files.write_bytes(output, to_proto(module))
