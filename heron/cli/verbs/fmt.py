"""``heron fmt``: parse, verify, print."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from heron import files
from heron.cli.common import examples, file_argument, json_option, load_module, print_json, print_text
from heron.errors import HeronError

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module
    from heron.hlo.text import PrintOptions

F = TypeVar("F", bound=Callable[..., Any])

FORMS = ("default", "short", "canonical", "fingerprint", "module-fingerprint")

#: field of PrintOptions -> what its flag, --FIELD or --no-FIELD, shows or leaves out
SWITCHES = {
    "percent": "The % before names.",
    "signatures": "Parameters and result after a computation's name.",
    "ids": "Names of computations and the module, and what follows the first dot of other names.",
    "result_shapes": "Shapes before opcodes.",
    "operand_shapes": "Shapes before operands.",
    "operand_names": "Names of operands.",
    "index_comments": "/*index=5*/ before every fifth operand.",
    "compact_operands": "Four operands at most.",
    "layouts": "Layouts in shapes.",
    "attributes": "Attributes of the op.",
    "metadata": "Where instructions come from.",
    "op_names_only": "Of the metadata, only op names.",
    "origin": "Original values.",
    "backend_config": "Backend configurations.",
    "feed_config": "Configurations of infeed and outfeed.",
    "frontend_attributes": "Frontend attributes of instructions.",
    "control_predecessors": "Control edges.",
    "parameter_numbers": "Numbers of parameters.",
    "async_sugar": "y-start for an async-start of a single y.",
    "full_replica_groups": "Groups of devices as lists.",
    "elide_large_constants": "{...} for constants of more than 10 elements.",
    "digest_constants": "{...#…}, a digest of the bytes, for constants of more than 1 KiB.",
    "essential_constants": "Only integers, all zeros and all ones.",
    "canonical_names": "Instructions as tmp_0, tmp_1, ...",
    "canonical_order": "Computations in post-order.",
    "name_after_brace": "Names of long computations at their end, too.",
}


def _switches(f: F) -> F:
    for field, text in reversed(SWITCHES.items()):
        flag = field.replace("_", "-")
        f = click.option(f"--{flag}/--no-{flag}", field, default=None, help=text)(f)
    return f


@click.command(
    short_help="Parse, verify and print a program.",
    epilog=examples(
        "heron fmt model.hlo",
        "heron fmt - < model.hlo",
        "heron fmt model.hlo -o clean.hlo",
        "heron fmt model.hlo --form short --no-layouts",
        "heron fmt model.hlo --to proto -o model.pb",
    ),
)
@file_argument
@click.option("-o", "output", metavar="OUT", help="Write to OUT, which may be FILE itself.")
@click.option(
    "--form",
    type=click.Choice(FORMS),
    default="default",
    show_default=True,
    help="The form of XLA's printer; the switches below change it.",
)
@click.option(
    "--calls",
    type=click.Choice(("name", "body", "off")),
    help="Print called computations by name, with their body, or not at all.",
)
@_switches
@click.option(
    "--to",
    "to",
    type=click.Choice(("text", "proto")),
    default="text",
    show_default=True,
    help="HLO text, or the bytes of an HloModuleProto (with -o).",
)
@json_option
def command(file: str, output: str | None, form: str, to: str, as_json: bool, **shown: Any) -> None:
    """Parse and verify FILE (text or binary, - for standard input) and print it as XLA would."""

    module = load_module(file, sizes=False)
    from heron.hlo.text import print_module

    text = print_module(module, _options(form, shown)) if to == "text" else ""
    if to == "proto":
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


def _options(form: str, shown: dict[str, Any]) -> PrintOptions:
    """The print options: the form, changed by the given switches."""
    from dataclasses import replace

    from heron.hlo.text.options import FORMS as NAMED

    return replace(NAMED[form](), **{name: value for name, value in shown.items() if value is not None})


def _write_proto(module: Module, output: str | None) -> None:
    from heron.hlo.proto import to_proto

    if output is None:
        raise HeronError("CLI002", "--to proto writes bytes, not text", hint="name a file with -o")
    files.write_bytes(output, to_proto(module))
