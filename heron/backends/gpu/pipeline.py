"""The HLO passes of the GPU backend, in order."""

from __future__ import annotations

from heron.backends.sharing import computes_in_place
from heron.passes.pipeline import Fixpoint, Pipeline
from heron.passes.pipelines import simplification
from heron.passes.registry import get, named_pipeline


@named_pipeline("gpu-hlo")
def optimize() -> Pipeline:
    """From the program as given to simple HLO in types and forms the backend has."""
    return Pipeline(
        "hlo",
        [
            get("fusion-legalizer"),
            get("rng-expander"),
            get("rng-bit-generator-expander"),
            get("call-inliner"),
            get("conditional-canonicalizer"),
            get("dce"),
            get("cse"),
            get("dynamic-index-splitter"),
            get("ragged-dot-rewriter"),
            get("scaled-dot-rewriter"),
            get("stochastic-convert-decomposer"),
            get("bitcast-dtypes-expander"),
            get("qr-expander", lapack=False),
            get("eigh-expander", lapack=False),
            get("topk-decomposer"),
            get("stable-sort-expander"),
            get("batchnorm-expander"),
            get("logistic-expander"),
            get("conditional-to-select"),
            get("map-inliner"),
            get("reduce-window-rewriter", block=1024, enough=256),
            simplification(),
            get("while-loop-unroller"),
            get("while-loop-invariant-code-motion"),
            get("conditional-code-motion", move_out=False),
            get("dot-decomposer"),
            get("transpose-folding"),
            get("dot-strength-reduction"),
            simplification(),
            get("dot-merger"),
            Fixpoint("simplification-2", [get("convert-mover"), get("algebraic-simplifier")]),
            get("cse"),
            get("dce"),
            get("scatter-determinism-expander"),
            get("tree-reduction-rewriter"),
            get("while-loop-trip-count-annotator"),
            get("layout-assignment"),
            get("broadcast-canonicalizer"),
            get("dot-dimension-merger"),
            get("dot-normalizer"),
            get("float-normalization", excess=True),
            get("simplify-fp-conversions"),
            get("cse"),
            get("dce"),
        ],
    )


@named_pipeline("gpu-fusion")
def fuse() -> Pipeline:
    """From single ops to fusions: what becomes a kernel."""
    return Pipeline(
        "fused",
        [
            get("variadic-op-splitter"),
            get("instruction-fusion"),
            get("dce"),
            get("multi-output-fusion"),
            get("dce"),
            get("fusion-wrapper"),
            get("dce"),
        ],
    )


@named_pipeline("gpu-schedule")
def schedule() -> Pipeline:
    """Copies where two values need one buffer, then an order that keeps little alive."""
    return Pipeline(
        "scheduled",
        [
            get("flatten-call-graph"),
            get("copy-insertion", can_share=computes_in_place),
            get("memory-scheduler"),
        ],
    )


@named_pipeline("gpu")
def whole() -> Pipeline:
    """All of the above in one: from a program as given to what buffers and code are made for."""
    return Pipeline("gpu", [optimize(), fuse(), schedule()])
