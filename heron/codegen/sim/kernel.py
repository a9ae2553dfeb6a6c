"""`compile_kernel`: a GPU kernel's LLVM text compiled for the host, ready to launch."""

from __future__ import annotations

from collections.abc import Callable

from heron.codegen.llvm.jit import Jit
from heron.codegen.sim import native
from heron.codegen.sim.coroutine import rewrite
from heron.codegen.sim.flatten import flatten
from heron.codegen.sim.module import globals_of, host_module
from heron.errors import HeronError
from heron.runtime.sim.code import Dims, KernelCode
from heron.runtime.sim.findings import Facts
from heron.runtime.sim.launcher import SimKernel
from heron.runtime.sim.state import MAX_THREADS, selected

LARGE_GRID = 1 << 17  # threads
#: branches back a thread may take: a second or two
STEPS = 1 << 28


def compile_kernel(
    llvm_text: str,
    name: str,
    grid: Dims,
    block: Dims,
    *,
    checks: str = "",
    facts: Facts | None = None,
    level: int | None = None,
    steps: int = STEPS,
    backwards: bool = False,
    compiler: Callable[[int], Jit] = native.compiler,
) -> SimKernel:
    """A GPU kernel compiled for the host.

    Args:
        llvm_text: the module's LLVM text before PTX (nvvm intrinsics, address spaces).
        name: the kernel.
        grid, block: launch geometry; it is compiled in.
        checks: what to look for (`Options.sim_check`). An access outside memory is found by every check.
        facts: what findings say of the kernel's HLO.
        level: LLVM optimisation level of the host code; by default 1 for large grids, else 0 (five times faster to
            compile, up to four times slower to run).
        steps: branches back one thread may take before it is taken to run for ever.
        backwards: run the blocks from the last one to the first: results must not depend on their order.
        compiler: the compiler to use, by level.

    Raises:
        HeronError: RUN070 no such kernel, RUN071 a GPU intrinsic that is not simulated, RUN072 an unknown `__nv_*`,
            RUN073 a block larger than 1024 threads.
    """
    blocks, threads = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
    if not 1 <= threads <= MAX_THREADS:
        raise HeronError("RUN073", f"a block of {threads} threads", why="a GPU allows 1 to 1024")
    if level is None:
        level = int(threads * blocks >= LARGE_GRID)
    bits = selected(checks)
    flat = flatten(llvm_text, name)
    thread = rewrite(flat, grid, block, bool(bits))
    found = globals_of(flat)
    text = host_module(flat, thread, found, grid, block, bool(bits), steps)
    jit = compiler(level)
    code = jit.add(text, f"sim.{name}", exports=["sim.launch"])
    arguments = [n for _, n in flat.arguments]
    end = native.symbols(level)["sim.end"]
    launch = code.addresses["sim.launch"]
    made = KernelCode(name, grid, block, bits, arguments, found, tuple(thread.sites), launch, end, code)
    return SimKernel(made, facts, backwards)
