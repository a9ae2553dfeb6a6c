"""Broadcasting by NumPy's rules: dimensions count from the last one, and those of size 1 repeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heron.errors import HeronError
from heron.hlo.ir.shape import row_major

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.instruction import Instruction

Dims = tuple[int, ...]


def common_dims(*dims: Sequence[int]) -> Dims | None:
    """The dimensions all of these broadcast to; None when there are none."""
    rank = max(map(len, dims), default=0)
    padded = [(1,) * (rank - len(d)) + tuple(d) for d in dims]
    found = tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*padded, strict=True))
    fits = all(n in (1, size) for d in padded for n, size in zip(d, found, strict=True))
    return found if fits else None


def broadcast_to(home: Computation, x: Instruction, dims: Sequence[int]) -> Instruction:
    """`x` repeated until it has these dimensions: a reshape that drops sizes of 1, and a broadcast, if needed.

    Raises HLO026 when it does not broadcast to them.
    """
    to, own = tuple(dims), x.shape.dims
    if own == to:
        return x
    if not x.shape.is_array or common_dims(own, to) != to:
        raise HeronError("HLO026", f"{x.shape} does not broadcast to {list(to)}")
    first = len(to) - len(own)
    kept = [d for d, size in enumerate(own) if size == to[first + d]]
    if len(kept) < len(own):
        x = home.add("reshape", (x,), row_major(x.shape.element_type, *(own[d] for d in kept)))
        if x.shape.dims == to:
            return x
    return home.add("broadcast", (x,), row_major(x.shape.element_type, *to), dimensions=tuple(first + d for d in kept))


def broadcast_together(home: Computation, operands: Sequence[Instruction]) -> list[Instruction]:
    """All operands with the dimensions they have in common. Raises HLO026 when they have none."""
    to = common_dims(*(x.shape.dims for x in operands))
    if to is None:
        raise HeronError("HLO026", f"{' and '.join(str(x.shape) for x in operands)} do not broadcast together")
    return [broadcast_to(home, x, to) for x in operands]
