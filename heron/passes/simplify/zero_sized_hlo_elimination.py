"""zero-sized-hlo-elimination: arrays without elements need no computing."""

from __future__ import annotations

import numpy as np

from heron.hlo.facts import is_given
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import constant
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ZeroSizedHloElimination(Pass):
    """Replaces arrays that have no elements by empty constants.

    e = f32[0,4] exponential(f32[0,4] x)
    ROOT r = f32[4] reduce(e, f32[] init), dimensions={0}, to_apply=sum
    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }
    ->
    e = f32[0,4] constant({})
    ROOT r = f32[4] reduce(e, init), dimensions={0}, to_apply=sum
    """

    name = "zero-sized-hlo-elimination"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for i in c.instructions:
                shape = i.shape
                if shape.num_elements or not shape.is_array or any(shape.dynamic):
                    continue
                if is_given(i) or i.parent is None:
                    continue
                if i.has_side_effect or Trait.CONTROL_FLOW in i.op.traits:
                    continue
                empty = Literal(shape, np.empty(shape.dims, shape.element_type.dtype))
                c.replace(i, constant(c, empty, like=i))
                changed = True
        return changed
