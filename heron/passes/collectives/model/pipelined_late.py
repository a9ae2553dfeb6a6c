"""Sums of a loop's rounds that are exchanged a round later than they are computed."""

from __future__ import annotations

from heron.analysis.values.trip_count import Counter
from heron.hlo.ir.instruction import Instruction
from heron.passes.collectives.model.reductions import REDUCING, is_alone
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
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Store:
    """A sum over devices that a round does nothing with but store it, in some form, into elements of the loop's state.

    ``updates`` are the next values of elements by number; ``needed`` the values of the round that these are made of,
    the operand of the exchange first.
    """

    exchange: Instruction
    updates: dict[int, Instruction]
    needed: tuple[Instruction, ...]


def stores(loop: Instruction, counter: Counter) -> list[Store]:
    """The sums whose result does nothing in the loop but become a part of arrays that the loop does not read."""
    known = known_early(loop, counter)
    state = loop.body.parameters[0]
    found: list[Store] = []
    taken: set[int] = set()
    for i in loop.body.instructions:
        if i.opcode not in REDUCING or not is_alone(i):
            continue
        (x,) = i.operands
        if x.opcode == "get-tuple-element" and x.operands[0] is state:  # the last round's, or no round's
            continue
        store = _store(loop, i, known)
        if store is not None and taken.isdisjoint(store.updates):
            found.append(store)
            taken |= store.updates.keys()
    return found


def _store(loop: Instruction, exchange: Instruction, known: dict[Instruction, bool]) -> Store | None:
    """The updates that end all that is computed from an exchange, by work that may be done later."""
    follows, updates, work = {exchange}, dict[int, Instruction](), [exchange]
    while work:
        value = work.pop()
        if value.is_root or not value.users:
            return None
        for user in value.users:
            if user in follows:
                continue
            if _updates_with(user, value) and all(o in known for o in user.operands[2:]):
                n = _element(loop, user)
                if n is None:
                    return None
                updates[n] = user
            elif is_formatting(user):
                follows.add(user)
                work.append(user)
            else:
                return None
    # in the order of the program, so that every compile carries them alike
    others = [o for i in loop.body.instructions if i in follows for o in i.operands if o not in follows]
    needed = [o for o in dict.fromkeys([exchange.operands[0], *others]) if o not in known or o is exchange.operands[0]]
    return Store(exchange, updates, tuple(needed))


def _updates_with(user: Instruction, value: Instruction) -> bool:
    return user.opcode == "dynamic-update-slice" and user.operands[1] is value and user.operands.count(value) == 1


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
    updates = {n: update for s in found for n, update in s.updates.items()}
    needed = list(dict.fromkeys(x for s in found for x in s.needed))
    _first_round(loop, counter, updates, needed)
    count = len(body.root.operands) - len(needed)
    carried = [part_of(body.parameters[0], (count + n,)) for n in range(len(needed))]
    back = counted_back(body, part_of(body.parameters[0], (counter.index,)), counter)
    before = {read: back if read.index == counter.index else read for read in state_reads(body)}
    late = copies(body, list(updates.values()), {**before, **dict(zip(needed, carried, strict=True))})
    for n, x in enumerate(needed):
        body.root.set_operand(count + n, x)
    for (n, old), update in zip(updates.items(), late, strict=True):
        body.root.set_operand(n, update)
        body.remove_dead_from(old)
    loop.extras.pop("backend_config", None)  # a trip count that is no longer true
    # what the next round would exchange first
    old_reads, elements = list(loop.users), elements_of(loop)
    last = copies(caller, late, {read: elements[read.index] for read in state_reads(body)})
    stored = dict(zip(updates, last, strict=True))
    for read in old_reads:
        if read.index in stored:
            caller.replace(read, stored[read.index])
    for element in elements:
        caller.remove_dead_from(element)


def _first_round(
    loop: Instruction, counter: Counter, updates: dict[int, Instruction], needed: list[Instruction]
) -> None:
    """Put the first round, but for its exchanges, before the loop, and carry what they need."""
    caller, body, initial = loop.parent, loop.body, loop.operands[0]
    assert caller is not None
    at_start = {read: initial.operands[read.index] for read in state_reads(body)}
    others = [n for n in range(len(body.root.operands)) if n not in updates]
    made = copies(caller, [*(body.root.operands[n] for n in others), *needed], at_start)
    elements = list(initial.operands)
    for n, value in zip(others, made, strict=False):
        elements[n] = value
    start = elements[counter.index].shape.element_type, counter.start + counter.step
    elements[counter.index] = scalar(caller, *start)  # a constant, from which the rounds that are left can be counted
    loop.set_operand(0, caller.add("tuple", elements, initial.shape, like=initial))
    caller.remove_dead_from(initial)
    add_elements(loop, made[len(others) :])
