"""Outlining: instructions of a computation become a computation of their own, which is called in their place."""

from __future__ import annotations

from collections.abc import Iterable

from heron.errors import HeronError
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction


def outline(instructions: Iterable[Instruction], name: str) -> Instruction:
    """Move instructions of one computation into a new one called `name`; returns the call in their place.

    What they take from outside becomes parameters, by first use; the one value that is used outside becomes the
    result. Raises HLO023 when there is no such one value, or when something outside stands between them.
    """
    chosen = dict.fromkeys(instructions)
    home = _home(chosen)
    order = [i for i in home.post_order() if i in chosen]
    inputs = list(dict.fromkeys(o for i in order for o in i.operands if o not in chosen))
    _need_convex(inputs, order, chosen)
    result = _result(order, chosen)
    body = _body(order, inputs, result, name)
    assert home.module is not None
    home.module.add_computation(body)
    call = home.add("call", inputs, result.shape, like=result, to_apply=body)
    if "sharding" in result.extras:
        call.extras["sharding"] = result.extras["sharding"]
    _take_over_control(order, chosen, call)
    result.replace_uses_with(call)
    for i in reversed(order):
        home.remove(i)
    return call


def _home(chosen: dict[Instruction, None]) -> Computation:
    homes = {i.parent for i in chosen}
    home = next(iter(homes), None)
    if len(homes) != 1 or home is None or home.module is None:
        raise HeronError("HLO023", "to be outlined, instructions must belong to one computation of a module")
    if any(i.opcode == "parameter" for i in chosen):
        raise HeronError("HLO023", "a parameter cannot be outlined", where=home.name)
    return home


def _result(order: list[Instruction], chosen: dict[Instruction, None]) -> Instruction:
    found = [i for i in order if i.is_root or any(u not in chosen for u in i.users)]
    if len(found) != 1:
        names = ", ".join(i.name for i in found) or "none"
        raise HeronError("HLO023", "just one of the outlined instructions may be used outside", why=f"it is: {names}")
    return found[0]


def _need_convex(inputs: list[Instruction], order: list[Instruction], chosen: dict[Instruction, None]) -> None:
    """Raises when an input, or what must come before, depends on an outlined instruction."""
    before = {*inputs, *(p for i in order for p in i.control_predecessors if p not in chosen)}
    work = [u for i in order for u in (*i.users, *i.control_successors) if u not in chosen]
    seen = set(work)
    while work:
        i = work.pop()
        if i in before:
            raise HeronError("HLO023", f"'{i.name}' is between the instructions to be outlined", where=str(i))
        fresh = [u for u in (*i.users, *i.control_successors) if u not in seen and u not in chosen]
        seen.update(fresh)
        work += fresh


def _body(order: list[Instruction], inputs: list[Instruction], result: Instruction, name: str) -> Computation:
    body = Computation(name)
    known = {x: body.add_parameter(n, x.shape) for n, x in enumerate(inputs)}
    for i in order:
        known[i] = body.attach(i.clone([known[o] for o in i.operands]))
        for before in i.control_predecessors:
            if before in known:
                known[i].add_control_predecessor(known[before])
    body.root = known[result]
    return body


def _take_over_control(order: list[Instruction], chosen: dict[Instruction, None], call: Instruction) -> None:
    """Orders towards the outside hold for the call."""
    for i in order:
        for before in i.control_predecessors:
            if before not in chosen:
                call.add_control_predecessor(before)
        for after in i.control_successors:
            if after not in chosen:
                after.add_control_predecessor(call)
        _cut_control(i)


def _cut_control(i: Instruction) -> None:
    for before in i.control_predecessors:
        before.control_successors.remove(i)
    for after in i.control_successors:
        after.control_predecessors.remove(i)
    i.control_predecessors, i.control_successors = [], []
