"""In-place updates: which operand's buffer an op writes its result into."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.instruction import Instruction
from heron.hlo.shape import ShapeIndex

#: ops that overwrite part of their first operand(s)
UPDATES = frozenset({"dynamic-update-slice", "scatter"})
_SAME_PLACE = frozenset({"bitcast", "reshape"})


@dataclass(frozen=True, slots=True)
class InPlace:
    """Part `output_index` of the result is operand `operand`'s part `operand_index`, changed in place."""

    operand: int
    operand_index: ShapeIndex
    output_index: ShapeIndex


def in_place_pairs(i: Instruction) -> list[InPlace]:
    """Pairs of operand and output that must share a buffer when `i` runs.

    dynamic-update-slice and scatter update operand 0 (scatter: operands 0…n-1); a fusion whose root is one of these
    updates the parameter that is nothing but that operand; a custom call says so itself.
    """
    opcode = i.opcode
    if opcode == "fusion":
        return _of_fusion(i)
    if opcode == "dynamic-update-slice":
        return [InPlace(0, (), ())]
    if opcode == "scatter":
        return [InPlace(n, (), (n,) if i.shape.is_tuple else ()) for n in range(len(i.operands) // 2)]
    if opcode == "custom-call":
        return [
            InPlace(operand, tuple(operand_index), tuple(output_index))
            for output_index, operand, operand_index in i.attrs.get("output_to_operand_aliasing") or ()
        ]
    return []


def _of_fusion(i: Instruction) -> list[InPlace]:
    root = i.attrs["calls"].root
    if root.opcode == "tuple":
        roots = [((n,), part) for n, part in enumerate(root.operands)]
    else:
        roots = [((), root)]
    found: list[InPlace] = []
    for index, part in roots:
        part = _through(part)
        if part.opcode == "get-tuple-element" and part.operands[0].opcode == "scatter":
            updates = [(part.operands[0], part.attrs["index"], index)]
        elif part.opcode == "scatter" and part.shape.is_tuple:
            updates = [(part, n, (*index, n)) for n in range(len(part.operands) // 2)]
        elif part.opcode in UPDATES:
            updates = [(part, 0, index)]
        else:
            continue
        for update, operand, output in updates:
            parameter = updated_parameter(update, operand)
            if parameter is not None and len(part.users) <= 1:
                found.append(InPlace(parameter.attrs["number"], (), output))
    return found


def updated_parameter(update: Instruction, operand: int = 0) -> Instruction | None:
    """The fusion parameter whose buffer an update inside a fusion may overwrite: reached through reshapes only and
    read by nothing else; None when there is none."""
    below: Instruction = update
    target = update.operands[operand]
    while target.opcode in _SAME_PLACE:
        if len(target.users) != 1:
            return None
        below, target = target, target.operands[0]
    if target.opcode != "parameter" or target.users.get(below) != 1 or len(target.users) != 1:
        return None
    return target


def _through(i: Instruction) -> Instruction:
    while i.opcode in ("bitcast", "reshape") and len(i.operands[0].users) == 1:
        i = i.operands[0]
    return i
