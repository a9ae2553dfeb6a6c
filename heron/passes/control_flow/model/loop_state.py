"""Changing what a while loop carries from one round to the next."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from heron.hlo.calls import backend_config
from heron.hlo.ir import shape
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.rewriting.tuples import add_leaves, arranged, keep_leaves, part_of, read_from, with_elements

State = dict[int, list[Instruction]]
#: elements of a state that a configuration may count
MOST_ELEMENTS = 1 << 31


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


def is_invariant(loop: Instruction, n: int) -> bool:
    """Whether the body of a plain loop hands element `n` on as it came."""
    value = loop.body.root.operands[n]
    return (
        value.opcode == "get-tuple-element"
        and value.attrs["index"] == n
        and value.operands[0] is loop.body.parameters[0]
    )


def invariant_elements(loop: Instruction) -> list[int]:
    """Elements the body hands on as they came. The loop must be plain."""
    return [n for n in range(len(loop.body.root.operands)) if is_invariant(loop, n)]


def keep_elements(loop: Instruction, keep: Collection[int]) -> None:
    """Drop all other elements from the state of a plain loop. Nothing outside may read them, nor the whole state."""
    own_computations(loop)
    kept = sorted(keep)
    place = {old: new for new, old in enumerate(kept)}
    parts = loop.shape.tuple_shapes or ()
    leaf_counts = [sum(1 for _ in s.leaves()) for s in parts]
    leaves = [sum(leaf_counts[:n]) + k for n in kept for k in range(leaf_counts[n])]
    small = shape.tuple_([parts[n] for n in kept])
    caller, init = loop.parent, loop.operands[0]
    assert caller is not None
    values = [part_of(init, (n,)) for n in kept]
    loop.set_operand(0, caller.add("tuple", values, small, like=init))
    caller.remove_dead_from(init)
    keep_leaves(loop, small, leaves)
    _renumber_config(loop, place)
    _renumber(loop, place)

    body: Computation = loop.body
    old_root = body.root
    body.root = with_elements(old_root, [old_root.operands[n] for n in kept], small, leaves)
    body.remove_dead_from(old_root)
    for c in (body, loop.condition):
        parameter = c.parameters[0]
        keep_leaves(parameter, small, leaves)
        parameter.mark_changed()
        _renumber(parameter, place)


def add_elements(loop: Instruction, values: list[Instruction]) -> None:
    """Carry further values through a plain loop, which no round changes; all computations must be the loop's own."""
    caller, init, body = loop.parent, loop.operands[0], loop.body
    assert caller is not None
    old = loop.shape
    parts = old.tuple_shapes or ()
    large = shape.tuple_([*parts, *(v.shape for v in values)])
    inits = [part_of(init, (n,)) for n in range(len(parts))]
    loop.set_operand(0, caller.add("tuple", [*inits, *values], large, like=init))
    caller.remove_dead_from(init)
    for whole in (loop, body.parameters[0], loop.condition.parameters[0]):
        add_leaves(whole, large, values)
    passed = [part_of(body.parameters[0], (len(parts) + n,)) for n in range(len(values))]
    root = body.root
    body.root = with_elements(root, [*root.operands, *passed], old, range(sum(1 for _ in old.leaves())))
    add_leaves(body.root, large, values)
    body.remove_dead_from(root)
    if loop.is_root or any(user.opcode != "get-tuple-element" for user in loop.users):
        _hide_elements(loop, old)


def _hide_elements(loop: Instruction, before: shape.Shape) -> None:
    """Give users who want the whole state a tuple of the elements there were before."""
    caller = loop.parent
    assert caller is not None
    others = [user for user in loop.users if user.opcode != "get-tuple-element"]
    was_root = loop.is_root
    elements = [part_of(loop, (n,)) for n in range(len(before.tuple_shapes or ()))]
    whole = caller.add("tuple", elements, before, like=loop)
    loop.replace_uses_with(whole, only=others)
    if was_root:
        caller.root = whole


def flatten_elements(loop: Instruction) -> Instruction | None:
    """Carry the parts of tuples within the state as elements of their own; the new loop, None where there are none."""
    if not any(s.is_tuple for s in loop.shape.tuple_shapes or ()):
        return None
    own_computations(loop)
    nested = loop.shape
    paths = [index for index, _ in nested.leaves()]
    flat, leaves = shape.tuple_([nested.at(index) for index in paths]), range(len(paths))
    place = {index: n for n, index in enumerate(paths)}

    def replace(old: Instruction, new: Instruction) -> None:
        keep_leaves(new, flat, leaves)
        read_from(arranged(nested, lambda index: part_of(new, (place[index],))), old)
        if old.parent is not None:
            old.parent.remove(old)

    caller, init, body = loop.parent, loop.operands[0], loop.body
    assert caller is not None
    root = body.root
    body.root = with_elements(root, [part_of(root, p) for p in paths], flat, leaves)
    body.remove_dead_from(root)
    for c in (body, loop.condition):
        old = c.parameters[0]
        new = c.add_parameter(0, nested, old.name)
        new.extras = dict(old.extras)
        replace(old, new)

    values = [part_of(init, p) for p in paths]
    new = caller.attach(loop.clone([caller.add("tuple", values, flat, like=init)]))
    for before in loop.control_predecessors:
        new.add_control_predecessor(before)
    for after in loop.control_successors:
        after.add_control_predecessor(new)
    _renumber_config(new, {p[0]: n for p, n in place.items() if len(p) == 1})
    replace(loop, new)
    caller.remove_dead_from(init)
    return new


def _renumber(whole: Instruction, place: Mapping[int, int]) -> None:
    for read in list(whole.users):
        index = place.get(read.attrs["index"])
        if index is None:
            _remove_unneeded(read)
        else:
            read.attrs["index"] = index
            read.mark_changed()


def _renumber_config(loop: Instruction, place: Mapping[int, int]) -> None:
    """Let the backend_config name the same induction variable, or none when that is gone."""
    config = backend_config.hints(loop)
    if "known_induction_variable" not in config:
        return
    index = backend_config.member(config, "known_induction_variable").get("tuple_index", 0)
    noted = backend_config.whole(index, 0, MOST_ELEMENTS)
    index = None if noted is None else place.get(noted)
    if index is None:
        del config["known_induction_variable"]
    else:
        config["known_induction_variable"] = {"tuple_index": str(index)}
    loop.extras["backend_config"] = json.dumps(config, sort_keys=True, separators=(",", ":"))


def _remove_unneeded(i: Instruction) -> None:
    """Remove an instruction and all its users, which are known to be dead."""
    c = i.parent
    assert c is not None
    work = [i]
    while work:
        dead = work[-1]
        if dead.users:
            work.extend(dead.users)
            continue
        work.pop()
        if dead.parent is c:
            c.remove(dead)
