"""The kernels of a program: the time that the cost model predicts for one run, and the one measured."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import heron
from benchmarks.zoo.catalogue import named
from heron import targets
from heron.analysis.cost.program import program_cost
from heron.backends.compiler import Compilation
from heron.options import Options
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction
    from heron.targets import Target

#: the time that two readings of the clock add to a step, about
CLOCK = 10e-9


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel or library call; seconds are those of one run on one thread."""

    program: str
    step: str
    #: ``kernel``, or the library call's kind
    kind: str
    #: what the kernel is: opcodes that say what its time depends on
    content: str
    predicted: float
    measured: float
    runs: int

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted / self.measured


def points(name: str, repeats: int = 15) -> list[Point]:
    """Every step of a program that does something, at its least time of several runs."""
    import jax

    program = named(name)
    with jax.enable_x64(program.wide):
        function, arguments = program.make()
        module = heron.from_jax(function, *arguments, platform="cpu")
        leaves = jax.tree.leaves(arguments)
    shapes = [p.shape for p in module.entry.parameters]
    arrays = [np.asarray(x).astype(s.element_type.dtype) for x, s in zip(leaves, shapes, strict=True)]
    target = one_thread(targets.get("cpu"))
    compilation: Any = Compilation(module, target, Options(threads=1, profile=True), Trace())
    least = _least(compilation.executable(), arrays, repeats)
    steps = {s.instruction.name: s for s in program_cost(compilation.scheduled, target).steps}
    found = []
    for source, (kind, runs, seconds) in least.items():
        step = steps.get(source)
        if step is None or not runs or kind == "copy":
            continue
        measured = max(seconds / runs - CLOCK, 1e-9)
        content = _content(step.instruction)
        found.append(Point(program.name, source, kind, content, step.estimate.seconds, measured, runs))
    return found


def one_thread(target: Target) -> Target:
    """The machine as one of its cores sees it."""
    flops = tuple((name, rate / target.cores) for name, rate in target.flops)
    return dataclasses.replace(target, cores=1, flops=flops)


def _least(executable: Any, arrays: list[np.ndarray], repeats: int) -> dict[str, tuple[str, int, float]]:
    """Of each step by its instruction: kind, runs in one call, and the least seconds of them."""
    executable.run(arrays)
    least: dict[str, tuple[str, int, float]] = {}
    for _ in range(repeats):
        executable.profile.reset()
        executable.run(arrays)
        together: dict[str, tuple[str, int, float]] = {}
        for s in executable.profile.steps():
            kind, runs, seconds = together.get(s.thunk.source, (s.thunk.kind, s.runs, 0.0))
            together[s.thunk.source] = kind, runs, seconds + s.seconds
        for source, (kind, runs, seconds) in together.items():
            before = least.get(source, (kind, runs, seconds))[2]
            least[source] = kind, runs, min(before, seconds)
    return least


#: ops whose presence decides what a kernel costs, dearest first
_TELLING = (
    "sort", "scatter", "fft", "convolution", "dot", "reduce-window", "gather", "dynamic-update-slice", "dynamic-slice",
    "concatenate", "pad", "reduce", "transpose", "custom-call", "slice", "reverse", "iota", "copy",
)  # fmt: skip


def _content(i: Instruction) -> str:
    """Of a fusion its most telling op."""
    inside = {inner.opcode for inner in i.attrs["calls"].instructions} if i.opcode == "fusion" else {i.opcode}
    return next((op for op in _TELLING if op in inside), "elementwise")
