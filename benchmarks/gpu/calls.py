"""``python -m benchmarks.gpu.calls``: what a call costs Python, on arrays that are on the device; needs no GPU.

The driver records while a program of many kernels is loaded; then its two functions that a call uses are native ones
that do nothing, so that what is left is heron.
"""

from __future__ import annotations

import ctypes
import statistics
import time

import click
import numpy as np

import heron
from heron.codegen.llvm.jit import Jit
from heron.runtime.cuda.array import put
from heron.runtime.cuda.executable import CudaExecutable
from heron.targets import libcuda

GOAL_US = 20.0
_LESS = """HloModule many

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
"""
_NOTHING = "define i32 @{0}(ptr %a, ptr %b) {{\n  ret i32 0\n}}\n"


def program(kernels: int) -> str:
    """Sorts of rows and of columns in turn: each is a kernel."""
    lines = ["  x0 = f32[64,64] parameter(0)"]
    for n in range(kernels):
        root = "ROOT " if n == kernels - 1 else ""
        lines.append(f"  {root}x{n + 1} = f32[64,64] sort(x{n}), dimensions={{{n % 2}}}, to_apply=less")
    return "\n".join([_LESS, "ENTRY main {", *lines, "}", ""])


def seconds(kernels: int, calls: int = 1000, repeats: int = 15) -> list[float]:
    """Seconds of a call, by repeat."""
    from tests.rehearsal.driver import Recorder

    recorder = Recorder()
    with libcuda.use(recorder):
        executable = heron.compile(heron.parse(program(kernels)), target="sm_90")
        assert isinstance(executable, CudaExecutable)
        device = executable.device
        x = put(np.zeros((64, 64), np.float32), device)
        executable.on_device(x)  # builds the graph
        names = ("cuGraphLaunch", "cuCtxSetCurrent")
        jit = Jit(level=0)
        jit.add("".join(map(_NOTHING.format, names)), "nothing", exports=names)
        for name in names:
            native = ctypes.CFUNCTYPE(ctypes.c_int, *libcuda.FUNCTIONS[name])(jit.address(name))
            device.driver.replace(name, native)
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            for _ in range(calls):
                executable.on_device(x)
            times.append((time.perf_counter() - start) / calls)
        return times


@click.command()
@click.argument("kernels", nargs=-1, type=click.IntRange(min=1))
def main(kernels: tuple[int, ...]) -> None:
    """Measure programs of so many KERNELS (default: 2, 20 and 200)."""
    for count in kernels or (2, 20, 200):
        times = [1e6 * t for t in seconds(count)]
        click.echo(
            f"{count:4} kernels: {min(times):5.1f} us a call at best, median {statistics.median(times):5.1f}"
            f" (goal: under {GOAL_US:.0f})"
        )


if __name__ == "__main__":
    main()
