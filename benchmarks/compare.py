"""``python -m benchmarks.compare [NAME…]``: heron against XLA:CPU: compile time, run time and temp bytes, as ratios.

Both sides live in processes of one group and take turns, repeat by repeat, so that a busy machine hurts both alike.
Ratios are heron over XLA of the medians: below 1 heron is better.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

from benchmarks import programs, sections
from heron import files
from heron.cli.series import series
from heron.errors import HeronError

SIDES = ("heron", "xla")
_COMPILE_BUDGET = 20.0  # seconds of compiling after which a program is not compiled again
_RUN_BUDGET = 20.0


class Worker:
    """A process that answers requests, one at a time."""

    def __init__(
        self,
        *arguments: str,
        python: str = sys.executable,
        environment: dict[str, str] | None = None,
        module: str = "benchmarks.worker",
        log: Path | None = None,
    ) -> None:
        """``log``: a file that the process's standard error is appended to; a crash of native code says why there."""
        errors = log.open("a") if log is not None else None
        self.process = subprocess.Popen(
            [python, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if errors is None else errors,
            text=True,
            cwd=Path(__file__).parent.parent,
            env={**os.environ, **(environment or {})},
            start_new_session=True,  # Ctrl-C is the parent's, which closes this process
        )
        if errors is not None:
            errors.close()

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to one request. Raises `Refused` when this side cannot do it."""
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Refused(f"the process ended with {self.process.wait()}") from None
        line = self.process.stdout.readline()
        if not line:
            raise Refused(f"the process ended with {self.process.wait()}")
        reply = json.loads(line)
        if "error" in reply:
            raise Refused(reply["error"])
        return reply

    def close(self, at_once: bool = False) -> None:
        """End the process, when it is done with a request or ``at_once``."""
        if at_once:
            self.process.kill()
        if self.process.stdin:
            with contextlib.suppress(BrokenPipeError):  # what was not read by a process that has ended
                self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Refused(Exception):
    """One side cannot compile or run a program."""


@dataclass
class Measured:
    """Times of one side on one program, in seconds, and bytes; or why there are none."""

    compile: list[float] = field(default_factory=list)
    run: list[float] = field(default_factory=list)
    temp_bytes: int = 0
    #: the most memory the process had ever had after its first compile of the program
    peak_bytes: int = 0
    refused: str = ""

    def median(self, what: str) -> float:
        """The median of ``compile`` or ``run``; NaN where nothing was measured."""
        times = getattr(self, what)
        return statistics.median(times) if times else math.nan


@dataclass
class Row:
    """One program: both sides, and how far apart their outputs are."""

    name: str
    heron: Measured
    xla: Measured
    #: largest difference of any output, over the largest magnitude in it; NaN when a side has no outputs
    error: float = math.nan

    def ratio(self, what: str) -> float:
        """heron over XLA; NaN when a side is missing, or XLA needs nothing and heron something."""
        if what == "temp_bytes":
            if self.heron.refused or self.xla.refused:
                return math.nan
            if self.xla.temp_bytes == 0:
                return 1.0 if self.heron.temp_bytes == 0 else math.inf
            return self.heron.temp_bytes / self.xla.temp_bytes
        return self.heron.median(what) / self.xla.median(what)


def measure(
    name: str, workers: dict[str, Worker], small: bool, repeats: int, folder: Path, compiles: int | None = None
) -> Row:
    """Compile and run one program on both sides in turn; ``compiles``: how often, a third of `repeats` by default."""
    from heron.cli import values
    from heron.hlo.text import parse

    path = programs.path(name, small)
    module = parse(path.read_text(), filename=str(path))
    values.write(str(folder / "in.npz"), values.random(module, 0), [])
    row = Row(name, Measured(), Measured())
    sides = {side: getattr(row, side) for side in workers}

    def turn(action: str, **request: Any) -> None:
        """Let each side that is still in do `action` once."""
        for side, measured in sides.items():
            if measured.refused:
                continue
            try:
                reply = workers[side].ask(do=action, **request)
            except Refused as refusal:
                measured.refused = f"{action}: {refusal}"
                continue
            if "seconds" in reply:
                getattr(measured, action).append(reply["seconds"])
            measured.temp_bytes = reply.get("temp_bytes", measured.temp_bytes)
            measured.peak_bytes = measured.peak_bytes or reply.get("peak_bytes", 0)

    turn("parse", path=str(path))
    for _ in range(compiles or max(1, repeats // 3)):
        turn("compile")
        if sum(sum(m.compile) for m in sides.values()) > _COMPILE_BUDGET:
            break
    turn("bind", path=str(folder / "in.npz"))
    turn("run")
    for m in sides.values():
        m.run.clear()  # the first run warms up
    for _ in range(repeats):
        turn("run")
        if sum(sum(m.run) for m in sides.values()) > _RUN_BUDGET:
            break
    row.error = _error(workers, sides, folder)
    return row


def _error(workers: dict[str, Worker], sides: dict[str, Measured], folder: Path) -> float:
    """The largest difference between the two sides' outputs, over the largest magnitude of that output."""
    from heron.cli import compare, values

    if len(sides) < 2 or any(m.refused for m in sides.values()):
        return math.nan
    for side in sides:
        workers[side].ask(do="outputs", path=str(folder / f"{side}.npz"))
    ours, theirs = (values.read(str(folder / f"{side}.npz")).outputs for side in SIDES)
    rows = compare.compare_all(ours, theirs, rtol=0.0)
    return max(
        (c.max_abs / scale for c, t in zip(rows, theirs, strict=True) if (scale := compare.magnitude(t))), default=0.0
    )


def geomean(ratios: Iterable[float]) -> float:
    """Geometric mean of the positive finite ones; NaN when there are none."""
    logs = [math.log(r) for r in ratios if math.isfinite(r) and r > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def report(rows: Sequence[Row]) -> str:
    """The table, then the geometric means."""
    head = ("program", "compile s", "xla", "ratio", "run ms", "xla", "ratio", "temp MiB", "xla", "ratio", "error")
    lines: list[tuple[str, ...]] = [head]
    for r in rows:
        cells = [r.name]
        for what, scale in (("compile", 1.0), ("run", 1e3)):
            cells += [_number(m.median(what) * scale) for m in (r.heron, r.xla)] + [_number(r.ratio(what))]
        cells += [f"{m.temp_bytes / 2**20:.2f}" for m in (r.heron, r.xla)] + [_number(r.ratio("temp_bytes"))]
        lines.append((*cells, _number(r.error)))
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    text = [
        "  ".join(c.ljust(w) if n == 0 else c.rjust(w) for n, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    ]
    for what, label in (("compile", "compile time"), ("run", "run time"), ("temp_bytes", "temp bytes")):
        ratios = [r.ratio(what) for r in rows]
        counted = sum(math.isfinite(x) and x > 0 for x in ratios)
        line = f"{label}: geometric mean {_number(geomean(ratios))} x XLA:CPU over {counted} programs"
        for count, case in ((sum(map(math.isinf, ratios)), "only heron"), (ratios.count(0.0), "only XLA")):
            line += f"; {count} more where {case} needs any" if count else ""
        text.append(line)
    for r in rows:
        text += [
            f"{r.name}: {side} refused: {m.refused}" for side, m in (("heron", r.heron), ("xla", r.xla)) if m.refused
        ]
    return "\n".join(text)


def page(rows: Sequence[Row], small: bool, repeats: int) -> str:
    """The table as a section of the docs, with what it was measured on."""
    from heron import targets

    machine = targets.get("cpu").description.removeprefix("this machine: ")
    scale = "small" if small else "full"
    today = datetime.date.today()
    return f"""heron against XLA:CPU (jaxlib), {scale} scale, {today}, by `python -m benchmarks.compare --write`:
{machine}, both sides in turn, medians of up to {repeats} runs. A ratio below 1 means that heron is better; times alone
mean little, since the machine may have been busy with other things, but with the same things for both. "error" is the
largest difference between the two sides' outputs, over the largest magnitude of that output, on random inputs.

```
{report(rows)}
```
"""


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "inf" if math.isinf(value) else f"{value:.3g}" if value < 100 else f"{value:.0f}"


@click.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every program (minutes).")
@click.option("--small", is_flag=True, help="The scaled-down programs.")
@click.option("--repeats", type=click.IntRange(min=1), default=9, show_default=True, help="Timed runs of each.")
@click.option("--target", default="cpu", show_default=True, help="heron's target.")
@click.option("--alone", is_flag=True, help="heron only: no XLA beside it.")
@click.option("--peer-python", default=sys.executable, help="A Python that has jax, if this one has not.")
@click.option("--write", is_flag=True, help="Write the table to docs/reference/benchmarks.md.")
@click.option("--json", "output", metavar="OUT", help="Write all figures to a file.")
def main(
    names: tuple[str, ...],
    everything: bool,
    small: bool,
    repeats: int,
    target: str,
    alone: bool,
    peer_python: str,
    write: bool,
    output: str | None,
) -> None:
    """Measure heron against XLA:CPU on NAMES (default: a quick choice)."""
    chosen = programs.names() if everything else names or programs.QUICK
    for name in chosen:
        programs.path(name, small)
    workers = {"heron": Worker("heron", target)}
    if not alone:
        workers["xla"] = Worker("xla", python=peer_python)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, series("programs", len(chosen)) as work:
        for name in work.over(chosen, str):
            rows.append(measure(name, workers, small, repeats, Path(folder)))
            click.echo(f"{name}: run {_number(rows[-1].ratio('run'))}", err=True)
    for worker in workers.values():
        worker.close(at_once=work.is_interrupted)
    click.echo(report(rows))
    if write and not work.is_interrupted:
        sections.put("Compiled programs", page(rows, small, repeats))
    if output:
        ratios = ("compile", "run", "temp_bytes")
        figures = [{**asdict(r), "ratios": {w: _plain(r.ratio(w)) for w in ratios}} for r in rows]
        files.write_text(output, json.dumps({"target": target, "small": small, "programs": figures}, indent=1) + "\n")
    sys.exit(work.code(False))


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


if __name__ == "__main__":
    try:
        main()
    except HeronError as error:
        sys.exit(error.render())
