"""map-inliner: maps become the elementwise ops they apply."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.expand.model.whole_arrays import apply_to_arrays, is_elementwise
from heron.passes.framework.registry import register
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


@register
@dataclass(frozen=True)
class MapInliner(Expander):
    """Applies a map's scalar computation to whole arrays, where all it consists of is elementwise ops and constants.

    f {
      a = f32[] parameter(0)
      two = f32[] constant(2)
      ROOT m = f32[] multiply(a, two)
    }

    ROOT r = f32[4] map(f32[4] x), dimensions={0}, to_apply=f
    ->
    two = f32[] constant(2)
    twos = f32[4] broadcast(two), dimensions={}
    ROOT r = f32[4] multiply(x, twos)
    """

    name = "map-inliner"
    opcodes = frozenset({"map"})

    def matches(self, i: Instruction) -> bool:
        return is_elementwise(i.to_apply)

    def expand(self, i: Instruction) -> Instruction:
        assert i.parent is not None
        return apply_to_arrays(i.parent, i.to_apply, i.operands, like=i)[0]
