"""get-dimension-size-rewriter: sizes that are known without looking at the array."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.instruction import Instruction
from heron.hlo.types import S32
from heron.passes.base import Constraint
from heron.passes.building import scalar
from heron.passes.expand.expander import Expander, home
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class GetDimensionSizeRewriter(Expander):
    """Replaces the size of a dimension by a constant where it is static, else by what the program set it to.

    The size is followed through ops that hand it on: elementwise ones, broadcasts, transposes, tuples.

    a = f32[<=8,4] set-dimension-size(f32[8,4] x, s32[] n), dimensions={0}
    b = f32[4,<=8] transpose(a), dimensions={1,0}
    ROOT r = s32[] get-dimension-size(b), dimensions={1}
    ->
    ROOT n
    """

    name = "get-dimension-size-rewriter"
    opcodes = frozenset({"get-dimension-size"})
    dynamic = True
    constraints = (Constraint("get-dimension-size-rewriter", "dynamic-padder", "the padder reads every size it meets"),)

    def matches(self, i: Instruction) -> bool:
        return known_size(i.operands[0], i.dimensions[0]) is not None

    def expand(self, i: Instruction) -> Instruction:
        found = known_size(i.operands[0], i.dimensions[0])
        assert found is not None
        return found if isinstance(found, Instruction) else scalar(home(i), S32, found)


def known_size(x: Instruction, d: int) -> Instruction | int | None:
    """The size of dimension `d`: the bound, an ``s32[]`` of the program, or None where neither is known."""
    while True:
        if not (x.shape.dynamic and x.shape.dynamic[d]):
            return x.shape.dims[d]
        if x.opcode == "set-dimension-size" and d in x.dimensions:
            return x.operands[1]
        step = _source(x, d)
        if step is None:
            return None
        x, d = step


def _source(x: Instruction, d: int) -> tuple[Instruction, int] | None:
    """The operand's dimension that has the same size."""
    match x.opcode:
        case "transpose":
            return x.operands[0], x.dimensions[d]
        case "broadcast":
            return (x.operands[0], x.dimensions.index(d)) if d in (x.dimensions or ()) else None
        case "set-dimension-size" | "copy" | "reverse":
            return x.operands[0], d
        case "get-tuple-element" if x.operands[0].opcode == "tuple":
            return x.operands[0].operands[x.index], d
    if not x.op.is_elementwise or x.opcode == "bitcast-convert":
        return None
    for o in x.operands:  # a static operand takes the size of the others
        if o.shape.rank == x.shape.rank and o.shape.dynamic and o.shape.dynamic[d]:
            return o, d
    return None
