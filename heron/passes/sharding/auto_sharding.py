"""Pass auto-sharding."""

from __future__ import annotations

from heron.analysis.sharding.improve import improved
from heron.analysis.sharding.links import weighted
from heron.analysis.sharding.program import ProgramShardings
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.framework.shares import is_partitioned
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AutoSharding(Pass):
    """Changes shardings that propagation chose, where devices then send fewer bytes.

    Shardings of parameters, results, constraints, loops and branches stay. Here the rows of x are gathered once for
    both products, and the last product is summed over devices; three matrices would be gathered otherwise.

    HloModule gated, num_partitions=4
    x = f32[16,32] parameter(0), sharding={mesh['x'=4], [{'x'}, {}]}
    a = f32[32,16] parameter(1), sharding={mesh['x'=4], [{}, {'x'}]}
    b = f32[32,16] parameter(2), sharding={mesh['x'=4], [{}, {'x'}]}
    c = f32[16,32] parameter(3), sharding={mesh['x'=4], [{'x'}, {}]}
    p = f32[16,16] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={mesh['x'=4], [{'x'}, {}]}
    q = f32[16,16] dot(x, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={mesh['x'=4], [{'x'}, {}]}
    m = f32[16,16] multiply(p, q), sharding={mesh['x'=4], [{'x'}, {}]}
    ROOT r = f32[16,32] dot(m, c), lhs_contracting_dims={1}, rhs_contracting_dims={0},
      sharding={mesh['x'=4], [{'x'}, {}]}
    ->
    HloModule gated, num_partitions=4
    x = f32[16,32] parameter(0), sharding={mesh['x'=4], [{'x'}, {}]}
    a = f32[32,16] parameter(1), sharding={mesh['x'=4], [{}, {'x'}]}
    b = f32[32,16] parameter(2), sharding={mesh['x'=4], [{}, {'x'}]}
    c = f32[16,32] parameter(3), sharding={mesh['x'=4], [{'x'}, {}]}
    p = f32[16,16] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={mesh['x'=4], [{}, {'x'}]}
    q = f32[16,16] dot(x, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={mesh['x'=4], [{}, {'x'}]}
    m = f32[16,16] multiply(p, q), sharding={mesh['x'=4], [{}, {'x'}]}
    ROOT r = f32[16,32] dot(m, c), lhs_contracting_dims={1}, rhs_contracting_dims={0},
      sharding={mesh['x'=4], [{'x'}, {}]}
    """

    name = "auto-sharding"
    constraints = (Constraint("sharding-propagation", "auto-sharding", "it begins with the shardings of all values"),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        if module.num_partitions <= 1 or is_partitioned(module):
            return False
        shardings = ProgramShardings.read(module)
        shardings.mesh = weighted(shardings.mesh, ctx.target)
        changes = [change for c in module.non_fusion_computations() for change in improved(c, shardings)]
        for change in changes:
            before, after = shardings.mesh.write(change.before), shardings.mesh.write(change.after)
            ctx.decide(True, f"{after} instead of {before}: fewer bytes are sent", subject=change.value.name)
        if changes:
            shardings.write(module)
        return bool(changes)
