"""Reports of ``heron reduce``: progress, and the result."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heron.cli.common import print_json, print_text
from heron.cli.progress import at_step

if TYPE_CHECKING:
    from heron.reduce.case import Case
    from heron.reduce.checks import Check, Finding
    from heron.reduce.reducing import Result
    from heron.reduce.search import Progress

_MOST_LINES = 60  # of a program that is printed


@contextlib.contextmanager
def shown(start: Case) -> Iterator[Callable[[Progress], None]]:
    """A line on a terminal with the state of the search; elsewhere a line whenever the program is a third smaller."""
    if not sys.stderr.isatty():
        told = start.count

        def tell(p: Progress) -> None:
            nonlocal told
            if p.best.count <= told * 2 / 3:
                told = p.best.count
                click.echo(_state(start, p), err=True)

        yield tell
        return
    with at_step("reducing") as say:
        say("is the fault there each time?")
        yield lambda p: say(_state(start, p))


def _state(start: Case, p: Progress) -> str:
    now = f"{p.best.count} after {p.seconds:.0f} s and {p.tried} programs"
    return f"{start.count} instructions are {now}; trying: {p.kind}"


def once(finding: Finding, check: Check, as_json: bool) -> int:
    """Say whether the fault is there. Raises CLI073 when the program fails in another way."""
    from heron.reduce.reducing import other_fault

    there = finding.kind in check.kinds
    if finding.is_fault() and not there:
        raise other_fault(finding)
    if as_json:
        print_json({"fault": there, "text": finding.text, "sign": finding.sign})
    else:
        print_text(finding.text if there else "no fault")
    return int(there)


def interrupted(folder: Path) -> None:
    """Say where the best program is."""
    if folder.exists():
        click.echo(f"\nthe smallest program so far is in {folder}; the same command goes on", err=True)


def tell(result: Result, folder: Path, as_json: bool) -> None:
    """The result: sizes, the fault, the pass behind it, the program if it is short, and the script."""
    from heron.reduce.case import INPUTS, PROGRAM
    from heron.reduce.store import SCRIPT

    best = result.best
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "instructions": {"before": result.start.count, "after": best.count},
                "elements": {"before": result.start.size[1], "after": best.size[1]},
                "fault": result.finding.text,
                "culprit": result.culprit,
                "tried": result.tried,
                "seconds": result.seconds,
                "finished": result.finished,
                "program": best.text,
            }
        )
        return
    end = "" if result.finished else ", the time is up"
    lines = [
        f"{result.start.count} instructions are {best.count}: {result.tried} programs in {result.seconds:.0f} s{end}",
        f"fault: {result.finding.text}",
        *([f"pass: {result.culprit}"] if result.culprit else []),
        *(["", best.text] if best.text.count("\n") <= _MOST_LINES else []),
        f"{folder / PROGRAM}, {folder / INPUTS}; {folder / SCRIPT} shows the fault",
    ]
    print_text("\n".join(lines))
