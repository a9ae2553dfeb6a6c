"""Kernels on the simulated GPU: compiled for this machine, with what findings say of their HLO."""

from __future__ import annotations

from functools import cache

from heron.backends.lower import KernelUse
from heron.codegen.sim import native
from heron.codegen.sim.kernel import compile_kernel
from heron.codegen.triton.text import to_ttir
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.runtime.sim.blocks import BlockKernel
from heron.runtime.sim.findings import Facts
from heron.runtime.sim.launcher import SimKernel

_SHOWN = 6  # instructions of a fusion that are named


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


def facts_of(use: KernelUse) -> Facts:
    """Which instruction the kernel is for, the ops inside it, the user's names of them, and the arguments."""
    args = use.kernel.args
    outputs = frozenset(n for n, a in enumerate(args) if a.kind == "out" and a.alias is None)
    return Facts(story(use.instruction), tuple(_argument(use, n) for n in range(len(args))), outputs)


def story(i: Instruction) -> str:
    """An instruction, the ops inside it, and the user's name of them."""
    inside = [i]
    if i.opcode == "fusion":
        inside = [o for o in i.calls.instructions if o.opcode not in ("parameter", "constant", "tuple")]
    names = [o.name for o in inside[:_SHOWN]] + (["…"] if len(inside) > _SHOWN else [])
    line = f"HLO {i.name}: {', '.join(names)}"
    origins = dict.fromkeys(o.metadata.op_name for o in reversed(inside) if o.metadata and o.metadata.op_name)
    return line + (f", from {next(iter(origins))}" if origins else "")


def _argument(use: KernelUse, n: int) -> tuple[str, Shape]:
    arg = use.kernel.args[n]
    if arg.kind == "out":
        several = sum(a.kind == "out" for a in use.kernel.args) > 1
        return (f"output {arg.index} of {use.instruction.name}" if several else f"output of {use.instruction.name}"), (
            arg.shape
        )
    operands = use.instruction.operands
    return (operands[arg.index].name if arg.index < len(operands) else f"input {arg.index}"), arg.shape
