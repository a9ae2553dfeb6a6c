"""broadcast-canonicalizer: broadcasts keep the order of dimensions."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, transpose
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


@register
@dataclass(frozen=True)
class BroadcastCanonicalizer(Expander):
    """Makes a broadcast that changes the order of dimensions one that does not, and a transpose of its result.

    ROOT r = f32[3,5,2] broadcast(f32[2,3] x), dimensions={2,0}
    ->
    b = f32[2,5,3] broadcast(x), dimensions={0,2}
    ROOT r = f32[3,5,2] transpose(b), dimensions={2,1,0}
    """

    name = "broadcast-canonicalizer"
    opcodes = frozenset({"broadcast"})

    def matches(self, i: Instruction) -> bool:
        dimensions = i.attrs["dimensions"]
        return list(dimensions) != sorted(dimensions)

    def expand(self, i: Instruction) -> Instruction:
        c, dimensions = i.parent, i.attrs["dimensions"]
        assert c is not None
        places = sorted(dimensions)
        order = list(range(i.shape.rank))
        for place, d in zip(places, dimensions, strict=True):
            order[d] = place
        dims = [0] * i.shape.rank
        for d, place in enumerate(order):
            dims[place] = i.shape.dims[d]
        x = i.operands[0]
        sorted_ = c.add("broadcast", [x], array(x.shape.element_type, dims), like=i, dimensions=tuple(places))
        return transpose(sorted_, order)
