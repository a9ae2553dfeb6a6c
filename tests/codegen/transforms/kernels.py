"""How the transform tests lower, translate and run kernels written as text."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from heron.codegen.ir.dialects.context import parse_kernel
from heron.codegen.llvm.jit import Jit
from heron.codegen.llvm.translate import KernelAbi, to_llvm
from heron.codegen.transforms import pipeline
from heron.codegen.transforms.options import Target, TransformOptions


def lower(text: str, target: Target = "cpu", **options: int) -> ModuleOp:
    """The kernel after its target's whole pipeline, verified after each step."""
    return pipeline.run(parse_kernel(text), TransformOptions(target, verify=True, **options))


def apply(text: str, step: str, target: Target = "cpu", **options: int) -> str:
    """The kernel's text after the named step (or several, with commas between)."""
    steps = [pipeline.find(name) for name in step.split(",")]
    return str(pipeline.run(parse_kernel(text), TransformOptions(target, verify=True, **options), steps))


def run_cpu(text: str, arrays: Sequence[np.ndarray], lo: int = 0, hi: int = 1, **options: int) -> None:
    """Compiles the CPU kernel `k` and runs it on the arrays (inputs, then outputs) for work items lo to hi."""
    compiled = Jit(level=1).add(to_llvm(lower(text, **options), kernels={"k": KernelAbi("cpu")}), exports=["k"])
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
    types = [ctypes.c_void_p] * len(pointers)
    ctypes.CFUNCTYPE(None, *types, ctypes.c_int64, ctypes.c_int64)(compiled.addresses["k"])(*pointers, lo, hi)
