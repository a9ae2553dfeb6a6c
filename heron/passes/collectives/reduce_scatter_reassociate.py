"""reduce-scatter-reassociate: the sum of two reduce-scatters is one reduce-scatter of the sum."""

from __future__ import annotations

from heron.passes.collectives.all_reduce_reassociate import Reassociation
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ReduceScatterReassociate(Reassociation):
    """Combines the operands of two reduce-scatters of one dimension that only one op uses, before they exchange.

    HloModule example, replica_count=2

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    p = f32[2] reduce-scatter(f32[4] x), dimensions={0}, to_apply=sum
    q = f32[2] reduce-scatter(f32[4] y), dimensions={0}, to_apply=sum
    ROOT r = f32[2] add(p, q)
    ->
    HloModule example, replica_count=2

    s = f32[4] add(x, y)
    ROOT p = f32[2] reduce-scatter(s), dimensions={0}, to_apply=sum
    """

    name = "reduce-scatter-reassociate"
    opcode = "reduce-scatter"
