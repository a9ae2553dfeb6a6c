"""The command: measure, print, and write the page."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.prediction import page
from benchmarks.prediction.measure import Point, points
from benchmarks.zoo.catalogue import Program, programs
from benchmarks.zoo.workers import NoAnswer, answers
from heron import files
from heron.errors import HeronError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "prediction.md"


def of_middle_size(chosen: Sequence[Program]) -> list[Program]:
    """Of each program the second of its sizes."""
    sizes: dict[str, list[Program]] = {}
    for p in chosen:
        sizes.setdefault(p.name.partition(" ")[0], []).append(p)
    return [of_one[min(1, len(of_one) - 1)] for of_one in sizes.values()]


@click.command()
@click.argument("word", default="")
@click.option("--limit", default=120.0, show_default=True, help="Seconds after which a program is given up.")
@click.option("--write", is_flag=True, help="Write docs/reference/prediction.md and its plot.")
@click.option("--json", "output", metavar="OUT", help="Write all points to a file.")
@click.option("--from", "given", metavar="OUT", help="Take the points from such a file instead of measuring.")
def main(word: str, limit: float, write: bool, output: str | None, given: str | None) -> None:
    """Compare predicted and measured times of the programs whose name contains WORD, or of that theme (default: all).

    Each program runs at its second size, on one thread.
    """
    found: list[Point] = []
    if given:
        found = [Point(**p) for p in json.loads(Path(given).read_text())]
    else:
        names = [p.name for p in of_middle_size(programs(word))]
        for name, of_program in answers(points, names, limit):
            if isinstance(of_program, NoAnswer):
                click.echo(f"{name}: {of_program.why}", err=True)
            else:
                found += of_program
                click.echo(f"{name}: {len(of_program)} steps", err=True)
    if output:
        files.write_text(output, json.dumps([dataclasses.asdict(p) for p in found]) + "\n")
    click.echo(page.report(found))
    if write:
        page.plot(found, PAGE.parent / "prediction")
        files.write_text(PAGE, page.page(found))


if __name__ == "__main__":
    try:
        main()
    except HeronError as error:
        sys.exit(error.render())
