"""Findings of a checked run in words: which kernel, both accesses, blocks and threads, array elements, HLO ops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.shape import Shape
from heron.records import dataclass
from heron.runtime.sim import state
from heron.runtime.sim.code import Dims, Global, KernelCode
from heron.runtime.sim.state import ATOMIC, ATOMIC_WRITE, READ, WRITE

_KINDS = {READ: "read", WRITE: "write", ATOMIC: "atomic", ATOMIC_WRITE: "atomic write"}

_CODES = {
    state.DIVERGED_BARRIER: "RUN077",
    state.EARLY_EXIT: "RUN077",
    state.DIVERGED_WARP: "RUN077",
    state.OWN_LANE: "RUN077",
    state.ABSENT_LANE: "RUN077",
    state.STEPS: "RUN079",
    state.OUT_OF_BOUNDS: "RUN075",
    state.MISALIGNED: "RUN075",
    state.RACE: "RUN076",
    state.UNINITIALISED: "RUN078",
}

_WHY = {
    state.DIVERGED_BARRIER: "every thread of a block must reach the same barrier",
    state.EARLY_EXIT: "every thread of a block must reach every barrier; on a GPU this hangs or is undefined",
    state.DIVERGED_WARP: "every lane named in the mask must execute the same warp instruction",
    state.OWN_LANE: "a lane that takes part must be in the mask it gives",
    state.ABSENT_LANE: "what a lane outside the mask holds is undefined",
    state.OUT_OF_BOUNDS: "on a GPU it reads or damages other memory, or stops the program",
    state.MISALIGNED: "a GPU stops the program at a misaligned access",
    state.UNINITIALISED: "what is there is whatever was left in that memory",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a kernel: a line about its HLO, each argument's name and shape, the arguments it must fill."""

    hlo: str = ""
    arguments: tuple[tuple[str, Shape], ...] = ()
    outputs: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a run found. ``other`` is what the kind makes it: a thread, an access, an alignment."""

    kind: int
    block: int
    thread: int
    row: int
    offset: int
    size: int
    other: int
    site: int


@dataclass(frozen=True, slots=True)
class Launch:
    """The launch that findings report on: the kernel, its arguments, and the start of each of its blocks."""

    code: KernelCode
    buffers: Sequence[tuple[int, int]]
    facts: Facts
    block_ticks: np.ndarray

    def error(self, findings: Sequence[Finding]) -> HeronError:
        """The first finding, and how many others there are at other places in the code."""
        first = findings[0]
        places = {(f.kind, f.site) for f in findings}
        others = len(places) - 1
        more = f" (and {others} other place{'s' * (others > 1)})" if others else ""
        lines = [f"{self._kind(first)}{self._where(first.block, first.thread)}: {self.code.source(first.site)}"]
        lines += self._second(first)
        if self.facts.hlo:
            lines.append(self.facts.hlo)
        return HeronError(
            _CODES[first.kind],
            f"kernel '{self.code.name}': {self._what(first)}{more}",
            where="\n     ".join(lines),
            why=self._why(first),
        )

    def _kind(self, f: Finding) -> str:
        access = self.code.access(f.site)
        return f"{_KINDS[access.kind]} by " if access is not None else ""

    def _where(self, block: int, thread: int) -> str:
        return f"block {place(block, self.code.grid)} thread {place(thread, self.code.block)}"

    def _second(self, f: Finding) -> list[str]:
        """The line about the other access or thread."""
        if f.kind == state.RACE:
            site = self.code.access(f.other >> 42 & 0x3FFFFF)
            assert site is not None
            block, thread = self._block_at(f.other & 0xFFFFFFFF), f.other >> 32 & 1023
            if block is not None:
                where = self._where(block, thread)
            else:
                where = f"this or an earlier block, thread {place(thread, self.code.block)}"
            return [f"{_KINDS[site.kind]} by {where}: {site.text}"]
        if f.kind in (state.DIVERGED_BARRIER, state.DIVERGED_WARP):
            return [f"{self._where(f.block, f.other)}: {self.code.source(f.offset) or 'has ended'}"]
        return []

    def _block_at(self, tick: int) -> int | None:
        """The block that ran at a tick; None when the grid was too large to note it."""
        begun = self.block_ticks[: np.count_nonzero(self.block_ticks)]
        return int(np.searchsorted(begun, tick, "right")) - 1 if begun.size else None

    def _what(self, f: Finding) -> str:
        other = place(max(f.other, 0), self.code.block)
        match f.kind:
            case state.DIVERGED_BARRIER:
                return f"threads wait at different barriers (thread {other} at another one)"
            case state.EARLY_EXIT:
                return f"a thread waits at a barrier that thread {other} never reached"
            case state.DIVERGED_WARP:
                return f"lanes of a warp synchronise, but thread {other} is elsewhere"
            case state.OWN_LANE:
                return f"a lane synchronises with mask {f.offset:#x}, which does not name it"
            case state.ABSENT_LANE:
                return f"a shuffle reads the value of thread {other}, which does not take part"
            case state.STEPS:
                return "a thread runs for ever"
            case state.MISALIGNED:
                return f"an access of {f.size} bytes is not aligned to {f.other}: {self._element(f)}"
            case state.RACE:
                return f"race on {self._element(f)}"
            case state.UNINITIALISED:
                return f"a value is used that nobody wrote: {self._element(f)}"
            case _:
                return f"access of {f.size} bytes outside of memory: {self._element(f)}"

    def _why(self, f: Finding) -> str:
        if f.kind == state.STEPS:
            return "it made more steps than any kernel should (`SimKernel.steps`)"
        if f.kind != state.RACE:
            return _WHY[f.kind]
        if self._block_at(f.other & 0xFFFFFFFF) not in (None, f.block):
            return "nothing orders the threads of two blocks"
        return "no barrier orders the two threads, and one of them writes"

    def _element(self, f: Finding) -> str:
        """Memory, offset and array element in words."""
        if f.row < 0:
            return f"address {f.offset:#x} is in no buffer"
        if f.row < len(self.buffers):
            label = f"argument {f.row}"
            shape = None
            if f.row < len(self.facts.arguments):
                name, shape = self.facts.arguments[f.row]
                label += f" ({name})"
            length = self.buffers[f.row][1]
            element = "" if shape is None else element_of(shape, f.offset)
        else:
            o = self.code.globals_[f.row - len(self.buffers)]
            label, length = f"{'shared' if o.shared else 'constant'} '{o.name}'", o.size
            element = element_of_global(o, f.offset)
        inside = 0 <= f.offset < length
        return f"{label} at byte {f.offset} of {length}" + (f", element [{element}]" if element and inside else "")


def place(linear: int, dims: Dims) -> str:
    """A linear number as (x, y, z)."""
    x, y = linear % dims[0], linear // dims[0] % dims[1]
    return f"({x}, {y}, {linear // (dims[0] * dims[1])})"


def element_of(shape: Shape, offset: int) -> str:
    """The index of the array element at that byte, as HLO counts; '' when elements are no whole bytes."""
    itemsize = shape.element_type.dtype.itemsize
    if not shape.is_array or shape.element_type.bits < 8:
        return ""
    order = tuple(reversed(shape.layout.minor_to_major)) if shape.layout is not None else tuple(range(shape.rank))
    sizes = tuple(shape.dims[d] for d in order)
    if offset // itemsize >= np.prod(sizes, dtype=np.int64):
        return ""
    index = [0] * shape.rank
    for d, i in zip(order, np.unravel_index(offset // itemsize, sizes), strict=True):
        index[d] = int(i)
    return ", ".join(map(str, index))


def element_of_global(found: Global, offset: int) -> str:
    """The index of a global's element at that byte: of an array of 4 by 8 floats, byte 36 → ``1, 1``; '' for none."""
    if not found.dims or offset // found.item >= np.prod(found.dims, dtype=np.int64):
        return ""
    return ", ".join(str(int(i)) for i in np.unravel_index(offset // found.item, found.dims))
