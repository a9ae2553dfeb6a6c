"""Programs for a simulated NVIDIA GPU: the same kernels as for a real one, each compiled for this machine's CPU."""

from __future__ import annotations

from functools import cache
from typing import Any

from heron.backends.gpu import blocks
from heron.backends.gpu.machine import GpuMachine
from heron.backends.gpu.story import story
from heron.backends.lower import KernelUse, LoweredProgram
from heron.backends.machine import Machine, no_stage
from heron.codegen.llvm.code_cache import Key
from heron.codegen.llvm.numerics import IEEE, Numerics
from heron.codegen.sim import native
from heron.codegen.sim.kernel import compile_kernel
from heron.codegen.triton.text import to_ttir
from heron.hlo.ir.shape import Shape
from heron.runtime.executable import Executable, ProgramInfo
from heron.runtime.sim.blocks import BlockKernel
from heron.runtime.sim.devices import SimDevices
from heron.runtime.sim.executable import Runner, SimExecutable
from heron.runtime.sim.findings import Facts
from heron.runtime.sim.launcher import SimKernel


class SimMachine(GpuMachine):
    """An NVIDIA GPU, simulated."""

    kind = "sim"

    @property
    def numerics(self) -> Numerics:
        return IEEE

    def build(self, lowered: LoweredProgram, info: ProgramInfo) -> Executable:
        runners: dict[str, Runner] = {}
        simulation = Simulation(self.options.sim_check)
        for name, use in blocks.of(lowered.kernels).items():
            runners[name] = simulation.block_kernel(use)
        for name, use in blocks.without(lowered.kernels).items():  # the simulator takes one kernel a module
            with info.trace.stage("llvm"):
                text = self.llvm({name: use})
            with info.trace.stage("machine code"):
                runners[name] = simulation.kernel(use, text)
        made = SimExecutable if self.devices.count == 1 else SimDevices
        return made(info, lowered.thunks, runners)

    def text(self, stage: str, lowered: LoweredProgram) -> str:
        if stage not in ("mlir", "llvm"):
            raise no_stage(self.target, stage)
        return super().text(stage, lowered)

    def code_text(self, llvm: str) -> tuple[str, str]:
        raise no_stage(self.target, "asm")  # what runs is made of coroutines, not of this text alone

    def block_stages(self, use: KernelUse) -> dict[str, str]:
        raise no_stage(self.target, "ptx")

    def cubin(self, uses: dict[str, KernelUse]) -> bytes:
        raise no_stage(self.target, "cubin")

    def code_keys(self, lowered: LoweredProgram, name: str) -> list[tuple[str, Key]]:
        return []


class Simulation:
    """Compiles the kernels of one program."""

    def __init__(self, checks: str) -> None:
        self.checks = checks
        self._compiler = cache(native.compiler)

    def block_kernel(self, use: KernelUse) -> BlockKernel:
        """A block kernel, ready to launch."""
        return BlockKernel(to_ttir(use.kernel.module), use.kernel.launch.grid[0], self.checks, facts_of(use))

    def kernel(self, use: KernelUse, llvm_text: str) -> SimKernel:
        """The kernel, ready to launch."""
        k = use.kernel
        grid, block = k.launch.grid, k.launch.block
        facts = facts_of(use)
        return compile_kernel(llvm_text, k.name, grid, block, checks=self.checks, facts=facts, compiler=self._compiler)


def kernel_text(machine: Machine, use: KernelUse) -> tuple[str, str, dict[str, Any]]:
    """A kernel as a saved program has it: the suffix of its file, its text, and the facts of its launch."""
    k = use.kernel
    if k.emitter == "block":
        return "ttir", to_ttir(k.module), {"name": k.name, "programs": k.launch.grid[0], "facts": facts_of(use)}
    assert isinstance(machine, SimMachine)
    facts = {"name": k.name, "grid": k.launch.grid, "block": k.launch.block, "facts": facts_of(use)}
    return "ll", machine.llvm({k.name: use}), facts


def facts_of(use: KernelUse) -> Facts:
    """The instruction a kernel is for, the ops inside it, the user's names of them, and the arguments."""
    args = use.kernel.args
    outputs = frozenset(n for n, a in enumerate(args) if a.kind == "out" and a.alias is None)
    return Facts(story(use.instruction), tuple(_argument(use, n) for n in range(len(args))), outputs)


def _argument(use: KernelUse, n: int) -> tuple[str, Shape]:
    arg = use.kernel.args[n]
    if arg.kind == "out":
        several = sum(a.kind == "out" for a in use.kernel.args) > 1
        return (f"output {arg.index} of {use.instruction.name}" if several else f"output of {use.instruction.name}"), (
            arg.shape
        )
    operands = use.instruction.operands
    return (operands[arg.index].name if arg.index < len(operands) else f"input {arg.index}"), arg.shape
