"""Changing what a while loop carries from one round to the next."""

from __future__ import annotations

from collections.abc import Collection

from heron.hlo import shape
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction

State = dict[int, list[Instruction]]


def reads(whole: Instruction) -> State | None:
    """The instructions that read each element of a tuple value; None when something uses the whole of it."""
    found: State = {}
    if whole.is_root:
        return None
    for user in whole.users:
        if user.opcode != "get-tuple-element":
            return None
        found.setdefault(user.attrs["index"], []).append(user)
    return found


def is_plain(loop: Instruction) -> bool:
    """Whether the loop's state is a tuple taken apart and put together element by element."""
    body, condition = loop.body, loop.condition
    return (
        loop.shape.is_tuple
        and body.root.opcode == "tuple"
        and reads(body.parameters[0]) is not None
        and reads(condition.parameters[0]) is not None
    )


def invariant_elements(loop: Instruction) -> list[int]:
    """Elements the body hands on as they came. The loop must be plain."""
    parameter = loop.body.parameters[0]
    return [
        n
        for n, value in enumerate(loop.body.root.operands)
        if value.opcode == "get-tuple-element" and value.operands[0] is parameter and value.attrs["index"] == n
    ]


def own_computations(loop: Instruction) -> None:
    """Copy the loop's body and condition where another instruction calls them too, so that they may be changed."""
    assert loop.parent is not None and loop.parent.module is not None
    module = loop.parent.module
    callers = module.callers()
    for name in ("body", "condition"):
        c: Computation = loop.attrs[name]
        if len(callers[c]) > 1 or loop.body is loop.condition:
            loop.attrs[name] = module.add_computation(c.clone())


def keep_elements(loop: Instruction, keep: Collection[int]) -> None:
    """Drop all other elements from the state of a plain loop. Nothing outside may read them, nor the whole state."""
    own_computations(loop)
    kept = sorted(keep)
    place = {old: new for new, old in enumerate(kept)}
    parts = loop.shape.tuple_shapes or ()
    small = shape.tuple_([parts[n] for n in kept])
    caller, init = loop.parent, loop.operands[0]
    assert caller is not None
    if init.opcode == "tuple":
        values = [init.operands[n] for n in kept]
    else:
        values = [caller.add("get-tuple-element", [init], parts[n], index=n) for n in kept]
    loop.set_operand(0, caller.add("tuple", values, small, like=init))
    caller.remove_dead_from(init)
    loop.shape = small
    _renumber(loop, place)

    body: Computation = loop.body
    old_root = body.root
    body.root = body.add("tuple", [old_root.operands[n] for n in kept], small, like=old_root)
    body.remove_dead_from(old_root)
    for c in (body, loop.condition):
        parameter = c.parameters[0]
        parameter.shape = small
        _renumber(parameter, place)


def _renumber(whole: Instruction, place: dict[int, int]) -> None:
    for read in list(whole.users):
        index = place.get(read.attrs["index"])
        if index is None:
            assert read.parent is not None
            _remove_unneeded(read)
        else:
            read.attrs["index"] = index


def _remove_unneeded(i: Instruction) -> None:
    """Remove an instruction and all its users, which are known to be dead."""
    c = i.parent
    assert c is not None
    for user in list(i.users):
        _remove_unneeded(user)
    if i.parent is c:
        c.remove(i)
