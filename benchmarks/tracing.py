"""``python -m benchmarks.tracing``: processor time and bytes of a trace, and the time of questions that it answers.

Compiles with and without a trace take turns in one process. The cost of a trace is measured twice: as the time of
writing it, which varies little, and as the difference of the two compiles. Goals, for gpt2_12l_train_step: under 3 % of
the compile, a file under 20 MB, and every question answered in under 1 s by a process of its own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

import heron
from benchmarks import programs
from heron import targets
from heron.backends.stages import Stages
from heron.collector import collector_paused
from heron.compiling import compile_module
from heron.options import Options
from heron.trace import Trace
from heron.view.record.recording import Recording


def compiled(program: Path, target: str, output: Path | None, full: bool) -> tuple[float, float]:
    """Processor seconds of a compile, and those of keeping its trace in `output` (0 without)."""
    module = heron.load(program.read_text())
    assert isinstance(module, heron.Module)
    trace = Trace(module.name, target)
    start = time.process_time()
    recording = None if output is None else Recording(trace, full)
    executable = compile_module(module, targets.get(target), Options(), trace)
    executable.examine()
    made = time.process_time()
    if recording is not None and output is not None:
        assert isinstance(executable.stages, Stages)
        with collector_paused():
            recording.finish(executable.stages.compilation)
            trace.save(output)
    return made - start, time.process_time() - made


def questions(trace: Path, name: str) -> dict[str, float]:
    """Processor seconds of each question, asked by a process of its own."""
    asked = {"why": ("why", trace, "--about", name), "mem": ("mem", trace), "diff": ("diff", trace, trace)}
    found = {}
    for question, command in asked.items():
        before = os.times()
        done = subprocess.run(
            [sys.executable, "-m", "heron", *map(str, command)], stdout=subprocess.DEVNULL, check=False
        )
        after = os.times()
        if done.returncode:
            raise click.ClickException(f"heron {' '.join(map(str, command))} ends with code {done.returncode}")
        found[question] = after.children_user + after.children_system - before.children_user - before.children_system
    return found


@click.command(help=__doc__)
@click.argument("name", default="gpt2_12l_train_step")
@click.option("--target", default="cpu", show_default=True)
@click.option("--pairs", type=click.IntRange(min=1), default=7, show_default=True, help="Compiles of each kind.")
@click.option("--full", is_flag=True, help="A trace with the program after every pass and all kernels' texts.")
def main(name: str, target: str, pairs: int, full: bool) -> None:
    """Compile NAME with and without a trace."""
    program = programs.path(name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.trace"
        compiled(program, target, file, full)  # imports
        plain, traced, writing = [], [], []
        for _ in range(pairs):
            plain.append(compiled(program, target, None, full)[0])
            compile_seconds, write_seconds = compiled(program, target, file, full)
            traced.append(compile_seconds + write_seconds)
            writing.append(write_seconds)
        base, cost = statistics.median(plain), statistics.median(writing)
        differences = statistics.median(b - a for a, b in zip(plain, traced, strict=True))
        click.echo(f"{name} for {target}, medians of {pairs} by turns, processor time")
        click.echo(f"compile            {base * 1e3:8.1f} ms")
        click.echo(f"writing the trace  {cost * 1e3:8.1f} ms  {cost / base:6.1%}")
        click.echo(f"with less without  {differences * 1e3:8.1f} ms  {differences / base:6.1%}")
        click.echo(f"file               {file.stat().st_size / 1e6:8.2f} MB")
        instruction = Trace.load(file).kernels[0].source[0]
        for question, seconds in questions(file, instruction).items():
            click.echo(f"heron {question:12} {seconds * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
