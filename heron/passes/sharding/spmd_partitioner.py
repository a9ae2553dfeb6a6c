"""Pass spmd-partitioner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.analysis.sharding.links import weighted
from heron.analysis.sharding.program import ProgramShardings
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.registry import register
from heron.passes.framework.shares import is_partitioned
from heron.passes.sharding.partition.program import partitioned
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module
    from heron.passes.framework.context import PassContext


@register
@dataclass(frozen=True)
class SpmdPartitioner(Pass):
    """Makes the program that every device runs on its parts out of a program on global arrays.

    The sharding of each value decides which part of it a device has. Where an op needs other parts of its operands
    than there are, collectives bring them. A sum over devices is done as late as it can be, so that several sums become
    one, and only the part that is needed is brought.

    HloModule rows, num_partitions=2
    x = f32[8,4] parameter(0), sharding={mesh['x'=2], [{'x'}, {}]}
    y = f32[8,4] negate(x), sharding={mesh['x'=2], [{'x'}, {}]}
    ROOT r = f32[8,4] copy(y), sharding={mesh['x'=2], [{}, {}]}
    ->
    HloModule rows, num_partitions=2
    x = f32[4,4] parameter(0), sharding={mesh['x'=2], [{'x'}, {}]}
    y = f32[4,4] negate(x)
    ROOT r = f32[8,4] all-gather(y), channel_id=1, replica_groups=[1,2]<=[2], dimensions={0},
      use_global_device_ids=true
    """

    name = "spmd-partitioner"
    constraints = (
        Constraint("sharding-propagation", "spmd-partitioner", "values without a sharding would be whole everywhere"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        if module.num_partitions <= 1 or is_partitioned(module):
            return False
        shardings = ProgramShardings.read(module)
        shardings.mesh = weighted(shardings.mesh, ctx.target)
        module.become(partitioned(module, shardings, ctx))
        return True
