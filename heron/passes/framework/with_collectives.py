"""A pipeline for programs in which devices exchange values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.hlo.ir.op import Trait
from heron.passes.framework.pipeline import Pipeline
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module
    from heron.passes.framework.context import PassContext


@dataclass(frozen=True, init=False)
class WithCollectives(Pipeline):
    """Runs its steps where a program has collectives of several devices; a program for one costs nothing."""

    def run(self, module: Module, ctx: PassContext) -> bool:
        return exchanges(module) and super().run(module, ctx)


def exchanges(module: Module) -> bool:
    """Whether devices of the program exchange anything."""
    if module.replica_count * module.num_partitions == 1:
        return False
    return any(Trait.COLLECTIVE in i.op.traits for i in module.instructions())
