"""Memory of a computation's values on one device, before anything is fused or scheduled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heron.hlo.ir.instruction import Instruction


def peak_bytes(
    order: Sequence[Instruction], size: Callable[[Instruction], float], extra: Callable[[Instruction], float]
) -> float:
    """The most bytes that a device has at a time when it runs the instructions in this order.

    `size` gives the bytes of a value, `extra` those that an instruction needs beside operands and result.
    """
    last: dict[Instruction, Instruction] = {}
    for i in order:
        last.update(dict.fromkeys(i.operands, i))
    alive = peak = 0.0
    sizes: dict[Instruction, float] = {}
    for i in order:
        sizes[i] = size(i)
        alive += sizes[i]
        peak = max(peak, alive + extra(i))
        alive -= sum([sizes[o] for o in set(i.operands) if last[o] is i and o in sizes])
    return peak
