"""Sums of a loop's rounds that are exchanged a round later than they are computed."""

from __future__ import annotations

from dataclasses import dataclass

from heron.analysis.values.trip_count import Counter
from heron.hlo.ir.instruction import Instruction
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.collectives.model.rounds import (
    copies,
    counted_back,
    elements_of,
    is_formatting,
    known_early,
    state_reads,
)
from heron.passes.control_flow.model.loop_state import add_elements, reads
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.rewriting.building import scalar
from heron.passes.rewriting.tuples import part_of

_SUMS = ("all-reduce", "reduce-scatter")


@dataclass(frozen=True, slots=True)
class Store:
    """A sum over devices, and the update that stores it, in some form, into element `index` of the loop's state."""

    exchange: Instruction
    update: Instruction
    index: int


def stores(loop: Instruction, counter: Counter) -> list[Store]:
    """The sums whose result does nothing in the loop but become a part of an array that the loop does not read."""
    known = known_early(loop, counter)
    state = loop.body.parameters[0]
    found: list[Store] = []
    for i in loop.body.instructions:
        if i.opcode not in _SUMS or not is_alone(i):
            continue
        (x,) = i.operands
        if x.opcode == "get-tuple-element" and x.operands[0] is state:  # the last round's, or no round's
            continue
        update = _update(i, known)
        if update is not None and (index := _element(loop, update)) is not None:
            found.append(Store(i, update, index))
    return found


def _update(i: Instruction, known: dict[Instruction, bool]) -> Instruction | None:
    """The dynamic-update-slice that stores `i`, which may be reshaped or scaled on the way."""
    value = i
    while len(value.users) == 1 and not value.is_root:
        (user,) = value.users
        others = [o for o in user.operands if o is not value]
        if user.opcode == "dynamic-update-slice" and user.operands[1] is value:
            return user if all(o in known for o in user.operands[2:]) and user.operands.count(value) == 1 else None
        if not is_formatting(user) or not all(o in known for o in others):
            return None
        value = user
    return None


def _element(loop: Instruction, update: Instruction) -> int | None:
    """n when `update` is the next element n of the state and nothing else in the loop reads or changes that."""
    body, buffer = loop.body, update.operands[0]
    if buffer.opcode != "get-tuple-element" or buffer.operands[0] is not body.parameters[0]:
        return None
    n = buffer.index
    if (
        list(buffer.users) != [update]
        or list(update.users) != [body.root]
        or (reads(body.parameters[0]) or {})[n] != [buffer]
    ):
        return None
    if n in (reads(loop.condition.parameters[0]) or {}):
        return None
    return n if [k for k, o in enumerate(body.root.operands) if o is update] == [n] else None


def rotate(loop: Instruction, counter: Counter) -> None:
    """Exchange a round later, the first round being done before the loop and the last exchange behind it."""
    own_computations(loop)
    caller, body, found = loop.parent, loop.body, stores(loop, counter)
    assert caller is not None
    sums = [s.exchange.operands[0] for s in found]
    _first_round(loop, counter, found, sums)
    count = len(body.root.operands) - len(sums)
    carried = [part_of(body.parameters[0], (count + n,)) for n in range(len(sums))]
    back = counted_back(body, part_of(body.parameters[0], (counter.index,)), counter)
    before = {read: back if read.index == counter.index else read for read in state_reads(body)}
    late = [copies(body, [s.update], {**before, x: c})[0] for s, x, c in zip(found, sums, carried, strict=True)]
    for n, (s, x, update) in enumerate(zip(found, sums, late, strict=True)):
        body.root.set_operand(s.index, update)
        body.root.set_operand(count + n, x)
        body.remove_dead_from(s.update)
    loop.extras.pop("backend_config", None)  # a trip count that is no longer true
    # what the next round would exchange first
    old, elements = list(loop.users), elements_of(loop)
    last = copies(caller, late, {read: elements[read.index] for read in state_reads(body)})
    for s, stored in zip(found, last, strict=True):
        for read in old:
            if read.index == s.index:
                caller.replace(read, stored)
    for element in elements:
        caller.remove_dead_from(element)


def _first_round(loop: Instruction, counter: Counter, found: list[Store], sums: list[Instruction]) -> None:
    """Put the first round, but for its exchanges, before the loop, and carry what they exchange."""
    caller, body, initial = loop.parent, loop.body, loop.operands[0]
    assert caller is not None
    at_start = {read: initial.operands[read.index] for read in state_reads(body)}
    stored = {s.index for s in found}
    others = [n for n in range(len(body.root.operands)) if n not in stored]
    made = copies(caller, [*(body.root.operands[n] for n in others), *sums], at_start)
    elements = list(initial.operands)
    for n, value in zip(others, made, strict=False):
        elements[n] = value
    start = elements[counter.index].shape.element_type, counter.start + counter.step
    elements[counter.index] = scalar(caller, *start)  # a constant, from which the rounds that are left can be counted
    loop.set_operand(0, caller.add("tuple", elements, initial.shape, like=initial))
    caller.remove_dead_from(initial)
    add_elements(loop, made[len(others) :])
