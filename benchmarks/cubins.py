"""``python -m benchmarks.cubins [NAME…]``: every program to machine code for a GPU, with libraries and Triton.

No GPU is needed: NVIDIA's assembler and Triton make the code. Launches count each place in a program once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

import heron
from benchmarks import programs
from heron import targets
from heron.compiling import compile
from heron.errors import HeronError
from heron.options import Options
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.thunks import KernelThunk, LibraryThunk, walk
from heron.targets import Target
from heron.trace import Trace


@dataclass(slots=True)
class Row:
    """A program's machine code: ``blocks`` are its kernels by Triton, ``wgmma`` those that use a warp group's matrix
    units."""

    program: str
    launches: int = 0
    kernels: int = 0
    blocks: int = 0
    wgmma: int = 0
    size: int = 0
    seconds: float = 0.0
    error: str = ""


def build(name: str, target: Target, small: bool = False) -> Row:
    """A program's figures; what does not compile has its error."""
    row, begin = Row(name), time.perf_counter()
    try:
        module = heron.parse(programs.path(name, small, "cuda").read_text())
        executable = compile(module, target, Options(triton="on"), Trace())
        assert isinstance(executable, CudaExecutable)
        program = executable.program
        blocks = [image for image in program.images if b"wgmma" in image.ptx]
        row.launches = sum(isinstance(t, KernelThunk | LibraryThunk) for t in walk(program.thunks))
        row.kernels = len(program.kernels)
        row.blocks = len(getattr(executable, "blocks", {}))
        row.wgmma, row.size = len(blocks), sum(len(image.code) for image in program.images)
        if any(not image.code.startswith(b"\x7fELF") for image in program.images):
            row.error = "a part of it has no machine code"
    except HeronError as error:
        row.error = f"{error.code} {error.what}"
    row.seconds = time.perf_counter() - begin
    return row


def table(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each program, and how many there are."""
    yield f"{'program':22} launches  kernels  by Triton  wgmma  code KB  seconds"
    for r in rows:
        figures = f"{r.launches:8} {r.kernels:8} {r.blocks:10} {r.wgmma:6} {r.size / 1024:8.0f} {r.seconds:8.1f}"
        yield f"{r.program:22} {r.error or figures}"
    yield f"{sum(not r.error for r in rows)} of {len(rows)} programs have machine code"


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--target", default="sm_90", show_default=True)
@click.option("--small/--full", default=False, help="The scaled-down programs.")
def main(names: tuple[str, ...], target: str, small: bool) -> None:
    rows: list[Row] = []
    for name in names or programs.names():
        rows.append(build(name, targets.get(target), small))
        click.echo(f"{name}: {rows[-1].error or 'built'}", err=True)
    click.echo("\n".join(table(rows)))
    raise SystemExit(any(r.error for r in rows))


if __name__ == "__main__":
    main()
