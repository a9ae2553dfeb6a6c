"""Scans written as reduce-windows: windows along one dimension that all begin at its first, or end at its last element.

That is how cumsum, cumprod, cummax and their kin come in. Taken literally such a reduce-window does n²/2 steps; one
pass along the dimension does it in n.
"""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import WindowDim
from heron.records import dataclass

#: scans of more elements than this are done in one pass, or cut up where that is not possible; GPU threads do shorter
#: ones alone
SHORT = 32


@dataclass(frozen=True, slots=True)
class Scan:
    """Result k along ``dimension`` combines source elements 0 to k - delay: with ``reverse``, k + delay to the last.

    ``source``, ``results``: how many there are of each along the dimension. An inclusive scan has ``delay`` 0, an
    exclusive one 1.
    """

    dimension: int
    reverse: bool
    delay: int
    source: int
    results: int

    @property
    def phases(self) -> tuple[int, int, int]:
        """The numbers of results before the first element, with a new element each, and after the last element."""
        if self.reverse:
            before = min(self.results + self.delay - self.source, self.results)
            return before, self.results - before, 0
        before = min(self.delay, self.results)
        during = min(self.results, self.source + self.delay) - before
        return before, during, self.results - before - during


def scan_of(i: Instruction) -> Scan | None:
    """The scan that a reduce-window is, or None when it is none (or only looks at one element)."""
    if i.opcode != "reduce-window":
        return None
    window = i.window or ()  # a scalar has none
    moving = [d for d, w in enumerate(window) if not _is_trivial(w)]
    if len(moving) != 1:
        return None
    d = moving[0]
    w, n = window[d], i.operands[0].shape.dims[d]
    if w.stride != 1 or w.base_dilation != 1 or w.window_dilation != 1 or w.reversal:
        return None
    m = w.output_size(n)
    # window k covers [k - pad_low, k - pad_low + size - 1]
    delay = w.pad_low - w.size + 1
    if m and w.pad_low >= m - 1 and delay >= 0:
        return Scan(d, False, delay, n, m)
    # the last result must not have more than one element, or a pass from the end would have to skip results
    if m and w.size - w.pad_low >= n and w.pad_low <= 0 and m - w.pad_low >= n:
        return Scan(d, True, -w.pad_low, n, m)
    return None


def is_long_scan(i: Instruction) -> bool:
    """Whether a reduce-window is a scan that is better done in one pass."""
    found = scan_of(i)
    return found is not None and min(found.source, found.results) > SHORT


def _is_trivial(w: WindowDim) -> bool:
    return w.size == w.stride == w.base_dilation == 1 and w.pad_low == w.pad_high == 0
