"""Iteration spaces of kernels, and the kernels that can share one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heron.analysis.fusion.in_place import updated_parameter
from heron.analysis.fusion.in_step import used_in_step
from heron.analysis.fusion.roles import is_emitted, is_view, stays_alone
from heron.hlo import facts
from heron.hlo.facts import root_parts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.records import dataclass

#: roots of kernels that have no other outputs
_ALONE = facts.having(Trait.UPDATES_OPERAND) | {"reduce-window", "sort"}


@dataclass(frozen=True, slots=True)
class IterationSpace:
    """The dimensions whose elements a kernel visits, and those of them it reduces over (none: a plain loop)."""

    dims: tuple[int, ...]
    reduced: tuple[int, ...] = ()

    @property
    def results(self) -> int:
        """The number of result elements."""
        return prod(n for d, n in enumerate(self.dims) if d not in self.reduced)


def joinable_outputs(i: Instruction) -> list[Instruction]:
    """The outputs of a kernel that may be joined with others; nothing for an instruction that is not a kernel, is dead,
    or must stay alone."""
    if not (i.opcode == "fusion" or is_emitted(i)) or not (i.is_root or uses(i)):
        return []
    if i.control_predecessors or i.control_successors or i.attrs.get("kind") == "kCustom":
        return []
    roots = list(dict.fromkeys(map(source, root_parts(i.attrs["calls"]) if i.opcode == "fusion" else [i])))
    if hero_of(roots).opcode == "sort" or any(stays_alone(r) for r in roots):
        return []
    return [] if any(_stays_alone(r, i) or not (r.shape.is_array or r.opcode == "reduce") for r in roots) else roots


def _stays_alone(root: Instruction, i: Instruction) -> bool:
    """Whether a kernel with that root has no other outputs. An update of a computed array is a loop like others."""
    if root.opcode == "dynamic-update-slice" and i.opcode == "fusion":
        return updated_parameter(root) is not None
    return root.opcode in _ALONE


def space_of(i: Instruction) -> IterationSpace | None:
    """The iteration space of the kernel of `i`; None if it cannot be joined, or has several."""
    roots = joinable_outputs(i)
    if not roots:
        return None
    if all(r.opcode == "reduce" for r in roots):
        spaces = {IterationSpace(r.operands[0].shape.dims, tuple(sorted(r.attrs["dimensions"]))) for r in roots}
    elif any(r.opcode == "reduce" for r in roots):
        return None
    else:
        spaces = {IterationSpace(r.shape.dims) for r in roots}
    return next(iter(spaces)) if len(spaces) == 1 else None


def is_shaped(i: Instruction) -> bool:
    """Whether the kernel of a fusion may be more than one loop that computes each element by itself: then no other loop
    can be merged into it."""
    return i.attrs["kind"] == "kCustom" or any(map(facts.shapes_kernel, i.attrs["calls"].instructions))


def sums_inside(i: Instruction) -> bool:
    """Whether a fusion has reductions inside."""
    return i.opcode == "fusion" and any(x.opcode == "reduce" for x in i.attrs["calls"].instructions)


def together(one: IterationSpace, two: IterationSpace) -> IterationSpace | None:
    """The iteration space of one kernel that does both, or None.

    The spaces are equal, or one is a reduction and the other a loop over the reduced array (stored as it is read) or
    over the results (stored at the end), under any dimensions.
    """
    if one == two:
        return one
    if two.reduced:
        one, two = two, one
    if two.reduced or not one.reduced:
        return None
    return one if prod(two.dims) in (prod(one.dims), one.results) else None


def reads_at_own_index(user: Instruction, i: Instruction) -> bool:
    """Whether `user` reads the elements of `i` (or its parts) only at the index it computes or reduces."""
    for n, operand in enumerate(user.operands):
        if source(operand) is not i:
            continue
        if user.opcode == "reduce":
            if n >= len(user.operands) // 2:
                return False
        elif user.opcode != "fusion":
            if not user.op.is_elementwise or operand.shape.dims != user.shape.dims:
                return False
        elif not _used_in_step(user, user.attrs["calls"].parameters[n]):
            return False
    return True


def _same_place(i: Instruction, start: Instruction) -> bool:
    """Whether `i` computes each element from that of `start` in its place in memory."""
    in_step = is_view(i) if facts.is_view(i) else i.op.is_elementwise
    return in_step and i.shape.num_elements == start.shape.num_elements


def _sums(fusion: Instruction) -> bool:
    """Whether a fusion that may be joined has a reduction among its outputs."""
    root = fusion.fused_root
    roots = root.operands if root.opcode == "tuple" else [root]
    return any(source(r).opcode == "reduce" for r in roots) and any(
        r.opcode == "reduce" for r in joinable_outputs(fusion)
    )


def _used_in_step(user: Instruction, parameter: Instruction) -> bool:
    if not _sums(user):
        return used_in_step(parameter) is not None
    work, seen = [parameter], {parameter}
    while work:
        for below, uses_ in (i := work.pop()).users.items():
            if below.opcode == "reduce":
                if uses_ != below.operands[: len(below.operands) // 2].count(i):
                    return False
            elif not _same_place(below, parameter):
                return False
            elif below not in seen:
                seen.add(below)
                work.append(below)
    return True


def hero_of(roots: Sequence[Instruction]) -> Instruction:
    """The instruction that names a kernel: a reduce, scatter or sort before others."""
    made = [_whole(r) for r in roots]
    return next((r for r in made if facts.is_over_operand(r)), made[0])


def _whole(i: Instruction) -> Instruction:
    """The sort or reduce that `i` is a part of; otherwise `i`."""
    at = i
    while at.opcode in ("slice", "get-tuple-element"):
        at = at.operands[0]
    if at.opcode == "sort":
        return at
    return i.operands[0] if i.opcode == "get-tuple-element" else i


def source(i: Instruction) -> Instruction:
    """The instruction that computes `i`: what a get-tuple-element takes a part of."""
    return i.operands[0] if i.opcode == "get-tuple-element" else i


def uses(i: Instruction) -> list[Instruction]:
    """Instructions that read `i` or parts of it."""
    found: dict[Instruction, None] = {}
    for user in i.users:
        if user.opcode == "get-tuple-element":
            found.update(dict.fromkeys(user.users))
        else:
            found[user] = None
    return list(found)
