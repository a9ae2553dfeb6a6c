"""``python -m benchmarks.cubins [NAME…]``: every program to machine code for a GPU, with libraries and Triton.

No GPU is needed: NVIDIA's assembler and Triton make the code. Launches count each place in a program once. With
``--zoo`` the programs are those of `benchmarks.zoo` whose name or theme has a NAME, at the largest of their sizes, with
``--reach`` those of `tests.gpu.reach`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import click

import heron
from benchmarks import programs
from heron import targets
from heron.backends.gpu.compiled import CompiledGpu
from heron.codegen.llvm.cubin import code_sizes
from heron.compiling import compile
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.runtime.thunks import KernelThunk, LibraryThunk, walk
from heron.targets import Target
from heron.trace import Trace

#: instructions by which a warp group (sm_90) or a thread (sm_100) gives matrix units a whole tile
_GROUPS = (b"wgmma", b"tcgen05")


@dataclass(slots=True)
class Row:
    """A program's machine code: ``blocks`` are its kernels by Triton, ``groups`` those whose matrix units take whole
    tiles from shared memory; ``largest`` (bytes) and ``spills`` (bytes a thread) those of the kernel with most."""

    program: str
    launches: int = 0
    kernels: int = 0
    blocks: int = 0
    groups: int = 0
    size: int = 0
    largest: int = 0
    spills: int = 0
    seconds: float = 0.0
    error: str = ""


def workload(name: str, small: bool = False) -> tuple[Module, Options]:
    """A program of the workloads, and the options it is compiled with."""
    return heron.parse(programs.path(name, small, "cuda").read_text()), Options()


def reaching(name: str, small: bool = False) -> tuple[Module, Options]:
    """A program for a part of the GPU path that no workload needs."""
    from tests.gpu.reach import PROGRAMS

    case = PROGRAMS[name]
    return case.module(full=not small), case.options


def build(name: str, target: Target, source: Callable[[str], tuple[Module, Options]] = workload) -> Row:
    """A program's figures; what does not compile has its error."""
    row, begin = Row(name), time.perf_counter()
    try:
        module, options = source(name)
        executable = compile(module, target, replace(options, triton="on"), Trace())
        assert isinstance(executable, CompiledGpu)
        program = executable.program
        groups = [image for image in program.images if any(unit in image.ptx for unit in _GROUPS)]
        row.launches = sum(isinstance(t, KernelThunk | LibraryThunk) for t in walk(program.thunks))
        row.kernels = len(program.kernels)
        row.blocks = len(executable.blocks)
        row.groups, row.size = len(groups), sum(len(image.code) for image in program.images)
        sizes = [code_sizes(image.code) for image in program.images]
        row.largest = max((n for image in sizes for n in image.values()), default=0)
        used = executable.cubin.resources.values() if executable.ptx else ()
        row.spills = max((r.spill_bytes for r in used), default=0)
        if any(not image.code.startswith(b"\x7fELF") for image in program.images):
            row.error = "a part of it has no machine code"
    except HeronError as error:
        row.error = f"{error.code} {error.what}"
    row.seconds = time.perf_counter() - begin
    return row


def lowered(name: str) -> tuple[Module, Options]:
    """A program of the zoo, as JAX lowers it for a GPU."""
    import jax

    from benchmarks.zoo.catalogue import named

    program = named(name)
    with jax.enable_x64(program.wide):
        function, arguments = program.make()
        return heron.from_jax(function, *arguments, platform="cuda"), Options()


def largest_sizes(words: Sequence[str]) -> list[str]:
    """The programs of the zoo whose name or theme has one of the words, each at its largest size."""
    from benchmarks.zoo.catalogue import programs as zoo

    found = dict.fromkeys(p for word in words or ("",) for p in zoo(word))
    return list({p.name.split()[0]: p.name for p in found}.values())


def table(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each program, and how many there are."""
    yield f"{'program':40} launches  kernels  by Triton groups  code KB  largest B  spills B  seconds"
    for r in rows:
        figures = f"{r.launches:8} {r.kernels:8} {r.blocks:10} {r.groups:6} {r.size / 1024:8.0f}"
        figures += f" {r.largest:10} {r.spills:9} {r.seconds:8.1f}"
        yield f"{r.program:40} {r.error or figures}"
    yield f"{sum(not r.error for r in rows)} of {len(rows)} programs have machine code"


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--target", default="sm_90", show_default=True)
@click.option("--small/--full", default=False, help="The scaled-down programs.")
@click.option("--zoo", is_flag=True, help="Programs of the zoo, at their largest sizes.")
@click.option("--reach", is_flag=True, help="Programs of tests.gpu.reach.")
def main(names: tuple[str, ...], target: str, small: bool, zoo: bool, reach: bool) -> None:
    from tests.gpu.reach import PROGRAMS

    every = largest_sizes(names) if zoo else names or (tuple(PROGRAMS) if reach else programs.names())
    source = lowered if zoo else partial(reaching if reach else workload, small=small)
    rows: list[Row] = []
    for name in every:
        rows.append(build(name, targets.get(target), source))
        click.echo(f"{name}: {rows[-1].error or 'built'}", err=True)
    click.echo("\n".join(table(rows)))
    raise SystemExit(any(r.error for r in rows))


if __name__ == "__main__":
    main()
