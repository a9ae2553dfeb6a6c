"""``heron codegen``: the transforms of kernels, on MLIR text."""

from __future__ import annotations

from typing import Any, cast

import click

from heron import files
from heron.cli.common import examples, file_argument, json_option, print_json, print_table, print_text, read_source
from heron.errors import HeronError

TARGETS = ("cpu", "gpu", "sim")


@click.group(
    short_help="Run kernel transforms on MLIR text, or list them.",
    epilog=examples(
        "heron codegen list",
        "heron compile model.hlo --target sm_90 --to mlir -o kernels.mlir",
        "heron codegen opt kernels.mlir -p inliner,cse",
        "heron codegen opt kernels.mlir --target gpu --print-after-all",
    ),
)
def command() -> None:
    """Run the transforms that take kernels from emission to LLVM, one step at a time."""


@command.command("list", short_help="List the steps.")
@json_option
def list_steps(as_json: bool) -> None:
    """List every step in pipeline order: its name, its targets, its effect."""
    from heron.codegen.transforms import pipeline

    rows = []
    for name, transform in pipeline.STEPS.items():
        targets = [t for t in TARGETS if (name, transform) in pipeline.PIPELINES[t]]
        rows.append({"name": name, "targets": targets, "what": pipeline.summary(name)})
    if as_json:
        print_json(rows)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in ("step", "targets", "what"):
        table.add_column(title, no_wrap=title != "what")
    for row in rows:
        table.add_row(row["name"], " ".join(row["targets"]) or "on request", row["what"])
    print_table(table)


@command.command("opt", short_help="Run steps on MLIR text.")
@file_argument
@click.option("-p", "--steps", metavar="STEP,STEP…", help="Steps in order; by default the target's whole pipeline.")
@click.option(
    "--target", type=click.Choice(TARGETS), default="gpu", show_default=True, help="Kind of machine to lower for."
)
@click.option("--inline-ops", type=click.IntRange(min=0), metavar="N", help="Inline functions of at most N ops.")
@click.option("--alignment", type=click.IntRange(min=1), metavar="N", help="Alignment of every buffer, in bytes.")
@click.option("--vector-bits", type=click.IntRange(min=0), metavar="N", help="A CPU has vectors of N bits, no masks.")
@click.option("--gathers", metavar="FEATURES", help="A CPU has these features, and gathers that LLVM would not use.")
@click.option("--print-after-all", is_flag=True, help="Print the module after each step.")
@click.option("-o", "output", metavar="OUT", help="Write the result to OUT.")
@json_option
def opt(
    file: str,
    steps: str | None,
    target: str,
    inline_ops: int | None,
    alignment: int | None,
    vector_bits: int | None,
    gathers: str | None,
    print_after_all: bool,
    output: str | None,
    as_json: bool,
) -> None:
    """Run steps on FILE (MLIR text, - for standard input), verify after each, print the result."""
    from heron.codegen.ir.dialects.context import parse_kernel
    from heron.codegen.transforms import pipeline
    from heron.codegen.transforms.options import Target, TransformOptions

    chosen = pipeline.PIPELINES[cast(Target, target)]
    if steps is not None:
        chosen = tuple(pipeline.find(name.strip()) for name in steps.split(",") if name.strip())
    data, name = read_source(file)
    try:
        module = parse_kernel(data.decode(), name)
    except UnicodeDecodeError as error:
        raise HeronError("GEN110", "kernel text is not UTF-8", where=name, why=str(error)) from None
    numbers = {"inline_ops": inline_ops, "alignment": alignment, "vector_bits": vector_bits}
    given: dict[str, Any] = {**numbers, "gathers": gathers}
    options = TransformOptions(cast(Target, target), verify=True, **{k: v for k, v in given.items() if v is not None})
    record: list[tuple[str, str]] = []
    observe = (lambda step, m: record.append((step, str(m)))) if print_after_all else None
    pipeline.run(module, options, chosen, observe)
    text = pipeline.show(record) if print_after_all else str(module)
    if output is not None:
        files.write_text(output, text if text.endswith("\n") else text + "\n")
    if as_json:
        after = {"after": [{"step": s, "text": t} for s, t in record]} if print_after_all else {}
        print_json({**after, **({"file": output} if output else {"text": str(module)})})
    elif output is None:
        print_text(text)
