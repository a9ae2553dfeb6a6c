"""`SimKernel`: a GPU kernel compiled for the host, and its launches."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.runtime.sim.code import Access, KernelCode
from heron.runtime.sim.findings import Facts, Finding, Launch
from heron.runtime.sim.shadow import Buffer, Shadow, make_rows
from heron.runtime.sim.state import CHECKS, FINDING_WORDS, MAX_FINDINGS, WRITE, Site, State

#: larger grids do not note when each of their blocks began
_MOST_TICKS = 1 << 27
_SLICE = 0.05  # seconds of native code between looks at Ctrl-C


class SimKernel:
    """A GPU kernel compiled for the host (`codegen/sim/kernel.py`).

    Args:
        code: the kernel.
        facts: what findings say of the kernel's HLO.
        backwards: run the blocks from the last one to the first: results must not depend on their order.
    """

    def __init__(self, code: KernelCode, facts: Facts | None = None, backwards: bool = False) -> None:
        self.code, self.facts, self.backwards = code, facts or Facts(), backwards
        signature = [ctypes.c_void_p] * (len(code.arguments) + 1) + [ctypes.c_int64] * 2
        self._launch = ctypes.CFUNCTYPE(None, *signature)(code.launch)
        self._end = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.end)
        self._sites = self._site_table()
        self._state = State(threads=code.threads, checks=code.checks, sites=ctypes.addressof(self._sites))
        self._lock = threading.Lock()

    @property
    def checks(self) -> int:
        """Bits of `state.CHECKS`."""
        return self.code.checks

    def fills(self, argument: int) -> bool:
        """Is that argument the kernel's to write, and never read by it? False when some pointers' origin is unknown."""
        accesses = self.code.accesses()
        kinds = {a.kind for a in accesses if a.root == self.code.arguments[argument]}
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
        """The launch that findings report on."""
        return Launch(self.code, buffers, self.facts, ticks)

    def _run(self, buffers: Sequence[Buffer], shadow: Shadow, valid: Sequence[int]) -> tuple[list[Finding], np.ndarray]:
        code = self.code
        if len(buffers) != len(code.arguments):
            raise HeronError(
                "RUN074", f"kernel '{code.name}' takes {len(code.arguments)} buffers, {len(buffers)} were given"
            )
        with self._lock:  # shared memory is a global of the module
            state, ticks = self._state, np.zeros(0, np.uint32)
            rows = None
            if self.checks:
                rows = make_rows(buffers, valid, code, shadow)
                state.rows, state.rows_count = ctypes.addressof(rows), len(buffers) + len(code.globals_)
                if self.checks & CHECKS["races"] and code.blocks <= _MOST_TICKS:
                    ticks = np.zeros(code.blocks, np.uint32)
            state.block_ticks = ticks.ctypes.data if ticks.size else None
            state.tick = shadow.tick
            state.launch_tick = shadow.tick + 1
            state.found = state.stopped = 0
            try:
                self._blocks([address for address, _ in buffers])
            finally:
                self._end(ctypes.addressof(state))
                shadow.tick = state.tick
            found = min(state.found, MAX_FINDINGS)
            words = state.findings[: found * FINDING_WORDS]
            list_of = [Finding(*words[i : i + FINDING_WORDS]) for i in range(0, len(words), FINDING_WORDS)]
            return list_of, ticks

    def _blocks(self, addresses: list[int]) -> None:
        """All blocks, as many at a time as take a moment, so that Ctrl-C is seen."""
        state, blocks, first, count = self._state, self.code.blocks, 0, 1
        while first < blocks and not state.stopped and state.found < MAX_FINDINGS:
            end = min(first + count, blocks)
            start = time.perf_counter()
            if self.backwards:
                for n in range(blocks - first, blocks - end, -1):
                    self._launch(*addresses, ctypes.addressof(state), n - 1, n)
            else:
                self._launch(*addresses, ctypes.addressof(state), first, end)
            count = max(1, min(4 * count, int(count * _SLICE / max(time.perf_counter() - start, 1e-6))))
            first = end

    def _site_table(self) -> Any:
        code = self.code
        bounds = code.checks & CHECKS["bounds"]
        rows = {name: n for n, name in enumerate([*code.arguments, *(f"@{o.name}" for o in code.globals_)])}
        table = (Site * max(len(code.sites), 1))()
        for n, a in enumerate(code.sites):
            if isinstance(a, Access):
                table[n] = Site(a.size, a.kind, a.align if bounds else 1, rows[a.root] if a.root else -1)
        return table
