"""``python -m benchmarks.gpu [NAME…]``: every program on the GPU: its kernels one by one, and whole beside its peers.

Writes a table (Markdown) and all figures (JSON) into a folder, with the device's name. ``--rehearse`` does all of it on
a driver that records, with XLA on the CPU: the figures mean nothing then, the way to them is what is tried.
"""

from __future__ import annotations

import contextlib
import json
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks import programs
from benchmarks.compare import Worker
from benchmarks.gpu.kernels import KernelRow, Timer, copy_bandwidth, measure
from benchmarks.gpu.report import kernel_figures, page, plain
from benchmarks.gpu.whole import PEERS, whole
from heron import files, targets
from heron.backends import compiler
from heron.cli import values
from heron.errors import HeronError
from heron.hlo.text import parse
from heron.runtime.cuda.device import device
from heron.runtime.cuda.executable import CudaExecutable


def kernels(names: Sequence[str], small: bool, repeats: int, recorder: Any) -> tuple[list[KernelRow], dict[str, Any]]:
    """Every kernel of the programs, and what the device is and copies."""
    d = device()
    size = 1 << 20 if recorder is not None else 1 << 30
    timer = Timer(d, min(size, 256 << 20))
    copy = copy_bandwidth(d, timer, size)
    facts = {
        "device": d.name,
        "capability": list(d.capability),
        "driver": d.driver.version,
        "copy_bytes_per_second": copy,
        "memory_bandwidth": targets.get("cuda").memory_bandwidth,
    }
    rows: list[KernelRow] = []
    for name in names:
        click.echo(f"kernels of {name} …", err=True)
        module = parse(programs.path(name, small, "cuda").read_text())
        try:
            if recorder is not None:
                from tests.rehearsal.compiling import compile

                executable: Any = compile(module, recorder)
            else:
                executable = compiler.compile(module, "cuda")
            assert isinstance(executable, CudaExecutable)
            rows += measure(name, executable, values.random(module, 0), copy, timer, repeats)
            executable.unload()
        except HeronError as error:
            click.echo(error.render(), err=True)
    timer.close()
    return rows, facts


@click.command()
@click.argument("names", nargs=-1)
@click.option("--small", is_flag=True, help="The scaled-down programs.")
@click.option("--repeats", type=click.IntRange(min=1), default=9, show_default=True, help="Timed runs of each.")
@click.option("--peers", default=",".join(PEERS), show_default=True, help="What runs beside heron, by commas; or none.")
@click.option("--no-kernels", is_flag=True, help="Whole programs only.")
@click.option("--rehearse", is_flag=True, help="With no GPU: on a driver that records. The figures mean nothing.")
@click.option("--out", default="gpu-results", show_default=True, help="The folder for the table and the figures.")
def main(
    names: tuple[str, ...], small: bool, repeats: int, peers: str, no_kernels: bool, rehearse: bool, out: str
) -> None:
    """Measure NAMES (default: every program) on the first GPU."""
    chosen = list(names) or programs.names()
    for name in chosen:
        programs.path(name, small, "cuda")
    beside = [p for p in peers.split(",") if p and p != "none"]
    with contextlib.ExitStack() as stack:
        recorder = None
        if rehearse:
            from tests.rehearsal.compiling import rehearsed

            recorder = stack.enter_context(rehearsed(memory=8 << 30))
        rows, facts = kernels([] if no_kernels else chosen, small, repeats, recorder)
        flags = ("--rehearse",) if rehearse else ()
        workers = {s: Worker(s, *flags, module="benchmarks.gpu.worker") for s in ("heron", *beside)}
        found = []
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for name in chosen:
                click.echo(f"{name} …", err=True)
                found.append(whole(name, workers, small, repeats, folder))
        finally:
            for worker in workers.values():
                worker.close()
    facts |= {"small": small, "rehearsed": rehearse, "python": platform.python_version(), "host": platform.machine()}
    text = page(facts, found, rows)
    figures = {**facts, "programs": found, "kernels": [kernel_figures(r) for r in rows]}
    Path(out).mkdir(parents=True, exist_ok=True)
    files.write_text(Path(out) / "results.md", text)
    files.write_text(Path(out) / "results.json", json.dumps(plain(figures), indent=1) + "\n")
    click.echo(text)
    click.echo(f"written to {out}/results.md and results.json", err=True)


if __name__ == "__main__":
    try:
        main()
    except HeronError as error:
        sys.exit(error.render())
