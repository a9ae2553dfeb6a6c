"""``heron graph``: a picture of a program, or the neighbourhood of an instruction as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heron import files, targets
from heron.cli.common import (
    examples,
    file_argument,
    load_module,
    make_options,
    print_text,
    settings_option,
    target_option,
)
from heron.cli.progress import progress
from heron.errors import HeronError
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.module import Module

_STAGES = ("given", "hlo", "fused", "scheduled")


@click.command(
    short_help="Draw a program.",
    epilog=examples(
        "heron graph model.hlo -o model.svg",
        "heron graph model.hlo --at fused --target sm_90 -o fused.html",
        "heron graph model.hlo --around dot.7 --steps 3",
    ),
)
@file_argument
@click.option("--around", metavar="NAME", help="Draw only the neighbourhood of this instruction; without -o, as text.")
@click.option(
    "--steps",
    metavar="N",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Size of the neighbourhood, in edges.",
)
@click.option(
    "--at", "stage", type=click.Choice(_STAGES), default="given", show_default=True, help="Draw FILE at this stage."
)
@click.option("--closed", is_flag=True, help="Do not open fusions, loops and branches.")
@click.option("-o", "output", metavar="OUT", help="Write a picture, OUT.svg, or a page with zoom and search, OUT.html.")
@target_option
@settings_option
def command(
    file: str,
    around: str | None,
    steps: int,
    stage: str,
    closed: bool,
    output: str | None,
    target: str,
    settings: tuple[str, ...],
) -> None:
    """Draw FILE: operands above their users, fusions and loop bodies as nested boxes."""
    from heron.trace.graph.boxes import around as neighbours
    from heron.trace.graph.boxes import graph_of
    from heron.trace.graph.drawing import html, svg
    from heron.trace.graph.outline import outline

    if output is None and around is None:
        raise HeronError(
            "CLI034", "no output file given for the picture", hint="-o OUT.svg or OUT.html, or --around NAME"
        )
    if output is not None and not output.endswith((".svg", ".html")):
        raise HeronError("CLI034", f"'{output}' is not a picture", hint="-o OUT.svg or OUT.html")
    module = load_module(file, target, sizes=stage != "given")
    if stage != "given":
        module = _compiled(module, target, stage, settings)
    centre = None if around is None else _find(module, around)
    if output is None:
        if centre is not None:
            print_text("\n".join(outline(centre, steps)))
        return
    home = module.entry if centre is None else centre.parent
    assert home is not None
    chosen = None if centre is None else neighbours(home, centre, steps)
    graph = graph_of(home, chosen, closed)
    draw = svg if output.endswith(".svg") else html
    files.write_text(output, draw(graph, "" if centre is None else centre.name))


def _compiled(module: Module, target: str, stage: str, settings: tuple[str, ...]) -> Module:
    from heron.backends.compiler import Compilation

    trace = Trace(module.name, target)
    with progress(trace, f"compiling {module.name} for {target}"):
        return Compilation(module, targets.get(target), make_options(settings), trace).passes(stage)


def _find(module: Module, name: str) -> Instruction:
    """The instruction of that name. Raises CLI039."""
    import difflib

    everything = {i.name: i for c in reversed(module.computations) for i in c.instructions}
    found = everything.get(name.removeprefix("%"))
    if found is None:
        near = difflib.get_close_matches(name, everything, 1)
        hint = f"did you mean '{near[0]}'?" if near else "`heron fmt` shows their names"
        raise HeronError("CLI039", f"no instruction is called '{name}'", where=module.name, hint=hint)
    return found
