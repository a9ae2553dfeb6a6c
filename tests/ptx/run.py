"""Kernels by way of their PTX: ``run_ptx`` in the place of ``run_sim``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron import targets
from heron.codegen.emit import emit_fusion
from heron.codegen.kernel import Kernel
from heron.codegen.llvm.nvptx import to_ptx
from heron.codegen.sim.kernel import compile_kernel
from heron.hlo.ir.instruction import Instruction
from heron.runtime.sim.code import Dims
from heron.runtime.sim.launcher import SimKernel
from tests.codegen.run_kernel import buffers, lower, outputs
from tests.ptx.text import Module
from tests.ptx.translate import to_llvm


def simulated(ptx: str | Module, name: str, grid: Dims, block: Dims, checks: str = "all") -> SimKernel:
    """A kernel of a PTX text, run with checks."""
    return compile_kernel(to_llvm(ptx, name), name, grid, block, checks=checks)


def run_ptx(
    kernel: Kernel, inputs: Sequence[np.ndarray], sm: str = "sm_90", every_step: bool = True
) -> list[np.ndarray]:
    """The outputs of a GPU kernel, by its PTX."""
    arrays = buffers(kernel, inputs)
    launch = simulated(to_ptx(lower(kernel, sm, every_step), sm), kernel.name, kernel.launch.grid, kernel.launch.block)
    launch([(a.ctypes.data, a.nbytes) for a in arrays])
    return outputs(kernel, arrays)


def emit_and_run_ptx(
    i: Instruction, inputs: Sequence[np.ndarray], sm: str = "sm_90", every_step: bool = True
) -> tuple[list[np.ndarray], str]:
    """The outputs of one instruction as a kernel, and its emitter."""
    kernel = emit_fusion(i, "kernel", targets.get(sm))
    return run_ptx(kernel, inputs, sm, every_step), kernel.emitter
