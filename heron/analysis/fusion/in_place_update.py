"""Fusions whose outputs are updates of their own inputs: a kernel then writes the updates alone."""

from __future__ import annotations

from heron.analysis.fusion.fusion import Fusion, row_major
from heron.hlo.ir.instruction import Instruction


def updates(fusion: Fusion) -> tuple[dict[int, int], str]:
    """Output number -> input number of an in-place update, and why not every output is one; '' when each is."""
    found: dict[int, int] = {}
    if not row_major(fusion):
        return {}, "inputs or outputs are not row-major"
    for n, output in enumerate(fusion.outputs):
        update = updated_by(output.instruction)
        if update is None or output.part is not None:
            return {}, f"output {n} is no dynamic-update-slice"
        target = _target(update)
        if target.opcode != "parameter":
            return {}, f"'{update.name}' updates a computed value"
        reason = _other_reads(fusion, update, target)
        if reason:
            return {}, reason
        if target.number in found.values():
            return {}, f"parameter {target.number} is updated twice"
        found[n] = target.number
    return found, "" if found else "no output"


def _is_view(i: Instruction) -> bool:
    """Whether each element of `i` is its operand's at the same place in memory."""
    if i.opcode not in ("bitcast", "reshape", "copy"):
        return False
    shapes = (i.shape, i.operands[0].shape)
    return shapes[0].element_type is shapes[1].element_type and all(
        s.layout is None or s.layout.is_default for s in shapes
    )


def _source(i: Instruction) -> Instruction:
    while _is_view(i):
        i = i.operands[0]
    return i


def _target(update: Instruction) -> Instruction:
    """The array whose memory an update changes; a copy is one of its own."""
    i = update.operands[0]
    while i.opcode != "copy" and _is_view(i):
        i = i.operands[0]
    return i


def updated_by(i: Instruction) -> Instruction | None:
    i = _source(i)
    return i if i.opcode == "dynamic-update-slice" else None


def _other_reads(fusion: Fusion, update: Instruction, target: Instruction) -> str:
    """Why the target must keep its old elements during the update; '' when it need not.

    Reading the very elements that are written, each before it is written, is allowed: a dynamic-slice at the same
    place that reaches the update through elementwise ops only.
    """
    same_place = _elementwise_below(update.operands[1])
    pending = [target]
    while pending:
        i = pending.pop()
        for user, uses in i.users.items():
            if user is update and uses == 1 and _target(update) is target:
                continue
            if _is_view(user):
                pending.append(user)
                continue
            slices = user.opcode == "dynamic-slice" and user.operands[1:] == update.operands[2:]
            if slices and user.shape.dims == update.operands[1].shape.dims:
                if user in same_place and all(u in same_place or u is update for u in user.users):
                    continue
            return f"'{user.name}' reads parameter {target.number} elsewhere"
    if len(fusion.outputs) > 1 and len(target.users) > 1:
        return f"parameter {target.number} is read by several outputs"
    return ""


def _elementwise_below(i: Instruction) -> set[Instruction]:
    """The instructions computed at the update's own index: elementwise ops and the leaves they end in."""
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
