"""Runs hand-written kernels on the simulated GPU."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from heron.codegen.sim.kernel import compile_kernel
from heron.errors import HeronError

Dims = tuple[int, int, int]
ONE = (1, 1, 1)


def buffers(*arrays: np.ndarray) -> list[tuple[int, int]]:
    """Addresses and sizes, as a launch takes them."""
    return [(a.ctypes.data, a.nbytes) for a in arrays]


def kernel_text(body: str, arguments: str = "ptr %out", globals_: str = "", ends: bool = True) -> str:
    """A kernel @k whose body has %t (its thread) and %b (its block); called intrinsics are declared."""
    calls = re.findall(r"call ([\w{} ,]+?) (@llvm[\w.]+)\((.*)\)(?: nounwind)?$", body, re.MULTILINE)
    ids = "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()"
    declared = {"@llvm.nvvm.read.ptx.sreg.tid.x": "i32 ", "@llvm.nvvm.read.ptx.sreg.ctaid.x": "i32 "}
    lines = [f"declare i32 {name}()" for name in declared]
    for result, name, rest in calls:
        if name not in declared:
            declared[name] = result
            lines.append(f"declare {result} {name}({', '.join(a.split()[0] for a in rest.split(', ') if a)})")
    end = "\n  ret void" if ends else ""
    head = f"define ptx_kernel void @k({arguments}) nounwind {{\nentry:\n{ids}\n"
    return globals_ + "\n" + head + body.rstrip() + end + "\n}\n" + "\n".join(lines) + "\n"


def launch(text: str, *arrays: np.ndarray, grid: Dims = ONE, block: Dims = (32, 1, 1), **options: Any) -> None:
    """Compile and run kernel @k."""
    compile_kernel(text, "k", grid, block, **options)(buffers(*arrays))


def finding(text: str, *arrays: np.ndarray, grid: Dims = ONE, block: Dims = (32, 1, 1), **options: Any) -> HeronError:
    """The error that a run ends with."""
    with pytest.raises(HeronError) as caught:
        launch(text, *arrays, grid=grid, block=block, **({"checks": "all"} | options))
    return caught.value
