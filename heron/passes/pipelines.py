"""Pipelines any target may use; those of one target are in ``heron/backends/TARGET/pipeline.py``."""

from __future__ import annotations

from heron.passes.framework import registry
from heron.passes.framework.pipeline import Fixpoint, Pipeline
from heron.passes.framework.registry import get


@registry.named_pipeline("simplify")
def simplify() -> Pipeline:
    """Calls inlined, then everything that only makes a program smaller, until nothing changes any more."""
    return Pipeline(
        "simplify",
        [
            # what a bitcast gives must not depend on layouts from here on
            get("bitcast-decomposer"),
            get("call-inliner"),
            get("dce"),
            get("cse"),
            simplification(),
        ],
    )


def simplification() -> Fixpoint:
    """The loop of simplifying passes; pipelines run it wherever new chances may have come up."""
    return Fixpoint(
        "simplification",
        [
            get("zero-sized-hlo-elimination"),
            get("gather-simplifier"),
            get("scatter-simplifier"),
            get("algebraic-simplifier"),
            get("sort-simplifier"),
            get("tuple-simplifier"),
            get("while-loop-constant-sinking"),
            get("while-loop-simplifier"),
            get("slice-sinker"),
            get("reshape-mover"),
            get("constant-folding"),
            get("conditional-simplifier"),
            get("cse"),
            get("dce"),
        ],
    )


@registry.named_pipeline("fixed-sizes")
def fixed_sizes() -> Pipeline:
    """Bounded dynamic dimensions made fixed ones, before anything that reads shapes as sizes."""
    return Pipeline(
        "fixed-sizes",
        [
            get("call-inliner"),
            get("batchnorm-expander"),  # its counts are sizes
            get("topk-decomposer"),  # so is the length of what it sorts
            get("dynamic-dimension-simplifier"),
            get("get-dimension-size-rewriter"),
            get("dynamic-padder"),
            get("dce"),
        ],
    )
