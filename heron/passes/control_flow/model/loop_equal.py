"""Elements of a loop that always have the same value: they start alike, and each round does the same to them."""

from __future__ import annotations

from collections.abc import Hashable

from heron.hlo.ir.instruction import Instruction
from heron.passes.control_flow.model.loop_state import keep_elements, reads
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.framework.canonical import Forms
from heron.passes.rewriting.tuples import part_of


def join_equal_elements(loop: Instruction, after: dict[int, list[Instruction]]) -> bool:
    """Carry one of several equal elements of a plain loop; `after` are the reads of the loop's result."""
    equal = _equal_elements(loop)
    if not equal:
        return False
    own_computations(loop)
    for whole, read in ((loop, after), *((p, reads(p) or {}) for p in (loop.body.parameters[0], _tested(loop)))):
        for n, first in equal.items():
            for i in read.get(n, ()):
                i.replace_uses_with(part_of(whole, (first,)))
    keep_elements(loop, [n for n in range(len(loop.shape.tuple_shapes or ())) if n not in equal])
    return True


def _tested(loop: Instruction) -> Instruction:
    return loop.condition.parameters[0]


def _equal_elements(loop: Instruction) -> dict[int, int]:
    """Elements with the number of an earlier one that equals them.

    Elements that start alike are taken for equal, then those are told apart that a round makes different, until no
    round does: the coarsest partition that the body keeps.
    """
    init = loop.operands[0]
    if init.opcode != "tuple":
        return {}
    classes = _numbered([_start(value) for value in init.operands])
    forms = Forms()
    while len(set(classes)) < len(classes):
        updates = _updates(loop, classes, forms)
        finer = _numbered(list(zip(classes, updates, strict=True)))
        if finer == classes:
            return {n: classes.index(k) for n, k in enumerate(classes) if classes.index(k) < n}
        classes = finer
    return {}


def _start(value: Instruction) -> Hashable:
    if value.opcode == "constant" and value.shape.is_array:
        return value.shape, value.attrs["literal"].key
    return value.shape, value


def _numbered(keys: list[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _updates(loop: Instruction, classes: list[int], forms: Forms) -> list[int]:
    """A number for what each element becomes, the same for what is computed alike from elements of one class."""
    body = loop.body
    state = body.parameters[0]
    numbers: dict[Instruction, int] = {}
    seen: dict[Hashable, int] = {}
    for i in body.post_order():
        key: Hashable
        if i.opcode == "get-tuple-element" and i.operands[0] is state:
            key = ("element", classes[i.attrs["index"]])
        elif i.opcode == "parameter" or i.control_predecessors or i.control_successors or i.has_side_effect:
            key = i
        else:
            key = (i.opcode, i.shape, forms.attributes(i), *(numbers[o] for o in i.operands))
        numbers[i] = seen.setdefault(key, len(seen))
    return [numbers[value] for value in body.root.operands]
