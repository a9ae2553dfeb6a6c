"""The work of ``heron graph``."""

from __future__ import annotations

import difflib

from heron import files, targets
from heron.backends.compiler import Compilation
from heron.cli.common import load_module, make_options, print_text
from heron.cli.progress import progress
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.trace import Trace
from heron.trace.graph.boxes import around as neighbours
from heron.trace.graph.boxes import graph_of
from heron.trace.graph.drawing import html, svg
from heron.trace.graph.outline import outline


def run(
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
    trace = Trace(module.name, target)
    with progress(trace, f"compiling {module.name} for {target}"):
        return Compilation(module, targets.get(target), make_options(settings), trace).passes(stage)


def _find(module: Module, name: str) -> Instruction:
    """The instruction of that name. Raises CLI039."""
    everything = {i.name: i for c in reversed(module.computations) for i in c.instructions}
    found = everything.get(name.removeprefix("%"))
    if found is None:
        near = difflib.get_close_matches(name, everything, 1)
        hint = f"did you mean '{near[0]}'?" if near else "`heron fmt` shows their names"
        raise HeronError("CLI039", f"no instruction is called '{name}'", where=module.name, hint=hint)
    return found
