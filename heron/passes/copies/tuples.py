"""Taking tuples apart: single parts of an instruction's result, and the tuple with some parts exchanged."""

from __future__ import annotations

from collections.abc import Mapping

from heron.hlo.instruction import Instruction
from heron.hlo.shape import ShapeIndex


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
    elements: list[Instruction] = []
    for n in range(len(i.shape.tuple_shapes)):
        below = {index[1:]: new for index, new in parts.items() if index[0] == n}
        elements.append(with_parts(part_of(i, (n,)), below))
    return i.parent.add("tuple", elements, i.shape, like=i)
