"""The time of an element in kernels that go from one update of a scatter, or from one step of a scan, to the next."""

from __future__ import annotations

from math import prod

from heron.analysis.fusion.prefix_scan import is_long_scan, scan_of
from heron.hlo.facts import updates_operand
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait

#: elements that fill a vector, and from how many on threads share a row
_VECTOR, _SHARED = 16, 128
#: elements in the time of which those are done that are left over from whole vectors; one of them alone takes as long
#: as so many
_LEFT, _ALONE = 64, 16
#: times that an element takes longer in one thread than in all of them, and at most for all reasons together
_THREADS, _SLOWEST = 4.0, 16.0


def slowdown(root: Instruction) -> float:
    """Times that an element of the kernel of `root` takes longer than in vector loops of all threads.

    A kernel that goes from update to update, or from step to step, has vectors along a row. Elements left over from
    whole vectors fill a part of one, and the next row waits for its end: an exponential of 1 or 2 elements takes as
    long as outside of vectors, one of 4 a quarter of that, and one of 8 an eighth.
    """
    row = _row(root)
    if row is None:
        return 1.0
    left = row % _VECTOR
    taken = row - left + min(_ALONE * left, _LEFT)
    return min(_SLOWEST, taken / row * (_THREADS if row < _SHARED else 1.0))


def _row(root: Instruction) -> int | None:
    """The neighbours that are done at once where the kernel of `root` goes from one to the next, else None."""
    if Trait.ONE_BY_ONE in root.op.traits and updates_operand(root):
        updates = root.operands[-1].shape
        return max(1, updates.dims[-1]) if updates.rank - 1 in root.attrs["update_window_dims"] else 1
    scan = scan_of(root) if is_long_scan(root) else None
    if scan is None:
        return None
    inner = prod(root.operands[0].shape.dims[scan.dimension + 1 :])
    return inner if inner >= _VECTOR else 1
