"""``heron jax-tests``: runs JAX's own tests on heron and, for comparison, on JAX's CPU."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heron.cli.common import examples, json_option, print_json, print_table
from heron.cli.progress import is_shown
from heron.cli.series import series
from heron.trace.summary import table

if TYPE_CHECKING:
    from heron.pjrt.conformance.record import Record
    from heron.pjrt.conformance.runner import FileReport

_SHOWN = 20
#: lines of an error in the list of all
_LINES = 12


@click.command(
    short_help="Run JAX's own tests on heron.",
    epilog=examples(
        "heron jax-tests ~/jax/tests/lax_test.py -k sort",
        "heron jax-tests ~/jax/tests --every 10 --as-cpu --jobs 4",
        "heron jax-tests ~/jax/tests --results results --list-missed",
        "heron jax-tests ~/jax/tests/multiprocess --processes 2 --devices 4",
    ),
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-k", "select", default="", metavar="EXPRESSION", help="Only tests whose names fit, as for pytest.")
@click.option(
    "--every",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Run a sample: one test of N, the same ones each time.",
)
@click.option("--as-cpu", is_flag=True, help="Present heron to JAX as the platform cpu (HERON_AS=cpu).")
@click.option("--x64", is_flag=True, help="Turn on JAX's 64-bit types.")
@click.option(
    "--devices",
    type=click.IntRange(min=1),
    metavar="N",
    help="Use N devices on both, in place of the number each file asks for.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Run each file in N processes that mpiexec starts, each with --devices; for JAX's tests/multiprocess.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of files to run at a time.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Limit for one test; its process is ended.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep outcomes in FOLDER, and run only tests without one.",
)
@click.option("--brief", is_flag=True, help="Run on JAX's CPU only the tests that heron does not pass.")
@click.option("--retry", is_flag=True, help="With --results: run the tests that heron missed again.")
@click.option("--list-missed", is_flag=True, help="List every test that heron misses, with its error.")
@json_option
def command(
    paths: tuple[Path, ...],
    select: str,
    every: int,
    as_cpu: bool,
    x64: bool,
    devices: int | None,
    processes: int,
    jobs: int,
    timeout: float,
    results: Path | None,
    brief: bool,
    retry: bool,
    list_missed: bool,
    as_json: bool,
) -> int:
    """Run the tests of each PATH, a file or folder of a JAX checkout whose version matches the installed JAX.

    Each file runs on heron and on JAX's CPU, in separate processes. The table counts tests. A test is missed if the CPU
    passes it and heron fails or skips it. The last columns are CPU seconds. A list of failures follows, by the first
    line of their error.
    """
    from heron.pjrt.conformance import runner

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C it ends the processes of the tests, too
    settings = runner.Settings(select, every, timeout, devices or 0, as_cpu, x64, retry, processes, brief)
    files = list(dict.fromkeys(f for path in paths for f in runner.files_of(path.resolve())))
    reports: list[FileReport] = []
    with series("files", len(files)) as work:
        at = _Place(work.say, brief)

        def told(report: FileReport) -> None:
            reports.append(report)
            at.end(report.file)
            click.echo(f"{report.file.name}: {len(report.missed)} of {len(report.wanted)} missed", err=True)

        reports = runner.compare(files, settings, jobs, told, results, at if is_shown() else None)
    groups = runner.clusters(reports)
    if as_json:
        print_json(
            {
                "files": {str(r.file): _as_json(r) for r in reports},
                "clusters": [{"error": e, "tests": t} for e, t in groups],
            }
        )
    else:
        _show(reports, groups)
    if list_missed and not as_json:
        _list(reports)
    return work.code(groups)


class _Place:
    """The part of each file that is done: half of it on the CPU of JAX, half on heron, which is first where it is
    `brief`."""

    def __init__(self, say: Callable[..., None], brief: bool) -> None:
        self._say, self._brief = say, brief
        self._parts: dict[Path, float] = {}

    def __call__(self, file: Path, heron: bool, record: Record) -> None:
        count = len(record.selected)
        done = min(count, sum(t in record.outcomes for t in record.selected))
        self._parts[file] = ((heron != self._brief) + done / max(count, 1)) / 2
        where = f"{file.name} on {'heron' if heron else 'the CPU'}"
        self._tell(f"{where}: {done} of {count} tests, {record.under_way or ''}")

    def end(self, file: Path) -> None:
        """The file is over on both."""
        self._parts[file] = 1.0
        self._tell(file.name)

    def _tell(self, words: str) -> None:
        self._say(sum(self._parts.values()), words)


def _as_json(r: FileReport) -> dict[str, Any]:
    missed = {t: f"{o.outcome}: {o.error}" for t, o in r.missed.items()}
    return {"wanted": len(r.wanted), "missed": missed, "seconds": [r.heron.seconds, r.cpu.seconds]}


_OUTCOMES = ("passed", "failed", "skipped", "crashed")
_COLUMNS = (*(f"{o}>" for o in _OUTCOMES), "CPU passes>", "missed>", "of CPU's>", "s>", "CPU s>", "ratio>")


def _show(reports: list[FileReport], groups: list[tuple[str, list[str]]]) -> None:

    rows = table("file", *_COLUMNS)
    for r in reports:
        counts = [str(r.count(o)) for o in _OUTCOMES]
        passes = [str(len(r.wanted)), str(len(r.missed)), _part(len(r.missed), len(r.wanted))]
        rows.add_row(r.file.name, *counts, *passes, *_seconds([r]))
    print_table(rows)
    missed, wanted = (sum(len(getattr(r, n)) for r in reports) for n in ("missed", "wanted"))
    seconds = _seconds(reports)
    click.echo(f"all: {_part(missed, wanted)} of {wanted} tests the CPU passes; {missed} missed")
    click.echo(f"CPU seconds: {seconds[0]} on heron, {seconds[1]} on JAX's CPU, ratio {seconds[2]}")
    for error, tests in groups[:_SHOWN]:
        click.echo(f"\n{len(tests)} × {error}\n    {tests[0]}")


def _list(reports: list[FileReport]) -> None:
    for r in reports:
        for test, outcome in r.missed.items():
            click.echo(f"\n{r.file.name}::{test}: {outcome.outcome}")
            click.echo("\n".join(f"    {line}" for line in outcome.error.splitlines()[:_LINES]))


def _seconds(reports: list[FileReport]) -> list[str]:
    """On heron, on the CPU, and their ratio, unless the CPU ran other tests."""
    heron, cpu = (
        sum(side.seconds for side in sides) for sides in ([r.heron for r in reports], [r.cpu for r in reports])
    )
    return [f"{heron:.1f}", f"{cpu:.1f}", f"{heron / cpu:.2f}" if cpu and not any(r.brief for r in reports) else "–"]


def _part(missed: int, wanted: int) -> str:
    return f"{100 * (wanted - missed) / wanted:.1f} %" if wanted else "–"
