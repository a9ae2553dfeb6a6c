"""``heron jax-tests``: JAX's own tests on heron, beside JAX's CPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from heron.cli.common import examples, json_option, print_json, print_table
from heron.cli.main import DIFFERENT, OK

if TYPE_CHECKING:
    from heron.pjrt.conformance.runner import FileReport

_SHOWN = 20


@click.command(
    short_help="Run JAX's own tests on heron.",
    epilog=examples(
        "heron jax-tests ~/jax/tests",
        "heron jax-tests ~/jax/tests/lax_test.py -k sort",
        "JAX_NUM_GENERATED_CASES=5 heron jax-tests ~/jax/tests --jobs 4",
    ),
)
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@click.option("-k", "select", default="", metavar="EXPRESSION", help="Only tests whose names fit, as for pytest.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Files at a time.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="For a file on one platform.",
)
@json_option
def command(path: Path, select: str, jobs: int, timeout: float, as_json: bool) -> int:
    """Run the tests in PATH, a file or folder of a JAX checkout whose version fits the installed JAX.

    Each file runs on heron and on JAX's CPU, in processes of their own. The table counts tests; `of CPU's` is the part
    of what the CPU passes that heron does not fail. Failures follow by the first line of their error.
    """
    from heron.pjrt.conformance import runner

    def told(report: FileReport) -> None:
        click.echo(f"{report.file.name}: {len(report.missed)} of {len(report.wanted)} missed", err=True)

    reports = runner.compare(runner.files_of(path.resolve()), select, jobs, timeout, told)
    groups = runner.clusters(reports)
    if as_json:
        files = {str(r.file): {"wanted": len(r.wanted), "missed": r.missed} for r in reports}
        print_json({"files": files, "clusters": [{"error": e, "tests": t} for e, t in groups]})
    else:
        _show(reports, groups)
    return DIFFERENT if groups else OK


def _show(reports: list[FileReport], groups: list[tuple[str, list[str]]]) -> None:
    from heron.trace.summary import table

    rows = table("file", "passed>", "failed>", "skipped>", "crashed>", "CPU passes>", "missed>", "of CPU's>")
    for r in reports:
        counts = [str(r.count(o)) for o in ("passed", "failed", "skipped", "crashed")]
        rows.add_row(r.file.name, *counts, str(len(r.wanted)), str(len(r.missed)), _part(len(r.missed), len(r.wanted)))
    print_table(rows)
    missed, wanted = (sum(len(getattr(r, n)) for r in reports) for n in ("missed", "wanted"))
    click.echo(f"all: {_part(missed, wanted)} of {wanted} tests the CPU passes; {missed} missed")
    for error, tests in groups[:_SHOWN]:
        click.echo(f"\n{len(tests)} × {error}\n    {tests[0]}")


def _part(missed: int, wanted: int) -> str:
    return f"{100 * (wanted - missed) / wanted:.1f} %" if wanted else "–"
