"""Sharded programs of tests, ready for propagation."""

from __future__ import annotations

from heron.hlo.ir.module import Module
from heron.passes.copies.flatten_call_graph import FlattenCallGraph
from heron.passes.framework.context import PassContext
from heron.passes.sharding.constant_splitter import ConstantSplitter
from heron.passes.sharding.sharding_importer import ShardingImporter


def prepared(module: Module, devices: int = 1) -> Module:
    """The module after the passes ahead of propagation; for `devices` where the module does not say how many."""
    if module.num_partitions == 1:
        module.set_counts(module.replica_count, devices)
    for step in (ShardingImporter(), FlattenCallGraph(), ConstantSplitter()):
        PassContext().run_pass(step, module)
    return module
