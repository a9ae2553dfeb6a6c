"""fusion-tuple-flattener: fusions take and give arrays, not tuples of tuples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import copy_body
from heron.passes.rewriting.tuples import arranged, packed, part_of
from heron.records import dataclass

#: extras that say something of each array of a value
_OF_LEAVES = frozenset({"sharding", "origin"})


@register
@dataclass(frozen=True)
class FusionTupleFlattener(Pass):
    """Gives each array in a tuple that a fusion takes a parameter of its own, and each in a tuple of tuples that it
    gives a place in one tuple; on the other side, they are put together again.

    Kernels have pointers to arrays. Programs that other compilers print may hand a fusion the state of a loop as a
    whole.

    body {
      p = (f32[4], f32[4]) parameter(0)
      a = f32[4] get-tuple-element(p), index=0
      b = f32[4] get-tuple-element(p), index=1
      ROOT s = f32[4] add(a, b)
    }

    t = (f32[4], f32[4]) tuple(f32[4] x, f32[4] y)
    ROOT f = f32[4] fusion(t), kind=kLoop, calls=body
    ->
    body {
      x = f32[4] parameter(0)
      y = f32[4] parameter(1)
      ROOT s = f32[4] add(x, y)
    }

    ROOT f = f32[4] fusion(x, y), kind=kLoop, calls=body
    """

    name = "fusion-tuple-flattener"
    looks_for = frozenset({"fusion"})
    constraints = (
        Constraint("fusion-tuple-flattener", "fusion-legalizer", "tiles are of arrays"),
        Constraint("fusion-tuple-flattener", "layout-assignment", "layouts are of arrays that kernels take"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        found = [
            i
            for c in module.post_order()  # callees first: what holds a fusion is copied with it
            for i in c.instructions
            if i.opcode == "fusion" and (any(o.shape.is_tuple for o in i.operands) or _is_nested(i.shape))
        ]
        for i in found:
            if ctx.may_fire("flatten", "fusion_tuple_flattener.py", i):
                _flatten(i)
        if found:
            module.remove_unused_computations()
        return bool(found)


def _is_nested(shape: Shape) -> bool:
    return any(s.is_tuple for s in shape.tuple_shapes or ())


def _flatten(fusion: Instruction) -> None:
    """Exchange a fusion for one that takes the arrays of its operands."""
    home, old = fusion.parent, fusion.calls
    assert home is not None and old.module is not None
    places = [(n, index) for n, o in enumerate(fusion.operands) for index in _arrays(o.shape)]
    operands = [part_of(fusion.operands[n], index) for n, index in places]
    body = old.module.add_computation(Computation(old.name))
    parameters = [body.add_parameter(k, o.shape, o.name) for k, o in enumerate(operands)]
    number = dict(zip(places, parameters, strict=True))
    copies = copy_body(body, old, [_again(body, p, n, number) for n, p in enumerate(old.parameters)])
    body.root = copies[old.root]
    shape = fusion.shape
    if _is_nested(shape):
        results = [part_of(body.root, index) for index in _arrays(shape)]
        body.root = body.add("tuple", results, None, like=body.root)
        shape = body.root.shape
    _read_through(body)
    attrs = {**fusion.attrs, "calls": body}
    if aliases := attrs.get("output_to_operand_aliasing"):
        flat = list(_arrays(fusion.shape)) if shape is not fusion.shape else None
        attrs["output_to_operand_aliasing"] = _renumbered(aliases, flat, places)
    made = home.add("fusion", operands, shape, like=fusion, **attrs)
    made.extras = {k: v for k, v in fusion.extras.items() if shape is fusion.shape or k not in _OF_LEAVES}
    for before in fusion.control_predecessors:
        made.add_control_predecessor(before)
    for after in fusion.control_successors:
        after.add_control_predecessor(made)
    fusion.drop_control_edges()
    value = made
    if shape is not fusion.shape:
        number = {index: n for n, index in enumerate(_arrays(fusion.shape))}
        parts = arranged(fusion.shape, lambda index: part_of(made, (number[index],)))
        value = packed(home, parts, fusion.shape, fusion)
    home.replace(fusion, value)


def _arrays(shape: Shape) -> Iterator[ShapeIndex]:
    return (index for index, _ in shape.leaves())


def _again(body: Computation, p: Instruction, n: int, number: dict[tuple[int, ShapeIndex], Instruction]) -> Instruction:
    """The replacement of an old parameter: the parameter of an array, or a tuple of them."""
    return packed(body, arranged(p.shape, lambda index: number[n, index]), p.shape, p)


def _read_through(body: Computation) -> None:
    """Let what reads a part of a tuple that was put together read the part."""
    for i in body.post_order():
        if i.opcode == "get-tuple-element" and i.operands[0].opcode == "tuple":
            body.replace(i, i.operands[0].operands[i.attrs["index"]])
    for i in body.instructions[::-1]:
        if i.opcode == "tuple":
            body.remove_dead_from(i)


def _renumbered(
    aliases: Iterable[tuple[ShapeIndex, int, ShapeIndex]],
    outputs: list[ShapeIndex] | None,
    places: list[tuple[int, ShapeIndex]],
) -> tuple[tuple[ShapeIndex, int, ShapeIndex], ...]:
    """Pairs of outputs and operands in one buffer, by their new numbers (``outputs``: None where they keep them). Those
    of whole tuples are only allowed, so they go."""
    number = {place: k for k, place in enumerate(places)}
    gives = {index: (n,) for n, index in enumerate(outputs)} if outputs is not None else None
    found: list[tuple[ShapeIndex, int, ShapeIndex]] = []
    for output, n, index in aliases:
        taken = number.get((n, tuple(index)))
        given = tuple(output) if gives is None else gives.get(tuple(output))
        if taken is not None and given is not None:
            found.append((given, taken, ()))
    return tuple(found)
