"""``python -m benchmarks.gpu.prepare OUT [NAME…]``: everything that needs no GPU, done before one is there.

For each program OUT gets the compiled program (``NAME.heron``), what a model says of its kernels (``NAME.json``) and,
of full programs, what they should give (``NAME.expected.npz``). tests/gpu and benchmarks.gpu take them from there with
``--prepared OUT`` and spend no time on a GPU compiling; what is not there they compile.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import heron
from benchmarks import programs
from benchmarks.gpu import expected, sources
from heron import files
from heron.analysis.cost.estimate import estimate
from heron.analysis.cost.kernel import kernel_cost
from heron.archive.cuda import SavedGpu
from heron.backends.stages import Stages
from heron.errors import HeronError
from heron.hlo.text import parse
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.thunks import KernelThunk, walk
from heron.targets import get


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What a model says of a kernel: seconds of a launch, bytes it must move at least, operations, and how many of
    those the device does a second; ``launches`` of it in a run, and its HLO."""

    launches: int
    model_seconds: float
    bytes: float
    flops: float
    peak_flops: float
    story: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A compiled program, its kernels by name, and the seconds its compile took."""

    executable: CudaExecutable
    kernels: dict[str, KernelFacts]
    compile_seconds: float


def facts_of(executable: CudaExecutable) -> dict[str, KernelFacts]:
    """What the model says of each kernel of a program just compiled, from the instruction it was made for."""
    assert isinstance(executable.stages, Stages)
    _, uses = executable.stages.compilation.lowered
    target, found = get(executable.target), {}
    launched = [t.kernel for t in walk(executable.program.thunks) if isinstance(t, KernelThunk)]
    for name, use in uses.items():
        cost = kernel_cost(use.instruction)
        peak = target.flops_of("f32" if cost.unit.startswith("matrix") else cost.unit)
        seconds, story = estimate(cost, target).seconds, executable.program.kernels[name].story
        found[name] = KernelFacts(launched.count(name), seconds, cost.distinct, cost.flops, peak, story)
    return found


def compiled(name: str, small: bool, target: str, graphs: bool = True) -> Prepared:
    """The program, compiled now."""
    module, options = parse(sources.text(name, small)), replace(sources.options(name), graphs=graphs)
    start = time.perf_counter()
    made = heron.compile(module, target, options)
    assert isinstance(made, CudaExecutable)
    facts = facts_of(made)
    return Prepared(made, facts, time.perf_counter() - start)


def stem(name: str, small: bool) -> str:
    """What the files of a program begin with."""
    return f"{name}.small" if small else name


def write(folder: Path, name: str, small: bool, target: str) -> None:
    """Compile a program, and put it there with what is known of it."""
    from heron import archive

    base = str(folder / stem(name, small))
    made = compiled(name, small, target)
    facts = {"compile_seconds": made.compile_seconds, "kernels": {k: asdict(f) for k, f in made.kernels.items()}}
    archive.save(made.executable, base + ".heron")
    if not small and not name.startswith(sources.PREFIX):
        arrays = expected.inputs(name)
        expected.write(f"{base}.expected.npz", expected.outputs(name, arrays))
    files.write_text(base + ".json", json.dumps(facts) + "\n")  # last: it says that all is there


def find(folder: str | Path | None, name: str, small: bool, target: str = "cuda", graphs: bool = True) -> Prepared:
    """The program from a folder that was prepared, else compiled now; with graphs or without."""
    base = Path(folder) / stem(name, small) if folder else None
    if base is None or not Path(f"{base}.json").exists():
        return compiled(name, small, target, graphs)
    from heron import archive

    facts = json.loads(Path(f"{base}.json").read_text())
    made = archive.load_program(f"{base}.heron")
    assert isinstance(made, SavedGpu)
    made.program = replace(made.program, graphs=graphs)
    return Prepared(made, {k: KernelFacts(**f) for k, f in facts["kernels"].items()}, facts["compile_seconds"])


def wanted(folder: str | Path | None, name: str, arrays: list[np.ndarray]) -> list[expected.Output]:
    """What the full program should give, from a folder that was prepared, else computed now."""
    path = Path(folder) / f"{name}.expected.npz" if folder else None
    return expected.read(str(path)) if path is not None and path.exists() else expected.outputs(name, arrays)


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--target", default="sm_90", show_default=True)
@click.option("--size", type=click.Choice(["small", "full", "both"]), default="both", show_default=True)
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes beside each other.")
def main(out: Path, names: tuple[str, ...], target: str, size: str, jobs: int) -> None:
    """Prepare NAMES (default: every program) in OUT; what is there already stays."""
    out.mkdir(parents=True, exist_ok=True)
    sizes = [s for s in ("full", "small") if size in (s, "both")]
    work = [(n, s == "small") for s in sizes for n in names or [*programs.names(), *sources.of_reach()]]
    work = [w for w in work if not (out / f"{stem(*w)}.json").exists()]
    if jobs == 1 or len(work) == 1:
        for name, small in work:
            click.echo(f"{stem(name, small)} …", err=True)
            write(out, name, small, target)
        return
    work.sort(key=lambda w: -len(sources.text(*w)))  # the longest first
    with ThreadPoolExecutor(jobs) as threads:
        for (name, small), done in zip(work, threads.map(lambda w: _apart(out, w[0], w[1], target), work), strict=True):
            problem = done.stderr.strip().splitlines()[-1:] if done.returncode else []
            click.echo(" ".join([stem(name, small), *problem]), err=True)


def _apart(out: Path, name: str, small: bool, target: str) -> subprocess.CompletedProcess[str]:
    size = "small" if small else "full"
    flags: list[Any] = [out, name, "--target", target, "--size", size, "--jobs", "1"]
    command = [sys.executable, "-m", "benchmarks.gpu.prepare", *map(str, flags)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    try:
        main()
    except HeronError as error:
        sys.exit(error.render())
