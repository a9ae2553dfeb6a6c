"""Runs GPU kernels of single fusions on the checked simulator, and compiles them to PTX."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from heron import targets
from heron.codegen.emit import emit_fusion
from heron.codegen.kernel import Kernel
from heron.codegen.llvm.nvptx import to_ptx
from heron.codegen.sim.kernel import compile_kernel
from heron.runtime.sim.launcher import SimKernel
from tests.codegen.run_kernel import compare, evaluate, lower, root_fusion

_names = itertools.count()
_simulated: dict[int, tuple[Kernel, SimKernel]] = {}


def simulate(kernel: Kernel, arrays: Sequence[np.ndarray], check: bool = True) -> None:
    """Runs a GPU kernel on the host, with bounds and race checks; `arrays` are its arguments."""
    simulated = _simulated.get(id(kernel))
    if simulated is None or simulated[0] is not kernel:
        text = lower(kernel, "sim:sm_90")
        made = compile_kernel(text, kernel.name, kernel.launch.grid, kernel.launch.block, checks="all" if check else "")
        simulated = _simulated[id(kernel)] = (kernel, made)
    simulated[1]([(a.ctypes.data, max(a.nbytes, 1)) for a in arrays])


def run_sim(kernel: Kernel, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a GPU kernel on these inputs."""
    arrays: list[np.ndarray] = []
    for arg in kernel.args:
        if arg.kind == "in":
            arrays.append(np.array(inputs[arg.index], dtype=arg.shape.element_type.dtype, order="C", copy=True))
        elif arg.alias is not None:
            arrays.append(arrays[arg.alias])
        else:
            fresh = np.empty(arg.shape.dims, arg.shape.element_type.dtype)
            fresh.reshape(-1).view(np.uint8)[...] = 0xCD if arg.shape.element_type.name != "pred" else 1
            arrays.append(fresh)
    simulate(kernel, arrays)
    return [a for a, arg in zip(arrays, kernel.args, strict=True) if arg.kind == "out"]


def check_sim(source: str, inputs: Sequence[np.ndarray], *, rtol: float = 0.0, atol: float = 0.0) -> Kernel:
    """The GPU kernel of the entry's root, simulated, against the evaluator. Returns the kernel."""
    root = root_fusion(source)
    kernel = emit_fusion(root, f"sim_{next(_names)}", targets.get("sim:sm_90"))
    got, want = run_sim(kernel, inputs), evaluate(root, inputs)
    for g, w in zip(got, want, strict=True):
        compare(g, w, rtol, atol)
    return kernel


def ptx(source: str) -> str:
    """PTX of the GPU kernel of the entry's root."""
    kernel = emit_fusion(root_fusion(source), f"ptx_{next(_names)}", targets.get("sm_90"))
    return to_ptx(lower(kernel, "sm_90"))
