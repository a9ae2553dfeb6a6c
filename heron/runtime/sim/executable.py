"""A GPU program run on the CPU: its own kernels on the checked simulator, library steps by NumPy."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from heron.buffers.assignment import Slice
from heron.errors import HeronError
from heron.hlo.meaning.draws import FIRST_STATE
from heron.runtime.executable import Executable, ProgramInfo
from heron.runtime.memory import HostMemory
from heron.runtime.sim.blocks import BlockKernel
from heron.runtime.sim.findings import element_of
from heron.runtime.sim.launcher import SimKernel
from heron.runtime.sim.shadow import Shadow, Written
from heron.runtime.sim.state import CHECKS
from heron.runtime.thunks import (
    ConditionalThunk,
    CopyThunk,
    HostThunk,
    KernelThunk,
    LibraryThunk,
    RandomStateThunk,
    Sequence,
    WhileThunk,
)

Runner = SimKernel | BlockKernel


class SimExecutable(Executable):
    """Walks the thunk sequence as a GPU's stream would run it, one step after the other."""

    def __init__(self, info: ProgramInfo, sequence: Sequence, runners: dict[str, Runner]) -> None:
        super().__init__(info)
        self.sequence, self.runners = sequence, runners
        self._memory = HostMemory(info.assignment, info.signature)
        self._random = RandomState()
        self._uninit = any(r.checks & CHECKS["uninit"] for r in runners.values())

    def execute(self, arrays: list[np.ndarray], donate: bool = False) -> list[np.ndarray]:
        """Run; with checks on raises the first finding (RUN075 to RUN079)."""
        if donate:
            self._memory.need_apart(arrays)
        arenas = self._memory.borrow()
        try:
            bases, results = self._memory.bind(arrays, arenas, donate)
            written = Written(self.assignment.allocations) if self._uninit else None
            Stream(self.runners, bases, self._random, written, self.on_kernel).run(self.sequence)
        finally:
            self._memory.give_back(arenas)
        return results


class RandomState:
    """A program's random state, which all its calls, from whatever thread, advance."""

    def __init__(self) -> None:
        self._now = FIRST_STATE
        self._lock = threading.Lock()

    def take(self, delta: int) -> tuple[int, int]:
        """The low and high word of the state before it goes on."""
        with self._lock:
            now, self._now = self._now, (self._now + delta) % (1 << 128)
        return now % (1 << 64), now >> 64


class Stream:
    """One run of a sequence over bound buffers. ``written``: which bytes hold a value, when that is checked.
    ``on_kernel``: told of each kernel as it begins."""

    def __init__(
        self,
        runners: dict[str, Runner],
        bases: list[np.ndarray],
        random: RandomState,
        written: Written | None,
        on_kernel: Callable[[str], None] | None = None,
    ) -> None:
        self.runners, self.random, self.written, self.on_kernel = runners, random, written, on_kernel
        self.bases = [b.reshape(-1).view(np.uint8) for b in bases]
        self.shadow = Shadow()

    def bytes(self, s: Slice) -> np.ndarray:
        return self.bases[s.allocation][s.offset : s.offset + s.size]

    def array(self, s: Slice, dtype: np.dtype, dims: tuple[int, ...]) -> np.ndarray:
        count = int(np.prod(dims, dtype=np.int64))
        return self.bytes(s)[: count * dtype.itemsize].view(dtype).reshape(dims)

    def run(self, sequence: Sequence) -> None:
        for t in sequence:
            match t:
                case KernelThunk():
                    self.kernel(t)
                case CopyThunk():
                    self.bytes(t.target)[:] = self.bytes(t.origin)[: t.target.size]
                    if self.written is not None:
                        self.written.copy(t.origin, t.target)
                case WhileThunk(trips=int(trips)):
                    for _ in range(trips):
                        self.run(t.body)
                case WhileThunk():
                    self.run(t.condition)
                    while self.bytes(t.predicate)[0]:
                        self.run(t.body)
                        self.run(t.condition)
                case ConditionalThunk():
                    self.run(t.branches[self.branch(t)])
                case RandomStateThunk():
                    self.array(t.out, np.dtype(np.uint64), (2,))[:] = self.random.take(t.delta)
                    self.mark(t.out)
                case HostThunk():
                    self.host(t)
                case LibraryThunk():
                    self.host(t.on_host)

    def host(self, t: HostThunk) -> None:
        views = [self.array(s, *kind) for s, kind in zip(t.args, t.types, strict=True)]
        t.function(*views)
        self.mark(*t.args)

    def mark(self, *slices: Slice) -> None:
        """A library wrote these."""
        if self.written is not None:
            for s in slices:
                self.written.mark(s)

    def kernel(self, t: KernelThunk) -> None:
        if self.on_kernel is not None:
            self.on_kernel(t.kernel)
        runner = self.runners[t.kernel]
        buffers = [(self.bytes(s).ctypes.data, s.size) for s in t.args]
        if self.written is None:
            runner(buffers, self.shadow)
            return
        fresh = [n for n in range(len(t.args)) if runner.fills(n) and not _shared(t.args, n)]
        for n in fresh:  # what an earlier value left there is no value of this one
            self.written.mark(t.args[n], 0)
        runner(buffers, self.shadow, [self.written.address(s) for s in t.args])
        for n in fresh:
            self.require(t, n, runner)

    def require(self, t: KernelThunk, n: int, runner: Runner) -> None:
        """A kernel has written all of the argument. Raises RUN078."""
        name, shape = runner.facts.arguments[n]
        assert self.written is not None
        first = self.written.missing(t.args[n], shape.byte_size)
        if first is not None:
            element = element_of(shape, first)
            raise HeronError(
                "RUN078",
                f"kernel '{t.kernel}': {name} is not written whole: byte {first}"
                + (f", element [{element}]" if element else ""),
                where=runner.facts.hlo or None,
                why="no thread of the launch wrote it",
            )

    def branch(self, t: ConditionalThunk) -> int:
        if t.by_predicate:
            return 0 if self.bytes(t.selector)[0] else 1
        n = int(self.bytes(t.selector)[:4].view(np.int32)[0])
        return n if 0 <= n < len(t.branches) else len(t.branches) - 1


def _shared(args: tuple[Slice, ...], n: int) -> bool:
    return any(m != n and args[n].overlaps(other) for m, other in enumerate(args))
