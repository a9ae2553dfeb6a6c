"""What a kernel runs over, and which kernels can run over it together."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from heron.analysis.fusion.in_place import updated_parameter
from heron.analysis.fusion.in_step import used_in_step
from heron.hlo.ir.instruction import Instruction
from heron.passes.fusion.model.build import hero_of
from heron.passes.fusion.model.cluster import Cluster, source, uses
from heron.passes.fusion.model.hints import stays_alone
from heron.passes.fusion.model.kinds import is_emitted, is_view

_ALONE = frozenset({"scatter", "dynamic-update-slice", "reduce-window", "sort"})
#: ops that kernels are shaped after, or that are worth computing once only
_SHAPED = _ALONE | {"reduce", "transpose", "concatenate", "dot"}


@dataclass(frozen=True, slots=True)
class Walk:
    """The dimensions whose elements a kernel visits, and those of them it reduces over (none: a plain loop)."""

    dims: tuple[int, ...]
    reduced: tuple[int, ...] = ()

    @property
    def results(self) -> int:
        """How many elements come out."""
        return prod(n for d, n in enumerate(self.dims) if d not in self.reduced)


def outputs_of(i: Instruction) -> list[Instruction]:
    """What a kernel computes, when it may be joined with others; nothing for what is no kernel, is dead, or must stay
    alone."""
    if not (i.opcode == "fusion" or is_emitted(i)) or not (i.is_root or uses(i)):
        return []
    if i.control_predecessors or i.control_successors or i.attrs.get("kind") == "kCustom":
        return []
    root = i.fused_root if i.opcode == "fusion" else i
    roots = list(dict.fromkeys(map(source, root.operands if root.opcode == "tuple" else [root])))
    if hero_of(roots).opcode == "sort" or any(stays_alone(r) for r in roots):
        return []
    return [] if any(_stays_alone(r, i) or not (r.shape.is_array or r.opcode == "reduce") for r in roots) else roots


def _stays_alone(root: Instruction, i: Instruction) -> bool:
    """Whether a kernel with that root does nothing else. An update of what it computes is a loop like others."""
    if root.opcode == "dynamic-update-slice" and i.opcode == "fusion":
        return updated_parameter(root) is not None
    return root.opcode in _ALONE


def walk_of(i: Instruction) -> Walk | None:
    """How the kernel of `i` runs; None for what cannot be joined, or does several things."""
    roots = outputs_of(i)
    if not roots:
        return None
    if all(r.opcode == "reduce" for r in roots):
        walks = {Walk(r.operands[0].shape.dims, tuple(sorted(r.attrs["dimensions"]))) for r in roots}
    elif any(r.opcode == "reduce" for r in roots):
        return None
    else:
        walks = {Walk(r.shape.dims) for r in roots}
    return next(iter(walks)) if len(walks) == 1 else None


def is_shaped(i: Instruction) -> bool:
    """Whether the kernel of a fusion may be more than one loop that computes each element by itself: then no other loop
    can be part of it, whatever else speaks for that."""
    return i.attrs["kind"] == "kCustom" or any(x.opcode in _SHAPED for x in i.attrs["calls"].instructions)


def sums_inside(i: Instruction) -> bool:
    """Whether a fusion has reductions inside."""
    return i.opcode == "fusion" and any(x.opcode == "reduce" for x in i.attrs["calls"].instructions)


def together(one: Walk, two: Walk) -> Walk | None:
    """The walk of one kernel that does both, or None.

    Equal walks; a reduction and a loop over what it reduces (stored on the way) or over its results (done at its end),
    whatever dimensions the loop sees there.
    """
    if one == two:
        return one
    if two.reduced:
        one, two = two, one
    if two.reduced or not one.reduced:
        return None
    return one if prod(two.dims) in (prod(one.dims), one.results) else None


def computed_again(one: Cluster, two: Cluster, walks: dict[Instruction, Walk]) -> Instruction | None:
    """A kernel of one cluster that a kernel of the other reads otherwise than each element once, where it is made."""
    for readers, read in ((one, two), (two, one)):
        if readers.inputs.keys().isdisjoint(read.nodes):
            continue
        for reader in readers.nodes:
            for o in reader.operands:
                made = source(o)
                if made in read.nodes and not _in_step(reader, made, walks):
                    return made
    return None


def _in_step(reader: Instruction, made: Instruction, walks: dict[Instruction, Walk]) -> bool:
    first, then = walks[made], walks[reader]
    if first.reduced and then.reduced:
        return False
    if then.reduced:
        return prod(first.dims) == prod(then.dims) and reads_in_step(reader, made)
    return reads_in_step(reader, made)


def reads_in_step(user: Instruction, i: Instruction) -> bool:
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
    if i.opcode in ("reshape", "bitcast"):
        return is_view(i) and i.shape.num_elements == start.shape.num_elements
    return i.op.is_elementwise and i.shape.num_elements == start.shape.num_elements


def _sums(fusion: Instruction) -> bool:
    """Whether a fusion that may be joined has a reduction among its outputs."""
    root = fusion.fused_root
    roots = root.operands if root.opcode == "tuple" else [root]
    return any(source(r).opcode == "reduce" for r in roots) and any(r.opcode == "reduce" for r in outputs_of(fusion))


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
