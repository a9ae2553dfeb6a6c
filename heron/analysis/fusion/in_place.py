"""In-place updates: which operand's buffer an op writes its result into."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import ShapeIndex

#: ops that overwrite part of their first operand(s)
UPDATES = frozenset({"dynamic-update-slice", "scatter"})
_VIEWS = frozenset({"bitcast", "reshape"})
_SAME_PLACE = _VIEWS | {"copy"}


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
    several = root.opcode == "tuple"
    found: list[InPlace] = []
    for n, part in enumerate(root.operands if several else [root]):
        index: ShapeIndex = (n,) if several else ()
        part = _through(part)
        if part.opcode == "scatter" and part.shape.is_tuple:
            updates = [(part, k, (*index, k)) for k in range(len(part.operands) // 2)]
        elif part.opcode in UPDATES:
            updates = [(part, 0, index)]
        else:
            return []  # a kernel that computes other outputs too writes whole arrays
        for update, operand, output in updates:
            parameter = updated_parameter(update, operand, several)
            if parameter is None or any(p.operand == parameter.attrs["number"] for p in found):
                return []
            found.append(InPlace(parameter.attrs["number"], (), output))
    return found


def updated_parameter(update: Instruction, operand: int = 0, alone: bool = False) -> Instruction | None:
    """The fusion parameter whose buffer an update inside a fusion may overwrite; None when there is none.

    It reaches the update through views, and nothing else reads it, but (unless `alone`) slices at the very place of the
    update that reach it elementwise: each element is read before it is written. An update of a copy leaves what is
    copied as it is.
    """
    below: Instruction = update
    target = update.operands[operand]
    while target.opcode in _VIEWS:
        if len(target.users) != 1:
            return None
        below, target = target, target.operands[0]
    if target.opcode != "parameter" or target.users.get(below) != 1:
        return None
    others = [u for u in target.users if u is not below]
    if others and (alone or update.opcode == "scatter" or below is not update):
        return None
    if others:
        in_step = _elementwise_above(update.operands[1])
        if not all(_slices_in_step(u, update, in_step) for u in others):
            return None
    return target


def _slices_in_step(i: Instruction, update: Instruction, in_step: set[Instruction]) -> bool:
    return (
        i.opcode == "dynamic-slice"
        and i.operands[1:] == update.operands[2:]
        and i.shape.dims == update.operands[1].shape.dims
        and i in in_step
        and all(u in in_step or u is update for u in i.users)
    )


def _elementwise_above(i: Instruction) -> set[Instruction]:
    """The instructions computed at `i`'s own index: elementwise ops and the leaves they end in."""
    found: set[Instruction] = set()
    stack = [i]
    while stack:
        at = stack.pop()
        if at in found or at.shape.dims != i.shape.dims:
            continue
        found.add(at)
        if at.op.is_elementwise:
            stack.extend(at.operands)
    return found


def _through(i: Instruction) -> Instruction:
    """The instruction whose elements, in the same places, a view shows."""
    while i.opcode in _SAME_PLACE:
        i = i.operands[0]
    return i
