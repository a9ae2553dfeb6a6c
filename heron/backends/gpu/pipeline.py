"""The HLO passes of the GPU backend, in order."""

from __future__ import annotations

from heron.passes.pipeline import Fixpoint, Pipeline
from heron.passes.registry import get, named_pipeline


def simplification(name: str = "simplification") -> Pipeline:
    """The passes that make programs smaller, round and round until none has anything left to do."""
    return Fixpoint(
        name,
        [
            get("zero-sized-hlo-elimination"),
            get("algebraic-simplifier"),
            get("tuple-simplifier"),
            get("constant-folding"),
            get("cse"),
            get("dce"),
        ],
    )


@named_pipeline("gpu-hlo")
def optimize() -> Pipeline:
    """From the program as given to simple HLO in types and forms the backend has."""
    return Pipeline(
        "hlo",
        [
            get("call-inliner"),
            get("dce"),
            simplification(),
            get("dot-decomposer"),
            simplification("simplification-2"),
            get("layout-assignment"),
        ],
    )


@named_pipeline("gpu-fusion")
def fuse() -> Pipeline:
    """From single ops to fusions: what becomes a kernel."""
    return Pipeline(
        "fused",
        [
            get("instruction-fusion"),
            get("dce"),
            get("fusion-wrapper"),
            get("dce"),
        ],
    )


@named_pipeline("gpu-schedule")
def schedule() -> Pipeline:
    """Copies where two values need one buffer, then an order that keeps little alive."""
    return Pipeline("scheduled", [get("copy-insertion"), get("memory-scheduler")])
