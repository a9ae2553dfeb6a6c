"""The pipeline that makes bounded dynamic dimensions fixed ones."""

from __future__ import annotations

from heron.passes.collectives.async_to_sync import AsyncToSync
from heron.passes.control_flow.call_inliner import CallInliner
from heron.passes.dynamic.dynamic_dimension_simplifier import DynamicDimensionSimplifier
from heron.passes.dynamic.dynamic_padder import DynamicPadder
from heron.passes.dynamic.get_dimension_size_rewriter import GetDimensionSizeRewriter
from heron.passes.expand.batchnorm_expander import BatchnormExpander
from heron.passes.expand.topk_decomposer import TopkDecomposer
from heron.passes.framework.pipeline import Pipeline
from heron.passes.framework.registry import named_pipeline
from heron.passes.simplify.dce import Dce


@named_pipeline("fixed-sizes")
def fixed_sizes() -> Pipeline:
    """Bounded dynamic dimensions made fixed ones, before anything that reads shapes as sizes."""
    return Pipeline(
        "fixed-sizes",
        [
            AsyncToSync(),  # what is begun is a call
            CallInliner(),
            BatchnormExpander(),  # its counts are sizes
            TopkDecomposer(),  # so is the length of what it sorts
            DynamicDimensionSimplifier(),
            GetDimensionSizeRewriter(),
            DynamicPadder(),
            Dce(),
        ],
    )
