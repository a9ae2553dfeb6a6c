"""Parts of a loop's rounds that are computed elsewhere: before the loop, behind it, or a round earlier or later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heron.analysis.values.trip_count import Counter, counter_of
from heron.hlo.facts import is_device_id, moves_elements
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.control_flow.model.loop_state import invariant_elements, is_plain
from heron.passes.rewriting.building import is_movable, own_body, scalar
from heron.passes.rewriting.tuples import part_of


def counted(loop: Instruction) -> Counter | None:
    """The counter of a loop of two rounds or more whose rounds may be taken out of it; else None."""
    if not is_plain(loop) or loop.control_predecessors or loop.control_successors:
        return None
    if loop.body.root.control_predecessors or any(i.has_side_effect for c in loop.called for i in c.instructions):
        return None
    counter = counter_of(loop)
    return counter if counter is not None and counter.trips > 1 else None


def state_reads(c: Computation) -> list[Instruction]:
    """The instructions that read the elements of the state in a plain loop's body or condition."""
    return list(c.parameters[0].users)


def known_early(loop: Instruction, counter: Counter) -> dict[Instruction, bool]:
    """The values of a round that follow cheaply from its number and from what no round changes.

    With each value, whether it depends on the number of the round.
    """
    body, same = loop.body, set(invariant_elements(loop))
    found: dict[Instruction, bool] = {}
    for i in body.post_order():
        if i.opcode == "get-tuple-element" and i.operands[0] is body.parameters[0]:
            if i.index == counter.index or i.index in same:
                found[i] = i.index == counter.index
        elif is_formatting(i) and all(o in found for o in i.operands):
            found[i] = any(found[o] for o in i.operands)
    return found


def is_formatting(i: Instruction) -> bool:
    """Whether `i` may be computed at another place, and costs no more than moving its elements."""
    return is_movable(i) and (i.op.is_elementwise or moves_elements(i) or i.opcode == "constant" or is_device_id(i))


def copies(
    c: Computation, wanted: Sequence[Instruction], known: Mapping[Instruction, Instruction]
) -> list[Instruction]:
    """Values of another place in computation `c`, where `known` stand for some; all that they need is copied."""
    needed: set[Instruction] = set()
    work = list(wanted)
    while work:
        i = work.pop()
        if i not in known and i not in needed:
            needed.add(i)
            work += [*i.operands, *i.control_predecessors]
    made = dict(known)
    source = wanted[0].parent
    assert source is not None
    for i in source.post_order() if needed else ():
        if i in needed:
            made[i] = c.attach(i.clone([made[o] for o in i.operands]))
            own_body(made[i])
            for before in i.control_predecessors:
                made[i].add_control_predecessor(made[before])
    return [made[i] for i in wanted]


def elements_of(loop: Instruction) -> list[Instruction]:
    """New instructions that read all elements of a loop's result."""
    c, parts = loop.parent, loop.shape.tuple_shapes or ()
    assert c is not None
    return [c.add("get-tuple-element", [loop], s, index=n) for n, s in enumerate(parts)]


def drop_last_round(loop: Instruction, counter: Counter) -> None:
    """Let a loop, whose computations are its own, end a round earlier."""
    c: Computation = loop.condition
    old = c.root
    value = part_of(c.parameters[0], (counter.index,))
    bound = scalar(c, value.shape.element_type, counter.start + (counter.trips - 1) * counter.step)
    direction = "LT" if counter.step > 0 else "GT"
    c.root = c.add("compare", [value, bound], old.shape, like=old, direction=direction)
    c.remove_dead_from(old)


def counted_back(c: Computation, value: Instruction, counter: Counter) -> Instruction:
    """The counter a round before it was `value`."""
    return c.add("subtract", [value, scalar(c, value.shape.element_type, counter.step)], value.shape)
