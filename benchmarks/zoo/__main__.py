"""The command: measure, print, and write the page."""

from __future__ import annotations

import compileall
import dataclasses
import json
import math
import os
import sys
from pathlib import Path

import click

import heron
from benchmarks.zoo import page
from benchmarks.zoo.catalogue import programs
from benchmarks.zoo.measure import Row, measure_all
from heron import files
from heron.cli.series import series
from heron.errors import HeronError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "zoo.md"


@click.command()
@click.argument("word", default="")
@click.option("--seconds", default=1.0, show_default=True, help="Time for the runs of each program.")
@click.option("--limit", default=120.0, show_default=True, help="Seconds after which a program is given up.")
@click.option("--list", "only_names", is_flag=True, help="The names, without running anything.")
@click.option("--write", is_flag=True, help="Write docs/reference/zoo.md.")
@click.option("--json", "output", metavar="OUT", help="Write all figures to a file.")
def main(word: str, seconds: float, limit: float, only_names: bool, write: bool, output: str | None) -> None:
    """Measure the programs whose name contains WORD, or of that theme (default: all)."""
    os.environ.setdefault("JAX_PLATFORMS", "heron,cpu")
    chosen = programs(word)
    if only_names:
        click.echo("\n".join(p.name for p in chosen))
        return
    # bytecode, which an installation has: where Python may write none, programs would pay for the files they need first
    compileall.compile_dir(Path(heron.__file__).parent, quiet=2)
    rows: list[Row] = []
    with series("programs", len(chosen)) as work:
        work.say(0, chosen[0].name if chosen else "")
        for row in measure_all(chosen, seconds, limit):
            rows.append(row)
            said = (
                row.refused or f"run {row.ratio('run'):.2f}  compile {row.ratio('compile'):.2f}  error {row.error:.1e}"
            )
            click.echo(f"{row.name:45s} {said}{'  WRONG' if row.wrong else ''}", err=True)
            work.say(len(rows), chosen[len(rows)].name if len(rows) < len(chosen) else "")
    click.echo(page.report(rows))
    if write and not work.is_interrupted:  # the page is about all programs
        files.write_text(PAGE, page.page(rows))
    if output:
        figures = [{**dataclasses.asdict(r), "temp_ratio": _plain(r.ratio("temp_bytes"))} for r in rows]
        files.write_text(output, json.dumps(figures, indent=1) + "\n")
    sys.exit(work.code(False))


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


if __name__ == "__main__":
    try:
        main()
    except HeronError as error:
        sys.exit(error.render())
