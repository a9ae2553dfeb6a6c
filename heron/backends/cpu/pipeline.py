"""The HLO passes of the CPU backend, in order."""

from __future__ import annotations

from heron.codegen.native.row_blocks import multiplies_blocks
from heron.passes import pipelines as shared
from heron.passes.control_flow.conditional_to_select import ConditionalToSelect
from heron.passes.copies.copy_fusion import CopyFusion
from heron.passes.copies.copy_insertion import CopyInsertion
from heron.passes.copies.double_buffer_loop_unrolling import DoubleBufferLoopUnrolling
from heron.passes.copies.flatten_call_graph import FlattenCallGraph
from heron.passes.expand.batchnorm_expander import BatchnormExpander
from heron.passes.expand.dot_decomposer import DotDecomposer
from heron.passes.expand.map_inliner import MapInliner
from heron.passes.expand.permutation_sort_expander import PermutationSortExpander
from heron.passes.expand.select_and_scatter_expander import SelectAndScatterExpander
from heron.passes.expand.topk_decomposer import TopkDecomposer
from heron.passes.expand.topk_rewriter import TopkRewriter
from heron.passes.expand.tree_reduction_rewriter import TreeReductionRewriter
from heron.passes.framework.pipeline import Pipeline
from heron.passes.framework.registry import named_pipeline
from heron.passes.fusion.fusion_hints import FusionHints
from heron.passes.fusion.fusion_wrapper import FusionWrapper
from heron.passes.fusion.instruction_fusion import InstructionFusion
from heron.passes.fusion.multi_output_fusion import MultiOutputFusion
from heron.passes.fusion.normalization_fusion import NormalizationFusion
from heron.passes.fusion.row_block_fusion import RowBlockFusion
from heron.passes.precision.integer_convolution_upcaster import IntegerConvolutionUpcaster
from heron.passes.precision.operand_upcaster import OperandUpcaster
from heron.passes.schedule.memory_scheduler import MemoryScheduler
from heron.passes.schedule.rematerialization import Rematerialization
from heron.passes.simplify.convolution_canonicalization import ConvolutionCanonicalization
from heron.passes.simplify.cse import Cse
from heron.passes.simplify.dce import Dce
from heron.passes.simplify.reduction_reuse import ReductionReuse
from heron.passes.simplify.transpose_folding import TransposeFolding


@named_pipeline("cpu-partition")
def partition() -> Pipeline:
    """Calls inlined and what is dead or double gone, so that the rest sees the program as it runs."""
    return shared.partition()


@named_pipeline("cpu-optimise")
def optimise() -> Pipeline:
    """Ops the backend lacks written by others, then everything made as small as it gets."""
    return Pipeline(
        "optimise",
        [
            *shared.expansions(),
            TopkRewriter(),
            TopkDecomposer(selects=True),
            PermutationSortExpander(),
            OperandUpcaster(one_type=False, rounds=False),
            IntegerConvolutionUpcaster(),
            BatchnormExpander(),
            SelectAndScatterExpander(),
            # the computations of maps and reductions stand inside kernels, which have no branches
            ConditionalToSelect(),
            MapInliner(),
            shared.simplification(),
            shared.exchanges(),
            *shared.loops(),
            # dots as libraries take them: transposes that this makes are folded into operands or simplified away
            DotDecomposer(),
            TransposeFolding(),
            ConvolutionCanonicalization(),
            shared.simplification(),
            # what sums have in common is summed once
            ReductionReuse(),
            # nothing may simplify behind it: that would join the steps of a reduction again
            TreeReductionRewriter(parts=64, least=1 << 15, column_bytes=128),
        ],
    )


@named_pipeline("cpu-layout")
def assign_layouts() -> Pipeline:
    """An order in memory for every value, then what depends on it: forms and types of the machine's own."""
    return Pipeline(
        "layout",
        [
            *shared.layouts(),
            *shared.narrow_floats(),
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
            InstructionFusion(),
            Dce(),
            FusionHints(),
            MultiOutputFusion(joins_pieces=False),
            Dce(),
            NormalizationFusion(),
            Dce(),
            # what kernels that were joined both compute
            Cse(layout_sensitive=True, inside=True),
            FusionWrapper(),
            Dce(),
            # a product with what is around it, now that this is one kernel
            RowBlockFusion(multiplies=multiplies_blocks),
            Dce(),
            shared.combiners(),
        ],
    )


@named_pipeline("cpu-schedule")
def schedule() -> Pipeline:
    """Copies where two values need one buffer, then an order that keeps little alive."""
    return Pipeline(
        "scheduled",
        [
            FlattenCallGraph(),
            DoubleBufferLoopUnrolling(least_bytes=4096),
            CopyInsertion(),
            CopyFusion(join=False),
            MemoryScheduler(cache=1 << 20),
            # does nothing unless memory is short: what is left to save costs time
            Rematerialization(limit="machine"),
        ],
    )


@named_pipeline("cpu")
def whole() -> Pipeline:
    """All stages in one: from a program as given to what buffers and code are made for."""
    return Pipeline("cpu", [hlo(), fuse(), schedule()])
