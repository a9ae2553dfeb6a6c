"""A kernel's HLO in a line, for messages of devices and of the simulator."""

from __future__ import annotations

from heron.hlo.facts import is_given
from heron.hlo.ir.instruction import Instruction

_SHOWN = 6  # instructions of a fusion that are named


def story(i: Instruction) -> str:
    """An instruction, the ops inside it, and the user's name of them."""
    inside = [i]
    if i.opcode == "fusion":
        inside = [o for o in i.calls.instructions if not (is_given(o) or o.opcode == "tuple")]
    names = [o.name for o in inside[:_SHOWN]] + (["…"] if len(inside) > _SHOWN else [])
    line = f"HLO {i.name}: {', '.join(names)}"
    origins = dict.fromkeys(o.metadata.op_name for o in reversed(inside) if o.metadata and o.metadata.op_name)
    return line + (f", from {next(iter(origins))}" if origins else "")
