"""Sharded programs of tests, ready for propagation."""

from __future__ import annotations

import itertools

from heron.hlo.ir.module import Module
from heron.passes.devices import sharded
from heron.passes.framework.context import PassContext
from heron.passes.sharding.sharding_propagation import ShardingPropagation


def prepared(module: Module, devices: int = 1) -> Module:
    """The module after the passes ahead of propagation; for `devices` where the module does not say how many."""
    if module.num_partitions == 1:
        module.set_counts(module.replica_count, devices)
    for step in itertools.takewhile(lambda step: not isinstance(step, ShardingPropagation), sharded().steps):
        PassContext().run_pass(step, module)
    return module
