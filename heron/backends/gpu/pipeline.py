"""The HLO passes of the GPU backend, in order."""

from __future__ import annotations

from heron.backends.memory import bytes_on_gpu
from heron.passes.framework.pipeline import Fixpoint, Pipeline
from heron.passes.framework.registry import get, named_pipeline
from heron.passes.fusion.model.tiled import ROW_BYTES
from heron.passes.pipelines import simplification


@named_pipeline("gpu-partition")
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
            get("fusion-legalizer", blocks=True),
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


@named_pipeline("gpu-optimise")
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
            get("cusolver-rewriter"),
            get("attention-expander", kept=True),
            get("topk-decomposer", tiles=True),
            get("permutation-sort-expander"),
            get("sort-rewriter"),
            get("stable-sort-expander"),
            get("dot-algorithm-rewriter"),
            get("operand-upcaster", one_type=False),
            get("batchnorm-expander"),
            # the computations of maps and reductions stand inside kernels, which have no branches
            get("conditional-to-select"),
            get("map-inliner"),
            get("reduce-window-rewriter", block=1024, enough=256, single_pass=True),
            simplification(),
            # loops and branches, now that their conditions are as simple as they get
            get("while-loop-unroller"),
            get("while-loop-invariant-code-motion"),
            get("while-loop-fusible-sinking"),
            get("conditional-code-motion", move_out=False),
            get("while-condition-to-body"),
            # dots as libraries take them: transposes that this makes are folded into operands or simplified away
            get("dot-decomposer"),
            get("transpose-folding"),
            get("dot-strength-reduction"),
            simplification(),
            get("bf16-conversion-folding"),
            # dots that are left and share an operand become one; then once more what that makes possible
            get("dot-merger"),
            Fixpoint("simplification-2", [get("convert-mover"), get("algebraic-simplifier")]),
            # convolutions as cuDNN takes them; the transposes and pads this makes go where they cost least
            get("conv-rewriter", weigh=True),
            get("cudnn-fused-conv-rewriter"),
            get("conv-padding-legalization"),
            get("cudnn-pad-for-convolutions"),
            Fixpoint("simplification-3", [get("convert-mover"), get("algebraic-simplifier")]),
            get("cse"),
            get("dce"),
            # what reductions, sorts and loops call is compared and compiled once where it is the same
            get("computation-deduplicator"),
            # what sums have in common is summed once
            get("reduction-reuse"),
            # nothing may simplify behind these: that would join the steps of a reduction again
            get("scatter-determinism-expander"),
            get("tree-reduction-rewriter"),
        ],
    )


@named_pipeline("gpu-layout")
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
            # forms of dots and broadcasts that depend on layouts
            get("broadcast-canonicalizer"),
            get("dot-dimension-merger"),
            get("dot-normalizer"),
            # ahead of conversions between types, which would hide what follows a product: with what is around it one
            # kernel where that is quicker, else a library's
            get("attention-fusion"),
            get("gemm-fusion"),
            # few tiles and long sums; what a library multiplies, it splits itself
            get("splitk-rewriter", blocks=True),
            get("cublas-pad-for-gemms"),
            get("gemm-rewriter"),
            get("gemm-broadcast-folding"),
            # narrow floats computed in f32 where the option math lets roundings between ops go, which then go
            get("float-normalization", excess=True),
            get("simplify-fp-conversions"),
            get("cse"),
            get("dce"),
        ],
    )


@named_pipeline("gpu-hlo")
def hlo() -> Pipeline:
    """From the program as given to simple HLO in types and forms the backend has."""
    return Pipeline("hlo", [partition(), optimise(), assign_layouts()])


@named_pipeline("gpu-fusion")
def fuse() -> Pipeline:
    """From single ops to fusions: what becomes a kernel."""
    return Pipeline(
        "fused",
        [
            get("variadic-op-splitter"),
            # rows that lie across memory: the emitters of loops would read them again for each reduction
            get("softmax-rewriter-triton"),
            # what a sort computes itself need not be there for others
            get("sort-fusion"),
            # what it reads is computed in its kernel, as far as nobody else reads it
            get("scan-rewriter"),
            get("priority-fusion"),
            get("dce"),
            get("update-fusion"),
            get("fusion-hints"),
            get("multi-output-fusion"),
            get("dce"),
            # as on the CPU, of kernels that are already whole: what they compute of a row twice is then one
            get("normalization-fusion", least=2, rows=1, most_bytes=ROW_BYTES),
            get("cse"),
            get("dce"),
            get("horizontal-fusion"),
            get("fusion-wrapper"),
            # which emitter does a fusion: what tiles are quicker for
            get("fusion-block-level-rewriter"),
            get("dce"),
            # which of a library's algorithms computes what is left to it, now that calls are as they stay
            get("gemm-algorithm-picker"),
            get("conv-algorithm-picker"),
        ],
    )


@named_pipeline("gpu-schedule")
def schedule() -> Pipeline:
    """Copies where two values need one buffer, then an order that keeps little alive."""
    return Pipeline(
        "scheduled",
        [
            # how long a collective takes is nothing fusion asks, so only now does it become two ops
            get("async-collective-creator"),
            get("flatten-call-graph"),
            get("double-buffer-loop-unrolling"),
            get("copy-insertion"),
            get("copy-fusion", least_update=0.0),
            get("memory-scheduler"),
            # and other work while data comes from elsewhere
            get("latency-hiding-scheduler"),
            # does nothing unless memory is short: what is left to save costs time
            get("rematerialization", limit="machine", measure=bytes_on_gpu),
        ],
    )


@named_pipeline("gpu")
def whole() -> Pipeline:
    """All stages in one: from a program as given to what buffers and code are made for."""
    return Pipeline("gpu", [hlo(), fuse(), schedule()])
