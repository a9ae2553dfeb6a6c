"""`SimKernel`: a GPU kernel compiled for the host, and its launches."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from heron.codegen.llvm.jit import Jit
from heron.errors import HeronError
from heron.runtime.sim import native
from heron.runtime.sim.accesses import Access
from heron.runtime.sim.coroutine import rewrite
from heron.runtime.sim.findings import Facts, Finding, Launch
from heron.runtime.sim.flatten import flatten
from heron.runtime.sim.module import Dims, host_module, objects
from heron.runtime.sim.shadow import Buffer, Shadow, make_rows
from heron.runtime.sim.state import CHECKS, FINDING_WORDS, MAX_FINDINGS, MAX_THREADS, WRITE, Site, State

LARGE_GRID = 1 << 17  # threads
#: branches back a thread may take: a second or two
STEPS = 1 << 28
#: larger grids do not note when each of their blocks began
_MOST_TICKS = 1 << 27
_SLICE = 0.05  # seconds of native code between looks at Ctrl-C


def selected(checks: str) -> int:
    """The bits of ``""``, ``"all"`` or names of checks separated by commas."""
    names = CHECKS if checks == "all" else [name for name in checks.split(",") if name]
    return sum(CHECKS[name] for name in names)


class SimKernel:
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

    def __init__(
        self,
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
    ) -> None:
        self.name, self.grid, self.block = name, grid, block
        self.checks, self.facts, self.backwards = selected(checks), facts or Facts(), backwards
        self.blocks = grid[0] * grid[1] * grid[2]
        threads = block[0] * block[1] * block[2]
        if not 1 <= threads <= MAX_THREADS:
            raise HeronError("RUN073", f"a block of {threads} threads", why="a GPU allows 1 to 1024")
        self.level = int(threads * self.blocks >= LARGE_GRID) if level is None else level
        flat = flatten(llvm_text, name)
        check = bool(self.checks)
        self.thread = rewrite(flat, grid, block, check)
        self.arguments = [n for _, n in flat.arguments]
        self.objects = objects(flat)
        self.text = host_module(flat, self.thread, self.objects, grid, block, check, steps)
        compiled = compiler(self.level).add(self.text, f"sim.{name}", exports=["sim.launch"])
        self._code = compiled  # machine code lives as long as this
        self.timing = compiled.timing
        signature = [ctypes.c_void_p] * (len(self.arguments) + 1) + [ctypes.c_int64] * 2
        self._launch = ctypes.CFUNCTYPE(None, *signature)(compiled.addresses["sim.launch"])
        self._sites = self._site_table()
        self._state = State(threads=threads, checks=self.checks, sites=ctypes.addressof(self._sites))
        self._lock = threading.Lock()

    def fills(self, argument: int) -> bool:
        """Is that argument the kernel's to write, and never read by it? False when some pointers' origin is unknown."""
        accesses = self.thread.accesses()
        kinds = {a.kind for a in accesses if a.root == self.arguments[argument]}
        return argument in self.facts.outputs and all(a.root for a in accesses) and kinds <= {WRITE}

    def run(
        self, buffers: Sequence[Buffer], shadow: Shadow | None = None, valid: Sequence[int] | None = None
    ) -> list[Finding]:
        """`findings`, without raising: see `__call__`."""
        return self._run(buffers, shadow or Shadow(), valid or [0] * len(buffers))[0]

    def __call__(
        self, buffers: Sequence[Buffer], shadow: Shadow | None = None, valid: Sequence[int] | None = None
    ) -> None:
        """Run the grid.

        Args:
            buffers: (address, bytes), one per kernel argument.
            shadow: memory for race checks, used again from launch to launch.
            valid: per argument the address of a byte for each of its bytes, 0 where it holds no value yet; or 0.

        Raises:
            HeronError: with the first finding: RUN075 (bounds), RUN076 (race), RUN077 (divergence), RUN078 (use of
                a value nobody wrote), RUN079 (a thread that runs for ever). RUN074: a wrong number of buffers.
        """
        findings, ticks = self._run(buffers, shadow or Shadow(), valid or [0] * len(buffers))
        if findings:
            raise self.launch(buffers, ticks).error(findings)

    def launch(self, buffers: Sequence[Buffer], ticks: np.ndarray) -> Launch:
        """What findings are told of."""
        return Launch(
            self.name, self.grid, self.block, self.thread, self.arguments, self.objects, buffers, self.facts, ticks
        )

    def _run(self, buffers: Sequence[Buffer], shadow: Shadow, valid: Sequence[int]) -> tuple[list[Finding], np.ndarray]:
        if len(buffers) != len(self.arguments):
            raise HeronError(
                "RUN074", f"kernel '{self.name}' takes {len(self.arguments)} buffers, {len(buffers)} were given"
            )
        with self._lock:  # shared memory is a global of the module
            state, ticks = self._state, np.zeros(0, np.uint32)
            rows = None
            if self.checks:
                accesses = self.thread.accesses()
                rows = make_rows(buffers, valid, self.arguments, self.objects, accesses, self.checks, shadow)
                state.rows, state.rows_count = ctypes.addressof(rows), len(buffers) + len(self.objects)
                if self.checks & CHECKS["races"] and self.blocks <= _MOST_TICKS:
                    ticks = np.zeros(self.blocks, np.uint32)
            state.block_ticks = ticks.ctypes.data if ticks.size else None
            state.tick = shadow.tick
            state.launch_tick = shadow.tick + 1
            state.found = state.stopped = 0
            try:
                self._blocks([address for address, _ in buffers])
            finally:
                native.end_launch(ctypes.addressof(state), self.level)
                shadow.tick = state.tick
            found = min(state.found, MAX_FINDINGS)
            words = state.findings[: found * FINDING_WORDS]
            list_of = [Finding(*words[i : i + FINDING_WORDS]) for i in range(0, len(words), FINDING_WORDS)]
            return list_of, ticks

    def _blocks(self, addresses: list[int]) -> None:
        """All blocks, as many at a time as take a moment, so that Ctrl-C is seen."""
        state, first, count = self._state, 0, 1
        while first < self.blocks and not state.stopped and state.found < MAX_FINDINGS:
            end = min(first + count, self.blocks)
            start = time.perf_counter()
            if self.backwards:
                for n in range(self.blocks - first, self.blocks - end, -1):
                    self._launch(*addresses, ctypes.addressof(state), n - 1, n)
            else:
                self._launch(*addresses, ctypes.addressof(state), first, end)
            count = max(1, min(4 * count, int(count * _SLICE / max(time.perf_counter() - start, 1e-6))))
            first = end

    def _site_table(self) -> Any:
        bounds = self.checks & CHECKS["bounds"]
        rows = {name: n for n, name in enumerate([*self.arguments, *(f"@{o.name}" for o in self.objects)])}
        table = (Site * max(len(self.thread.sites), 1))()
        for n, a in enumerate(self.thread.sites):
            if isinstance(a, Access):
                table[n] = Site(a.size, a.kind, a.align if bounds else 1, rows[a.root] if a.root else -1)
        return table
