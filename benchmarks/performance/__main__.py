"""The command: measure, print, and write the page."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from benchmarks import programs as all_programs
from benchmarks.performance import calls, growth, machine, page, plots, programs, startup
from benchmarks.performance.page import Figures
from heron import files
from heron.errors import HeronError

DOCS = Path(__file__).parents[2] / "docs" / "reference"


@click.command()
@click.argument("names", nargs=-1)
@click.option("--small", is_flag=True, help="The scaled-down programs.")
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True, help="Timed runs of each.")
@click.option("--peer-python", default=sys.executable, help="A Python that has jax, if this one has not.")
@click.option("--only-programs", is_flag=True, help="No calls, sizes and start-up.")
@click.option("--write", is_flag=True, help="Write docs/reference/performance.md and its plots.")
@click.option("--json", "output", metavar="OUT", help="Write all figures to a file.")
def main(
    names: tuple[str, ...],
    small: bool,
    repeats: int,
    peer_python: str,
    only_programs: bool,
    write: bool,
    output: str | None,
) -> None:
    """Measure NAMES (default: every program) against XLA:CPU, NumPy and the machine itself; about 8 minutes."""
    if write:
        plots.need_matplotlib()
    chosen = names or all_programs.names()
    for name in chosen:
        all_programs.path(name, small)
    begun = time.perf_counter()

    def tell(what: str) -> None:
        click.echo(f"{time.perf_counter() - begun:5.0f} s  {what}", err=True)

    tell("the machine")
    found = Figures(machine.measure(1), machine.measure(), small)
    if not only_programs:
        tell("calls")
        found.calls = calls.measure()
        tell("start-up")
        found.startup = startup.measure()
        for op in growth.OPS:
            tell(f"sizes: {op}")
            found.growths.append(growth.measure(op))
    with tempfile.TemporaryDirectory() as cache:
        for n, name in enumerate(chosen, 1):
            where = f"{name} ({n} of {len(chosen)})"
            measured = programs.measure(
                name, small, repeats, found.all, peer_python, Path(cache), lambda what, at=where: tell(f"{at}: {what}")
            )
            found.programs.append(measured)
    tell("done")
    text = page.page(found)
    click.echo(text)
    if write:
        files.write_text(DOCS / "performance.md", text)
        plots.draw(found.programs, found.growths, DOCS / "performance")
    if output:
        files.write_text(output, json.dumps(_plain(dataclasses.asdict(found)), indent=1) + "\n")


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


if __name__ == "__main__":
    try:
        main()
    except HeronError as error:
        sys.exit(error.render())
