"""Taking tuples apart: their parts, their readers, the tuple with some parts exchanged or gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.hlo.sharding import Sharding

#: the parts of a tuple value, nested as it is
Parts: TypeAlias = "Instruction | list[Parts]"


def part_of(i: Instruction, index: ShapeIndex) -> Instruction:
    """An instruction for part `index` of `i`: the tuple's operand where `i` is a tuple, else get-tuple-elements."""
    for n in index:
        if i.opcode == "tuple":
            i = i.operands[n]
            continue
        assert i.parent is not None and i.shape.tuple_shapes is not None
        known = next((u for u in i.users if u.opcode == "get-tuple-element" and u.attrs["index"] == n), None)
        i = known or i.parent.add("get-tuple-element", [i], i.shape.tuple_shapes[n], f"{i.name}.part", index=n)
    return i


def with_parts(i: Instruction, parts: Mapping[ShapeIndex, Instruction]) -> Instruction:
    """`i` with the parts at those indices exchanged: the part itself for index (), else a new tuple."""
    if not parts:
        return i
    if () in parts:
        return parts[()]
    assert i.parent is not None and i.shape.tuple_shapes is not None
    below: dict[int, dict[ShapeIndex, Instruction]] = {}
    for index, new in parts.items():
        below.setdefault(index[0], {})[index[1:]] = new
    elements = [with_parts(part_of(i, (n,)), below.get(n, {})) for n in range(len(i.shape.tuple_shapes))]
    return i.parent.add("tuple", elements, i.shape, like=i)


def arranged(shape: Shape, leaf: Callable[[ShapeIndex], Instruction], index: ShapeIndex = ()) -> Parts:
    """Parts nested as `shape` is, each made by `leaf` from its index."""
    if shape.tuple_shapes is None:
        return leaf(index)
    return [arranged(s, leaf, (*index, n)) for n, s in enumerate(shape.tuple_shapes)]


def packed(c: Computation, parts: Parts, shape: Shape, like: Instruction) -> Instruction:
    """A value made of its parts."""
    if isinstance(parts, Instruction):
        return parts
    shapes = shape.tuple_shapes or ()
    return c.add("tuple", [packed(c, p, s, like) for p, s in zip(parts, shapes, strict=True)], shape, like=like)


def read_from(parts: Parts, whole: Instruction) -> None:
    """Let all who read a tuple's elements read these parts; who needs it whole gets a new one made of them.

    The tuple itself stays where it has effects or is a parameter, and goes otherwise.
    """
    c = whole.parent
    assert c is not None
    if isinstance(parts, Instruction):
        c.replace(whole, parts)
        return
    for user in list(whole.users):
        if user.opcode == "get-tuple-element":
            read_from(parts[user.attrs["index"]], user)
    if whole.parent is c and (whole.users or whole.is_root):
        whole.replace_uses_with(packed(c, parts, whole.shape, whole))
    if whole.parent is c:
        c.remove_dead_from(whole)


def take_apart(whole: Instruction) -> bool:
    """Let all who take a tuple, or a tuple within it, as it is take another one, made of its arrays; whether any do."""
    inner = [u for u in whole.users if u.opcode == "get-tuple-element" and u.shape.is_tuple]
    changed = any([take_apart(u) for u in inner])
    others, was_root = [u for u in whole.users if u.opcode != "get-tuple-element"], whole.is_root
    if not others and not was_root:
        return changed
    c = whole.parent
    assert c is not None
    again = packed(c, arranged(whole.shape, lambda index: part_of(whole, index)), whole.shape, whole)
    whole.replace_uses_with(again, only=others)
    if was_root:
        c.root = again
    return True


def with_elements(old: Instruction, values: Sequence[Instruction], shape: Shape, leaves: Sequence[int]) -> Instruction:
    """A new tuple that stands for `old`, made of these leaves of it."""
    assert old.parent is not None
    new = old.parent.add("tuple", values, shape, like=old)
    new.extras = {k: v for k, v in old.extras.items() if k == "sharding"}
    keep_leaves(new, shape, leaves)
    return new


def keep_leaves(i: Instruction, shape: Shape, leaves: Sequence[int]) -> None:
    """Make `i` a value of `shape`, made of these leaves of what it was; what is said about leaves follows."""
    i.shape = shape
    i.extras.pop("origin", None)
    sharding = i.sharding if "sharding" in i.extras else None
    if sharding is not None and sharding.is_tuple:
        i.sharding = Sharding.tuple([sharding.elements[n] for n in leaves])
    if "parameter_replication" in i.extras:
        flags = i.extras["parameter_replication"]
        i.extras["parameter_replication"] = tuple(flags[n] for n in leaves)


def add_leaves(i: Instruction, shape: Shape, values: Sequence[Instruction]) -> None:
    """Make the tuple `i` a value of `shape`, which goes on after what it was as `values` do."""
    i.shape = shape
    i.extras.pop("origin", None)
    sharding = i.sharding if "sharding" in i.extras else None
    if sharding is not None and sharding.is_tuple:
        added = [
            (v.sharding or Sharding.replicated()).for_leaf(v.shape, k) for v in values for k, _ in v.shape.leaves()
        ]
        i.sharding = Sharding.tuple([*sharding.elements, *added])
    if "parameter_replication" in i.extras:
        count = sum(1 for _ in shape.leaves())
        flags = tuple(i.extras["parameter_replication"])
        i.extras["parameter_replication"] = flags + (False,) * (count - len(flags))
