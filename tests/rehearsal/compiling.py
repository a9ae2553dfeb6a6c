"""Programs for the rehearsed device: compiled as for a GPU, their kernels known to it by the simulator's code."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeAlias

import heron
from heron.backends.compiler import Compilation
from heron.backends.gpu.machine import GpuMachine
from heron.backends.gpu.simulated import Simulation
from heron.backends.lower import KernelUse
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.runtime.cuda.devices import CudaDevices
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.cuda.program import KernelEntry
from heron.targets import Target, get, libcuda
from heron.targets.triton import missing
from heron.trace import Trace
from tests.ptx import run as ptx_run
from tests.ptx.text import Module as PtxModule
from tests.ptx.text import parse
from tests.rehearsal.declared import declared
from tests.rehearsal.driver import Recorder
from tests.rehearsal.memory import Fault, raw

#: runs a kernel on arrays: the address of each, and the bytes behind it
Runner: TypeAlias = Callable[[list[tuple[int, int]]], object]


@contextlib.contextmanager
def rehearsed(**how: Any) -> Iterator[Recorder]:
    """A recorder in the place of libcuda; at the end nothing may have gone wrong unseen."""
    recorder = Recorder(**how)
    with libcuda.use(recorder):
        yield recorder
    assert not recorder.problems, "\n".join(recorder.problems)


def compile(
    module: Module, recorder: Recorder, target: str = "sm_90", options: Options | None = None, by_ptx: bool = False
) -> CudaExecutable:
    """The program for the target, its kernels known to the recorder."""
    made = heron.compile(module, target, options)
    assert isinstance(made, CudaExecutable)
    learn(made, module, recorder, options or Options(), by_ptx)
    return made


def compile_devices(
    module: Module, recorder: Recorder, target: str = "sm_90", options: Options | None = None
) -> CudaDevices:
    """The same for several devices."""
    made = heron.compile(module, target, options)
    assert isinstance(made, CudaDevices)
    learn(made, module, recorder, options or Options())
    return made


def learn(
    executable: CudaExecutable | CudaDevices, module: Module, recorder: Recorder, options: Options, by_ptx: bool = False
) -> None:
    """Teach the recorder the kernels of a module's program: none of Triton's where it is not installed.

    ``by_ptx``: kernels are computed by what their PTX means (`tests.ptx`), but for those of Triton.
    """
    if options.triton == "auto" and missing():
        options = dataclasses.replace(options, triton="off")
    teach(kernels_of(executable, lambda target: Compilation(module, target, options, Trace()), by_ptx), recorder)


def learn_from(
    executable: CudaExecutable | CudaDevices, recorder: Recorder, compiled: Callable[[Target], Compilation]
) -> None:
    """Teach the recorder the kernels of a program. ``compiled``: its compile for a target."""
    teach(kernels_of(executable, compiled), recorder)


def kernels_of(
    executable: CudaExecutable | CudaDevices, compiled: Callable[[Target], Compilation], by_ptx: bool = False
) -> list[tuple[list[bytes], str, Runner, int, KernelEntry]]:
    """The kernels of a program, ready for any recorder: forms of its code, name there, runner, arguments, entry."""
    program = executable.program
    target = dataclasses.replace(get(executable.target), sim=True)
    simulated = compiled(target)
    _, uses = simulated.lowered
    assert set(uses) == set(program.kernels), "the simulated program has other kernels"
    machine, simulation = simulated.machine, Simulation("")
    assert isinstance(machine, GpuMachine)
    found = []
    for name, use in uses.items():
        entry = program.kernels[name]
        image = program.images[entry.image]
        kernel, count = _kernel(simulation, machine, name, use)
        if by_ptx and use.kernel.emitter != "block":
            kernel = ptx_run.simulated(_parsed(image.ptx), entry.symbol or name, entry.grid, entry.block, checks="")
        kernel = _with_tickets(kernel, use)
        assert (use.kernel.launch.grid, use.kernel.launch.block) == (entry.grid, entry.block)
        found.append(([c for c in (image.code, image.ptx) if c], entry.symbol or name, kernel, count, entry))
    return found


@cache
def _parsed(ptx: bytes) -> PtxModule:
    return parse(ptx.decode())


def teach(kernels: list[tuple[list[bytes], str, Runner, int, KernelEntry]], recorder: Recorder) -> None:
    """Teach the recorder kernels that `kernels_of` gave."""
    for codes, name, kernel, count, entry in kernels:
        run = _runner(kernel, count, recorder, entry.scratch)
        facts = declared(codes[-1]).get(name)
        for code in codes:
            recorder.known.learn(code, name, count, run, facts.alignments if facts else ())


def _kernel(simulation: Simulation, machine: GpuMachine, name: str, use: KernelUse) -> tuple[Runner, int]:
    """The kernel on the simulator, and how many arguments it has."""
    if use.kernel.emitter == "block":
        return simulation.block_kernel(use), len(use.kernel.args)
    kernel = simulation.kernel(use, machine.llvm({name: use}))
    return kernel, len(kernel.code.arguments)


def _with_tickets(kernel: Runner, use: KernelUse) -> Runner:
    """The kernel; one whose blocks take tickets from a control word faults when it finds those of an earlier run."""
    form, blocks = use.kernel.notes.get("form", ""), use.kernel.launch.grid[0]
    passes = re.fullmatch(r"a pass of (\d+) of a radix sort", form)
    if passes is None and form != "one pass":
        return kernel
    place, most = (-1, int(passes[1]) * blocks) if passes else (-2, blocks)

    def run(arrays: list[tuple[int, int]]) -> None:
        taken = int(raw(arrays[place][0], 4).view("<u4")[0])
        if taken + blocks > most:
            why = f"{taken} of {most} tickets are taken, {blocks} blocks want one"
            raise Fault(700, f"{use.kernel.name} finds control words of an earlier run: {why}")
        kernel(arrays)

    return run


def _runner(kernel: Runner, count: int, recorder: Recorder, scratch: int) -> Any:
    def run(values: list[int]) -> None:
        if scratch:
            assert recorder.memory.room(values[count]) >= scratch, "a kernel's scratch memory is too small"
        assert not any(values[count + bool(scratch) :]), "scratch memory that is not wanted is null"
        kernel([(address, recorder.room(address)) for address in values[:count]])

    return run
