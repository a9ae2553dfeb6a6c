"""The HLO passes of the CPU backend, in order."""

from __future__ import annotations

from heron.backends.sharing import computes_in_place
from heron.passes.pipeline import Pipeline
from heron.passes.pipelines import simplification
from heron.passes.registry import get, named_pipeline


@named_pipeline("cpu-hlo")
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
            get("operand-upcaster"),
            get("batchnorm-expander"),
            get("logistic-expander"),
            get("conditional-to-select"),
            get("map-inliner"),
            simplification(),
            get("while-loop-unroller"),
            get("while-loop-invariant-code-motion"),
            get("conditional-code-motion", move_out=False),
            get("dot-decomposer"),
            get("transpose-folding"),
            get("convolution-canonicalization"),
            simplification(),
            get("tree-reduction-rewriter", parts=64, least=1 << 15),
            get("while-loop-trip-count-annotator"),
            get("layout-assignment"),
            get("float-normalization", excess=True),
            get("simplify-fp-conversions"),
        ],
    )


@named_pipeline("cpu-fusion")
def fuse() -> Pipeline:
    """From single ops to fusions: what becomes a kernel."""
    return Pipeline(
        "fused",
        [
            get("instruction-fusion"),
            get("dce"),
            get("multi-output-fusion"),
            get("dce"),
            get("fusion-wrapper"),
            get("dce"),
        ],
    )


@named_pipeline("cpu-schedule")
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


@named_pipeline("cpu")
def whole() -> Pipeline:
    """All of the above in one: from a program as given to what buffers and code are made for."""
    return Pipeline("cpu", [optimize(), fuse(), schedule()])
