"""The HLO passes of the CPU backend, in order."""

from __future__ import annotations

from heron.backends.memory import bytes_on_cpu
from heron.codegen.native.row_blocks import multiplies_blocks
from heron.passes.framework.pipeline import Pipeline
from heron.passes.framework.registry import get, named_pipeline
from heron.passes.pipelines import simplification


@named_pipeline("cpu-partition")
def partition() -> Pipeline:
    """Calls inlined and what is dead or double gone, so that the rest sees the program as it runs."""
    return Pipeline(
        "partition",
        [
            # an order that came with the program is that of other instructions
            get("hlo-descheduler"),
            # ahead of all passes that know no layouts: what a bitcast gives must not depend on them
            get("bitcast-decomposer"),
            # functions of reductions are called with values of their own types from here on
            get("reducer-operand-caster"),
            # programs printed by a compiler may hold fusions of tuples, and some that no kernel can do
            get("fusion-tuple-flattener"),
            get("fusion-legalizer"),
            # sizes that are asked for though they are known
            get("get-dimension-size-rewriter"),
            # what scans do at a step may hold anything that is expanded below
            get("scan-expander"),
            # makes calls, so ahead of the inliner
            get("rng-expander"),
            get("rng-bit-generator-expander"),
            # one device has nothing to do meanwhile, and pairs are made again for those that have
            get("async-to-sync"),
            # everything below sees one computation a loop body or branch
            get("call-inliner"),
            get("conditional-canonicalizer"),
            # what only other devices or other memories would be for
            get("trivial-collective-remover"),
            get("marker-remover"),
            get("dce"),
            get("cse"),
            # every reduction came with a combiner of its own: fewer for all that follows to look at
            get("computation-deduplicator"),
        ],
    )


@named_pipeline("cpu-optimise")
def optimise() -> Pipeline:
    """Ops the backend lacks written by others, then everything made as small as it gets."""
    return Pipeline(
        "optimise",
        [
            # ops no kernel or library does: each becomes simpler ones, and those are simplified with the rest
            get("dynamic-index-splitter"),
            get("ragged-dot-rewriter"),
            get("scaled-dot-rewriter"),
            get("stochastic-convert-decomposer"),
            get("bitcast-dtypes-expander"),
            get("qr-expander", lapack=False),
            get("eigh-expander", lapack=False),
            get("topk-decomposer"),
            get("permutation-sort-expander"),
            get("operand-upcaster", one_type=False, rounds=False),
            get("integer-convolution-upcaster"),
            get("batchnorm-expander"),
            get("select-and-scatter-expander"),
            # the computations of maps and reductions stand inside kernels, which have no branches
            get("conditional-to-select"),
            get("map-inliner"),
            simplification(),
            # loops and branches, now that their conditions are as simple as they get
            get("while-loop-unroller"),
            get("while-loop-invariant-code-motion"),
            get("while-loop-fusible-sinking"),
            get("conditional-code-motion", move_out=False),
            # dots as libraries take them: transposes that this makes are folded into operands or simplified away
            get("dot-decomposer"),
            get("transpose-folding"),
            get("convolution-canonicalization"),
            simplification(),
            # what sums have in common is summed once
            get("reduction-reuse"),
            # nothing may simplify behind it: that would join the steps of a reduction again
            get("tree-reduction-rewriter", parts=64, least=1 << 15, column_bytes=128),
        ],
    )


@named_pipeline("cpu-layout")
def assign_layouts() -> Pipeline:
    """An order in memory for every value, then what depends on it: forms and types of the machine's own."""
    return Pipeline(
        "layout",
        [
            # what loops are now is what they stay
            get("while-loop-trip-count-annotator"),
            get("layout-assignment"),
            # whatever is in another order becomes row-major: what moves is a transpose from here on
            get("reshape-decomposer"),
            get("move-copy-to-users"),
            get("layout-normalization"),
            # narrow floats computed in f32 where the option math lets roundings between ops go, which then go
            get("float-normalization", excess=True),
            get("simplify-fp-conversions"),
        ],
    )


@named_pipeline("cpu-hlo")
def hlo() -> Pipeline:
    """From the program as given to simple HLO in types and forms the backend has."""
    return Pipeline("hlo", [partition(), optimise(), assign_layouts()])


@named_pipeline("cpu-fusion")
def fuse() -> Pipeline:
    """From single ops to fusions: what becomes a kernel."""
    return Pipeline(
        "fused",
        [
            get("instruction-fusion"),
            get("dce"),
            get("fusion-hints"),
            get("multi-output-fusion", joins_pieces=False),
            get("dce"),
            get("normalization-fusion"),
            get("dce"),
            # what kernels that were joined both compute
            get("cse", layout_sensitive=True, inside=True),
            get("fusion-wrapper"),
            get("dce"),
            # a product with what is around it, now that this is one kernel
            get("row-block-fusion", multiplies=multiplies_blocks),
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
            get("double-buffer-loop-unrolling", least_bytes=4096),
            get("copy-insertion"),
            get("copy-fusion", join=False),
            get("memory-scheduler", cache=1 << 20),
            # does nothing unless memory is short: what is left to save costs time
            get("rematerialization", limit="machine", measure=bytes_on_cpu),
        ],
    )


@named_pipeline("cpu")
def whole() -> Pipeline:
    """All stages in one: from a program as given to what buffers and code are made for."""
    return Pipeline("cpu", [hlo(), fuse(), schedule()])
