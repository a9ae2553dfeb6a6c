"""Changing what a conditional hands to its branches and gets from them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

from heron.hlo.ir import shape
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import S32
from heron.passes.control_flow.model.loop_state import reads
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.rewriting.building import inline, scalar
from heron.passes.rewriting.tuples import Parts, add_leaves, arranged, keep_leaves, packed, part_of, with_elements


def give_tuples(i: Instruction) -> None:
    """Let every branch end in a tuple instruction; a result that is none becomes one of a single element."""
    own_computations(i)
    wraps = not i.shape.is_tuple
    whole = shape.tuple_([i.shape]) if wraps else i.shape
    for c in i.branch_computations:
        root = c.root
        if wraps:
            c.root = c.add("tuple", [root], whole, like=root)
        elif root.opcode != "tuple":
            elements = [part_of(root, (n,)) for n in range(len(whole.tuple_shapes or ()))]
            c.root = with_elements(root, elements, whole, range(sum(1 for _ in whole.leaves())))
    if wraps:
        caller = i.parent
        assert caller is not None
        old, was_root, users = i.shape, i.is_root, list(i.users)
        i.shape = whole
        i.extras.pop("sharding", None)
        i.extras.pop("origin", None)
        result = caller.add("get-tuple-element", [i], old, like=i, index=0)
        i.replace_uses_with(result, only=users)
        if was_root:
            caller.root = result


def keep_results(i: Instruction, keep: Collection[int]) -> None:
    """Drop all other elements of the branches' tuples. Nothing may read them, nor the whole result."""
    own_computations(i)
    kept = sorted(keep)
    shapes = i.shape.tuple_shapes or ()
    counts = [sum(1 for _ in s.leaves()) for s in shapes]
    leaves = [sum(counts[:n]) + k for n in kept for k in range(counts[n])]
    small = shape.tuple_([shapes[n] for n in kept])
    for c in i.branch_computations:
        root = c.root
        c.root = with_elements(root, [root.operands[n] for n in kept], small, leaves)
        c.remove_dead_from(root)
    keep_leaves(i, small, leaves)
    place = {old: new for new, old in enumerate(kept)}
    for read in list(i.users):
        index = place.get(read.attrs["index"])
        if index is None:
            assert read.parent is not None
            read.parent.remove(read)
        else:
            read.attrs["index"] = index


def add_results(i: Instruction, values: Sequence[Sequence[Instruction]]) -> list[Instruction]:
    """Let branch b, which ends in a tuple of its own, give ``values[b]`` too; the reads of them."""
    old = i.shape
    shapes = old.tuple_shapes or ()
    large = shape.tuple_([*shapes, *(v.shape for v in values[0])])
    leaves = range(sum(1 for _ in old.leaves()))
    for c, more in zip(i.branch_computations, values, strict=True):
        root = c.root
        c.root = with_elements(root, [*root.operands, *more], old, leaves)
        add_leaves(c.root, large, values[0])
        c.remove_dead_from(root)
    add_leaves(i, large, values[0])
    return [part_of(i, (len(shapes) + n,)) for n in range(len(values[0]))]


def used_results(i: Instruction) -> dict[int, list[Instruction]] | None:
    """The reads of each element of a conditional's result that something needs; None where the whole of it is used."""
    found = reads(i) if i.shape.is_tuple else None
    if found is None:
        return None
    return {n: needed for n, read in found.items() if (needed := [r for r in read if r.users or r.is_root])}


def add_values(i: Instruction, number: int, values: Sequence[Instruction]) -> list[Instruction]:
    """Hand a branch of its own computation further values behind the elements of its operand; the reads in it."""
    caller, old = i.parent, i.operands[1 + number]
    assert caller is not None
    shapes = old.shape.tuple_shapes or ()
    given = [part_of(old, (n,)) for n in range(len(shapes))]
    large = shape.tuple_([*shapes, *(v.shape for v in values)])
    i.set_operand(1 + number, caller.add("tuple", [*given, *values], large, like=old))
    caller.remove_dead_from(old)
    parameter = i.branch_computations[number].parameters[0]
    add_leaves(parameter, large, values)
    return [part_of(parameter, (len(shapes) + n,)) for n in range(len(values))]


def give_values(i: Instruction, number: int, needed: Sequence[int]) -> None:
    """Hand a branch of its own computation only these elements of its operand; it must read no others."""
    caller, old = i.parent, i.operands[1 + number]
    assert caller is not None
    values = [part_of(old, (n,)) for n in needed]
    small = shape.tuple_([v.shape for v in values])
    i.set_operand(1 + number, caller.add("tuple", values, small, like=old))
    caller.remove_dead_from(old)
    c = i.branch_computations[number]
    parameter = c.parameters[0]
    shapes = parameter.shape.tuple_shapes or ()
    counts = [sum(1 for _ in s.leaves()) for s in shapes]
    keep_leaves(parameter, small, [sum(counts[:n]) + k for n in needed for k in range(counts[n])])
    if not needed:
        parameter.extras.pop("sharding", None)
    for read in list(parameter.users):
        if read.attrs["index"] in needed:
            read.attrs["index"] = needed.index(read.attrs["index"])
        else:
            c.remove(read)


def given_by_all(i: Instruction, given: Sequence[Instruction]) -> Instruction | None:
    """The value in the caller that every branch hands through, or the constant that each of them gives."""
    if not is_given_by_all(i, given):
        return None
    if given[0].opcode == "constant":
        assert i.parent is not None
        return i.parent.attach(given[0].clone())
    origin = _origin(i, 0, given[0])
    return part_of(*origin) if isinstance(origin, _Part) else None


def is_given_by_all(i: Instruction, given: Sequence[Instruction]) -> bool:
    """Whether the caller can have what branch number b gives in place b without running any."""
    found = {_origin(i, number, value) for number, value in enumerate(given)}
    return len(found) == 1 and None not in found


class _Part(NamedTuple):
    value: Instruction
    index: shape.ShapeIndex


def _origin(i: Instruction, number: int, value: Instruction) -> _Part | Hashable:
    """The origin of a branch's value: a part of a value of the caller, or a constant."""
    if value.opcode == "constant" and value.shape.is_array:
        return value.shape, value.attrs["literal"].key
    index: list[int] = []
    while value.opcode == "get-tuple-element":
        index.insert(0, value.attrs["index"])
        value = value.operands[0]
    if value.opcode != "parameter":
        return None
    given = i.operands[1 + number]
    while index and given.opcode == "tuple":
        given = given.operands[index.pop(0)]
    return _Part(given, tuple(index))


def select_branches(i: Instruction) -> Instruction:
    """Run all branches in place of the conditional, and select from their results; what stands for it now."""
    caller, index = i.parent, i.operands[0]
    assert caller is not None
    results: list[Instruction] = []
    for c, operand in zip(i.branch_computations, i.operands[1:], strict=True):
        call = caller.add("call", [operand], c.root.shape, like=i, to_apply=c)
        results.append(inline(call, c, [operand]))
    chosen = results[-1]
    for n in reversed(range(len(results) - 1)):
        test = index
        if index.shape.element_type is S32:
            test = caller.add("compare", [index, scalar(caller, S32, n)], like=i, direction="EQ")
        chosen = packed(caller, _selected(caller, test, results[n], chosen, i), i.shape, i)
    caller.replace(i, chosen)
    return chosen


def _selected(c: Computation, test: Instruction, yes: Instruction, no: Instruction, like: Instruction) -> Parts:
    def select(index: shape.ShapeIndex) -> Instruction:
        a, b = part_of(yes, index), part_of(no, index)
        return a if a is b else c.add("select", [test, a, b], a.shape, like=like)

    return arranged(like.shape, select)
