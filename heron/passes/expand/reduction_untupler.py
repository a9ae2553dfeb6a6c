"""reduction-untupler: reductions to a tuple of one array give the array."""

from __future__ import annotations

from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.passes.framework.registry import register
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ReductionUntupler(Expander):
    """Has reductions of one array, whose function returns a tuple of one value, give an array.

    All other passes know the form without a tuple.

    f {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      s = f32[] add(a, b)
      ROOT t = (f32[]) tuple(s)
    }

    ROOT r = (f32[4]) reduce(f32[4,3] x, f32[] z), dimensions={1}, to_apply=f
    ->
    f {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    sums = f32[4] reduce(x, z), dimensions={1}, to_apply=f
    ROOT r = (f32[4]) tuple(sums)
    """

    name = "reduction-untupler"
    opcodes = having(Trait.REDUCES)
    dynamic = True

    def matches(self, i: Instruction) -> bool:
        return i.shape.is_tuple and len(i.operands) == 2

    def expand(self, i: Instruction) -> Instruction:
        c = home(i)
        assert c.module is not None and i.shape.tuple_shapes is not None
        function = c.module.add_computation(i.to_apply.clone())
        packed = function.root
        if packed.opcode == "tuple":
            function.root = packed.operands[0]
            function.remove_dead_from(packed)
        else:
            function.root = function.add("get-tuple-element", [packed], index=0)
        reduced = c.attach(i.clone(shape=i.shape.tuple_shapes[0]))
        reduced.attrs["to_apply"] = function
        return c.add("tuple", [reduced], i.shape)
