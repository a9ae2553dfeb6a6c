"""Traffic: bytes an instruction reads and writes when it runs as one kernel, at the least."""

from __future__ import annotations

from heron.analysis.fusion.in_place import updated_parameter
from heron.hlo.facts import parts_of, reads_part, root_parts, updated_operands, updates_operand
from heron.hlo.ir.instruction import Instruction


def bytes_read(i: Instruction) -> int:
    """Bytes of operands read when `i` runs as one kernel: each distinct operand once, of slices only what is used."""
    if i.opcode == "fusion":
        return sum(_parameter_bytes(p) for p in i.attrs["calls"].parameters)
    total = sum(o.shape.total_bytes for o in dict.fromkeys(i.operands))
    if reads_part(i):
        total += min(0, i.shape.total_bytes - i.operands[0].shape.total_bytes)
    return total - sum(o.shape.total_bytes for o in updated_operands(i))


def bytes_written(i: Instruction) -> int:
    """Bytes of the result written; of an in-place update only the update's."""
    total = 0
    for part in root_parts(i.attrs["calls"]) if i.opcode == "fusion" else parts_of(i):
        if part.opcode == "dynamic-update-slice":
            total += part.operands[1].shape.total_bytes
        elif part.opcode == "scatter" and not (i.opcode == "fusion" and updated_parameter(part) is None):
            total += sum(o.shape.total_bytes for o in part.operands[len(part.operands) // 2 + 1 :])
        else:
            total += part.shape.total_bytes
    return total


def _parameter_bytes(p: Instruction) -> int:
    """Of a fusion's parameter: all of it, or what its users pick out when all of them pick."""
    if p.users and all(reads_part(u) and u.operands[0] is p for u in p.users):
        return min(p.shape.total_bytes, sum(u.shape.total_bytes for u in p.users))
    if all(updates_operand(u) and u.operands[0] is p for u in p.users):
        return 0
    return p.shape.total_bytes
