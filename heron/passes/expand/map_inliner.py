"""map-inliner: maps become the elementwise ops they apply."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.instruction import Instruction
from heron.passes.expand.expander import Expander
from heron.passes.registry import register


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
        return all(k.op.is_elementwise or k.opcode in ("parameter", "constant") for k in i.to_apply.instructions)

    def expand(self, i: Instruction) -> Instruction:
        c = i.parent
        assert c is not None
        whole: dict[Instruction, Instruction] = {}
        for k in i.to_apply.post_order():
            if k.opcode == "parameter":
                whole[k] = i.operands[k.attrs["number"]]
                continue
            shape = k.shape.with_dims(i.shape.dims).with_default_layout()
            if k.opcode == "constant":
                scalar = c.attach(k.clone())
                whole[k] = c.add("broadcast", [scalar], shape, dimensions=()) if shape.rank else scalar
            else:
                whole[k] = c.add(k.opcode, [whole[o] for o in k.operands], shape, like=i, **k.attrs)
        return whole[i.to_apply.root]
