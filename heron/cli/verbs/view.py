"""``heron view``: a page that shows a whole compile."""

from __future__ import annotations

from pathlib import Path

import click

from heron.cli.common import (
    examples,
    file_argument,
    print_text,
    settings_option,
    target_option,
)
from heron.cli.progress import at_step
from heron.cli.traces import trace_of
from heron.errors import HeronError
from heron.trace.summary import size


@click.command(
    short_help="Write a page that shows a compile.",
    epilog=examples(
        "heron view model.trace",
        "heron view model.hlo --target sm_90 -o model.html --open",
    ),
)
@file_argument
@click.option("-o", "output", metavar="OUT.html", help="The page; by default FILE's name with .html, here.")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@target_option
@settings_option
def command(file: str, output: str | None, opens: bool, target: str, settings: tuple[str, ...]) -> None:
    """Write one HTML file that shows a compile: its timeline, the program after every pass, the graph, each kernel from
    HLO to machine code, memory, roofline, and every decision. It needs no network and no server.

    FILE is a trace from `heron compile -o x.trace`, which has the programs and the kernels' texts if --full was given,
    or a program, which is compiled first.
    """
    from heron.view.page import write

    if output is not None and not output.endswith((".html", ".htm")):
        raise HeronError("CLI034", f"'{output}' is not a page", hint="-o OUT.html")
    path = Path(output or ("page.html" if file == "-" else f"{Path(file.partition(':')[0]).stem}.html"))
    trace = trace_of(file, target, settings, texts=True)
    with at_step(f"writing {path}"):
        write(trace, path)
    print_text(f"{path} ({size(path.stat().st_size)})")
    if opens:
        import webbrowser  # takes a while to import, and few ask for it

        webbrowser.open(path.resolve().as_uri())
