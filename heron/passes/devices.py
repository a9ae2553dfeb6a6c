"""Pipelines of programs for several devices: from global arrays to the program that each device runs."""

from __future__ import annotations

from heron.passes.control_flow.conditional_canonicalizer import ConditionalCanonicalizer
from heron.passes.copies.flatten_call_graph import FlattenCallGraph
from heron.passes.copies.optimize_input_output_buffer_alias import OptimizeInputOutputBufferAlias
from heron.passes.framework.pipeline import Pipeline
from heron.passes.framework.registry import named_pipeline
from heron.passes.layout.bitcast_decomposer import BitcastDecomposer
from heron.passes.pipelines import exchanges
from heron.passes.sharding.auto_sharding import AutoSharding
from heron.passes.sharding.constant_splitter import ConstantSplitter
from heron.passes.sharding.large_reshards import LargeReshards
from heron.passes.sharding.sharding_importer import ShardingImporter
from heron.passes.sharding.sharding_propagation import ShardingPropagation
from heron.passes.sharding.spmd_partitioner import SpmdPartitioner
from heron.passes.simplify.cse import Cse
from heron.passes.simplify.dce import Dce
from heron.passes.simplify.tuple_simplifier import TupleSimplifier
from heron.passes.tools.hlo_descheduler import HloDescheduler


@named_pipeline("sharded")
def sharded() -> Pipeline:
    """A sharding for every value of a program on global arrays."""
    return Pipeline(
        "sharded",
        [
            # what a bitcast gives must not depend on layouts, which parts have not
            BitcastDecomposer(),
            HloDescheduler(),
            ConditionalCanonicalizer(),
            ShardingImporter(),
            # loops with one body would have to carry values of one sharding
            FlattenCallGraph(),
            Dce(),
            # elements of tuples that inlined calls leave are values of their own
            TupleSimplifier(),
            ConstantSplitter(),
            ShardingPropagation(),
            # what nobody fixed may be split otherwise
            AutoSharding(),
        ],
    )


@named_pipeline("partitioned")
def partitioned() -> Pipeline:
    """The program that each device runs on its parts, and fewer and smaller collectives in it."""
    return Pipeline(
        "partitioned",
        [
            SpmdPartitioner(),
            Dce(),
            TupleSimplifier(),
            Cse(),
            exchanges(),
            Cse(),
            Dce(),
            # whoever runs the program takes back what no result has taken the place of
            OptimizeInputOutputBufferAlias(),
            # what is left to say
            LargeReshards(),
        ],
    )


def device_pipelines() -> dict[str, Pipeline]:
    """The pipelines by the stage that each one ends."""
    return {"sharded": sharded(), "partitioned": partitioned()}
