"""The HLO passes of the GPU backend, in order."""

from __future__ import annotations

from heron.passes import pipelines as shared
from heron.passes.calls.attention_expander import AttentionExpander
from heron.passes.calls.conv_algorithm_picker import ConvAlgorithmPicker
from heron.passes.calls.conv_padding_legalization import ConvPaddingLegalization
from heron.passes.calls.conv_rewriter import ConvRewriter
from heron.passes.calls.cublas_pad_for_gemms import CublasPadForGemms
from heron.passes.calls.cudnn_fused_conv_rewriter import CudnnFusedConvRewriter
from heron.passes.calls.cudnn_pad_for_convolutions import CudnnPadForConvolutions
from heron.passes.calls.cusolver_rewriter import CusolverRewriter
from heron.passes.calls.gemm_algorithm_picker import GemmAlgorithmPicker
from heron.passes.calls.gemm_broadcast_folding import GemmBroadcastFolding
from heron.passes.calls.gemm_rewriter import GemmRewriter
from heron.passes.calls.scan_rewriter import ScanRewriter
from heron.passes.calls.sort_rewriter import SortRewriter
from heron.passes.collectives.all_reduce_promotion import AllReducePromotion
from heron.passes.collectives.async_collective_creator import AsyncCollectiveCreator
from heron.passes.collectives.collective_major_dimension import CollectiveMajorDimension
from heron.passes.collectives.collective_reduction_expander import CollectiveReductionExpander
from heron.passes.control_flow.computation_deduplicator import ComputationDeduplicator
from heron.passes.control_flow.conditional_to_select import ConditionalToSelect
from heron.passes.control_flow.while_condition_to_body import WhileConditionToBody
from heron.passes.copies.copy_fusion import CopyFusion
from heron.passes.copies.copy_insertion import CopyInsertion
from heron.passes.copies.double_buffer_loop_unrolling import DoubleBufferLoopUnrolling
from heron.passes.copies.flatten_call_graph import FlattenCallGraph
from heron.passes.expand.batchnorm_expander import BatchnormExpander
from heron.passes.expand.dot_decomposer import DotDecomposer
from heron.passes.expand.map_inliner import MapInliner
from heron.passes.expand.permutation_sort_expander import PermutationSortExpander
from heron.passes.expand.reduce_window_rewriter import ReduceWindowRewriter
from heron.passes.expand.scatter_determinism_expander import ScatterDeterminismExpander
from heron.passes.expand.stable_sort_expander import StableSortExpander
from heron.passes.expand.topk_decomposer import TopkDecomposer
from heron.passes.expand.tree_reduction_rewriter import TreeReductionRewriter
from heron.passes.framework.late import Late
from heron.passes.framework.pipeline import Fixpoint, Pipeline
from heron.passes.framework.registry import named_pipeline
from heron.passes.fusion.attention_fusion import AttentionFusion
from heron.passes.fusion.fusion_block_level_rewriter import FusionBlockLevelRewriter
from heron.passes.fusion.fusion_hints import FusionHints
from heron.passes.fusion.fusion_wrapper import FusionWrapper
from heron.passes.fusion.gemm_fusion import GemmFusion
from heron.passes.fusion.horizontal_fusion import HorizontalFusion
from heron.passes.fusion.model.tiled import ROW_BYTES
from heron.passes.fusion.multi_output_fusion import MultiOutputFusion
from heron.passes.fusion.normalization_fusion import NormalizationFusion
from heron.passes.fusion.priority_fusion import PriorityFusion
from heron.passes.fusion.softmax_rewriter_triton import SoftmaxRewriterTriton
from heron.passes.fusion.sort_fusion import SortFusion
from heron.passes.fusion.update_fusion import UpdateFusion
from heron.passes.precision.bf16_conversion_folding import Bf16ConversionFolding
from heron.passes.precision.dot_algorithm_rewriter import DotAlgorithmRewriter
from heron.passes.precision.operand_upcaster import OperandUpcaster
from heron.passes.schedule.latency_hiding_scheduler import LatencyHidingScheduler
from heron.passes.schedule.memory_scheduler import MemoryScheduler
from heron.passes.schedule.rematerialization import Rematerialization
from heron.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from heron.passes.simplify.broadcast_canonicalizer import BroadcastCanonicalizer
from heron.passes.simplify.convert_mover import ConvertMover
from heron.passes.simplify.cse import Cse
from heron.passes.simplify.dce import Dce
from heron.passes.simplify.dot_dimension_merger import DotDimensionMerger
from heron.passes.simplify.dot_merger import DotMerger
from heron.passes.simplify.dot_normalizer import DotNormalizer
from heron.passes.simplify.dot_strength_reduction import DotStrengthReduction
from heron.passes.simplify.reduction_reuse import ReductionReuse
from heron.passes.simplify.splitk_rewriter import SplitkRewriter
from heron.passes.simplify.transpose_folding import TransposeFolding
from heron.passes.simplify.variadic_op_splitter import VariadicOpSplitter


@named_pipeline("gpu-partition")
def partition() -> Pipeline:
    """Calls inlined and what is dead or double gone, so that the rest sees the program as it runs."""
    return shared.partition(blocks=True, offload=True)


@named_pipeline("gpu-optimise")
def optimise() -> Pipeline:
    """Ops the backend lacks written by others, then everything made as small as it gets."""
    return Pipeline(
        "optimise",
        [
            *shared.expansions(),
            CusolverRewriter(),
            AttentionExpander(kept=True),
            TopkDecomposer(tiles=True),
            PermutationSortExpander(),
            SortRewriter(),
            StableSortExpander(),
            DotAlgorithmRewriter(),
            OperandUpcaster(one_type=False),
            BatchnormExpander(),
            # fewer exchanges first; then what NCCL takes: sums of types that it adds up, its own reductions, and pieces
            # that lie in one place. Ahead of the inliner, for other reductions become maps
            shared.exchanges(AllReducePromotion(), CollectiveReductionExpander(), CollectiveMajorDimension()),
            # the computations of maps and reductions stand inside kernels, which have no branches
            ConditionalToSelect(),
            MapInliner(),
            ReduceWindowRewriter(block=1024, enough=256, single_pass=True),
            shared.simplification(),
            *shared.loops(),
            WhileConditionToBody(),
            # dots as libraries take them: transposes that this makes are folded into operands or simplified away
            DotDecomposer(),
            TransposeFolding(),
            DotStrengthReduction(),
            shared.simplification(),
            Bf16ConversionFolding(),
            # dots that are left and share an operand become one; then once more what that makes possible
            DotMerger(),
            Fixpoint("simplification-2", [ConvertMover(), AlgebraicSimplifier()]),
            # convolutions as cuDNN takes them; the transposes and pads this makes go where they cost least
            ConvRewriter(weigh=True),
            CudnnFusedConvRewriter(),
            ConvPaddingLegalization(),
            CudnnPadForConvolutions(),
            Fixpoint("simplification-3", [ConvertMover(), AlgebraicSimplifier()]),
            Cse(),
            Dce(),
            # what reductions, sorts and loops call is compared and compiled once where it is the same
            ComputationDeduplicator(),
            # what sums have in common is summed once
            ReductionReuse(),
            # nothing may simplify behind these: that would join the steps of a reduction again
            ScatterDeterminismExpander(),
            TreeReductionRewriter(),
        ],
    )


@named_pipeline("gpu-layout")
def assign_layouts() -> Pipeline:
    """An order in memory for every value, then what depends on it: forms and types of the machine's own."""
    return Pipeline(
        "layout",
        [
            *shared.layouts(),
            # forms of dots and broadcasts that depend on layouts
            BroadcastCanonicalizer(),
            DotDimensionMerger(),
            DotNormalizer(),
            # ahead of conversions between types, which would hide what follows a product: with what is around it one
            # kernel where that is quicker, else a library's
            AttentionFusion(),
            GemmFusion(),
            # few tiles and long sums; what a library multiplies, it splits itself
            SplitkRewriter(blocks=True),
            CublasPadForGemms(),
            GemmRewriter(),
            GemmBroadcastFolding(),
            *shared.narrow_floats(),
            Cse(),
            Dce(),
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
            VariadicOpSplitter(),
            # rows that lie across memory: the emitters of loops would read them again for each reduction
            SoftmaxRewriterTriton(),
            # what a sort computes itself need not be there for others
            SortFusion(),
            # what it reads is computed in its kernel, as far as nobody else reads it
            ScanRewriter(),
            PriorityFusion(),
            Dce(),
            UpdateFusion(),
            FusionHints(),
            MultiOutputFusion(),
            Dce(),
            # as on the CPU, of kernels that are already whole: what they compute of a row twice is then one
            NormalizationFusion(rows=1, most_bytes=ROW_BYTES),
            Cse(),
            Dce(),
            HorizontalFusion(),
            # numbers that joined kernels compute alike: a learning rate, a power of the step
            Cse(inside=True),
            FusionWrapper(),
            # which emitter does a fusion: what tiles are quicker for
            FusionBlockLevelRewriter(),
            Dce(),
            # which of a library's algorithms computes what is left to it, now that calls are as they stay
            GemmAlgorithmPicker(),
            ConvAlgorithmPicker(),
            shared.combiners(),
        ],
    )


@named_pipeline("gpu-schedule")
def schedule() -> Pipeline:
    """Copies where two values need one buffer, then an order that keeps little alive."""
    return Pipeline(
        "scheduled",
        [
            # how long a collective takes is nothing fusion asks, so only now does it become two ops
            AsyncCollectiveCreator(),
            FlattenCallGraph(),
            # what the program keeps in the host's memory is copied there, and nothing is fused any more
            Late("copies.host_offloader", {"custom-call"}),
            DoubleBufferLoopUnrolling(),
            CopyInsertion(),
            CopyFusion(least_update=0.0),
            MemoryScheduler(),
            # and other work while data comes from elsewhere
            LatencyHidingScheduler(),
            # does nothing unless memory is short: what is left to save costs time
            Rematerialization(limit="machine"),
        ],
    )


@named_pipeline("gpu")
def whole() -> Pipeline:
    """All stages in one: from a program as given to what buffers and code are made for."""
    return Pipeline("gpu", [hlo(), fuse(), schedule()])
