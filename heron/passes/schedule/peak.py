"""Memory held over a schedule of one computation: what memory-scheduler compares its candidates by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from heron.analysis.dataflow import TRANSPARENT, Dataflow, Value, leaves
from heron.analysis.in_place import in_place_pairs
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction


@dataclass(slots=True)
class Costs:
    """What running each instruction of a computation does to memory.

    ``makes[i]``: bytes it newly holds (0 for in-place results and for views). ``reads[i]``: the values it needs.
    ``readers[v]``: how many instructions need a value. ``extra[i]``: bytes its own computations need while it runs.
    ``frees[v]``: bytes released with the value's last reader (0 for parameters and constants, and what the root keeps).
    """

    makes: dict[Instruction, int] = field(default_factory=dict)
    reads: dict[Instruction, tuple[Value, ...]] = field(default_factory=dict)
    readers: dict[Value, int] = field(default_factory=dict)
    frees: dict[Value, int] = field(default_factory=dict)
    extra: dict[Instruction, int] = field(default_factory=dict)


def costs(c: Computation, flow: Dataflow, peaks: Mapping[Computation, int]) -> Costs:
    """Costs of `c`; `peaks` are the bytes at the peak of every computation it runs."""
    found = Costs()
    at = flow.at
    kept = {v for _, v in leaves(at[c.root]) if v is not None}
    for i in c.instructions:
        values = [v for _, v in leaves(at[i]) if v is not None and v.instruction is i]
        reused = {pair.output_index for pair in in_place_pairs(i)}
        held = i.opcode not in ("parameter", "constant", "while")
        found.makes[i] = sum(v.size for v in values if v.index not in reused) if held else 0
        for v in values:
            found.frees[v] = 0 if v in kept or i.opcode in ("parameter", "constant") else v.size
        if i.opcode in TRANSPARENT:
            found.reads[i] = ()
            continue
        read = dict.fromkeys(v for o in i.operands for _, v in leaves(at[o]) if v is not None)
        handed = {in_.operand for in_ in in_place_pairs(i)}
        found.reads[i] = tuple(read)
        for v in read:
            found.readers[v] = found.readers.get(v, 0) + 1
        if handed or i.opcode == "while":  # their buffers live on in the result
            over = i.operands if i.opcode == "while" else [i.operands[n] for n in handed]
            for o in over:
                for _, v in leaves(at[o]):
                    if v is not None:
                        found.frees[v] = 0
        called = i.called if i.opcode in ("while", "conditional", "call") else ()
        found.extra[i] = max((peaks.get(k, 0) for k in called), default=0)
    return found


def peak(order: Sequence[Instruction], cost: Costs) -> int:
    """Most bytes held at once when the instructions run in that order."""
    left = dict(cost.readers)
    now = top = 0
    for i in order:
        now += cost.makes[i]
        top = max(top, now + cost.extra.get(i, 0))
        for v in cost.reads[i]:
            left[v] -= 1
            if not left[v]:
                now -= cost.frees.get(v, 0)
        if not i.users and i is not order[-1] and i.opcode not in ("parameter", "constant"):
            now -= cost.makes[i]
    return top
