"""In-place updates: the operand's buffer that an op writes its result into.

`in_place_pairs` are the pairs of operand and output that must share a buffer. `updates` are those of a fusion all of
whose outputs are updates of its inputs: its kernel writes the updated elements and no others.
"""

from __future__ import annotations

from heron.analysis.fusion.fusion import Fusion, row_major
from heron.hlo.facts import is_view, keeps_order, root_parts, updated_operands, updates_operand
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import ShapeIndex
from heron.records import dataclass


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
    if i.opcode == "fusion":
        return _of_fusion(i)
    if i.opcode == "custom-call":
        return [
            InPlace(operand, tuple(operand_index), tuple(output_index))
            for output_index, operand, operand_index in i.attrs.get("output_to_operand_aliasing") or ()
        ]
    return [InPlace(n, (), (n,) if i.shape.is_tuple else ()) for n in range(len(updated_operands(i)))]


def _of_fusion(i: Instruction) -> list[InPlace]:
    body = i.attrs["calls"]
    several = body.root.opcode == "tuple"
    found: list[InPlace] = []
    for n, part in enumerate(root_parts(body)):
        index: ShapeIndex = (n,) if several else ()
        while keeps_order(part):
            part = part.operands[0]
        if not updates_operand(part):
            return []  # a kernel that computes other outputs too writes whole arrays
        for operand in range(len(updated_operands(part)) if part.shape.is_tuple else 1):
            parameter = updated_parameter(part, operand, several)
            if parameter is None or any(p.operand == parameter.attrs["number"] for p in found):
                return []
            found.append(InPlace(parameter.attrs["number"], (), (*index, operand) if part.shape.is_tuple else index))
    return found


def updated_parameter(update: Instruction, operand: int = 0, alone: bool = False) -> Instruction | None:
    """The fusion parameter whose buffer an update inside a fusion may overwrite; None when there is none.

    It reaches the update through views, and nothing else reads it, but (unless `alone`) slices at the very place of the
    update that reach it elementwise: each element is read before it is written. An update of a copy leaves what is
    copied as it is.
    """
    below: Instruction = update
    target = update.operands[operand]
    while is_view(target):
        if len(target.users) != 1:
            return None
        below, target = target, target.operands[0]
    if target.opcode != "parameter" or target.users.get(below) != 1:
        return None
    others = [u for u in target.users if u is not below]
    if others and (alone or update.opcode == "scatter" or below is not update):
        return None
    if others:
        same_place = _elementwise_above(update.operands[1])
        if not all(_reads_same_place(u, update, same_place) for u in others):
            return None
    return target


def _reads_same_place(i: Instruction, update: Instruction, same_place: set[Instruction]) -> bool:
    """Whether `i` slices the elements that are updated and is used for them alone (`same_place`)."""
    return (
        i.opcode == "dynamic-slice"
        and i.operands[1:] == update.operands[2:]
        and i.shape.dims == update.operands[1].shape.dims
        and i in same_place
        and all(u in same_place or u is update for u in i.users)
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


# -- fusions of updates ------------------------------------------------------------------------------------------------


def updates(fusion: Fusion) -> tuple[dict[int, int], str]:
    """Output number -> input number of an in-place update, and why not every output is one; '' when each is."""
    found: dict[int, int] = {}
    if not row_major(fusion):
        return {}, "inputs or outputs are not row-major"
    for n, output in enumerate(fusion.outputs):
        update = updated_by(output.instruction)
        if update is None or output.part is not None:
            return {}, f"output {n} is no dynamic-update-slice"
        target = update.operands[0]
        while _is_same_array(target) and target.opcode != "copy":
            target = target.operands[0]
        if target.opcode != "parameter":
            return {}, f"'{update.name}' updates a computed value"
        reason = _other_reads(fusion, update, target)
        if reason:
            return {}, reason
        if target.number in found.values():
            return {}, f"parameter {target.number} is updated twice"
        found[n] = target.number
    return found, "" if found else "no output"


def updated_by(output: Instruction) -> Instruction | None:
    """The dynamic-update-slice that an output is, or is a view or copy of."""
    while _is_same_array(output):
        output = output.operands[0]
    return output if output.opcode == "dynamic-update-slice" else None


def _is_same_array(i: Instruction) -> bool:
    """Whether each element of `i` is its operand's at the same place in memory."""
    if not keeps_order(i):
        return False
    shapes = (i.shape, i.operands[0].shape)
    return shapes[0].element_type is shapes[1].element_type and all(
        s.layout is None or s.layout.is_default for s in shapes
    )


def _other_reads(fusion: Fusion, update: Instruction, target: Instruction) -> str:
    """Why the target must keep its old elements during the update; '' when it need not.

    Reading the very elements that are written, each before it is written, is allowed: a dynamic-slice at the same
    place that reaches the update through elementwise ops only.
    """
    same_place = _elementwise_above(update.operands[1])
    pending = [target]
    while pending:
        i = pending.pop()
        for user, uses in i.users.items():
            if user is update and uses == 1 and update.operands[0] is i:
                continue
            if _is_same_array(user):
                pending.append(user)
            elif not _reads_same_place(user, update, same_place):
                return f"'{user.name}' reads parameter {target.number} elsewhere"
    if len(fusion.outputs) > 1 and len(target.users) > 1:
        return f"parameter {target.number} is read by several outputs"
    return ""
