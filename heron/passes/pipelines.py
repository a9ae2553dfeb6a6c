"""Pipelines any target may use; those of one target are in ``heron/backends/TARGET/pipeline.py``."""

from __future__ import annotations

from heron.passes.collectives.all_gather_broadcast_reorder import AllGatherBroadcastReorder
from heron.passes.collectives.all_gather_combiner import AllGatherCombiner
from heron.passes.collectives.all_gather_dynamic_slice_permuted_offset_simplifier import (
    AllGatherDynamicSlicePermutedOffsetSimplifier,
)
from heron.passes.collectives.all_gather_dynamic_slice_simplifier import AllGatherDynamicSliceSimplifier
from heron.passes.collectives.all_gather_optimizer import AllGatherOptimizer
from heron.passes.collectives.all_gather_pad_ds_simplifier import AllGatherPadDsSimplifier
from heron.passes.collectives.all_gather_remove_degenerate_dims import AllGatherRemoveDegenerateDims
from heron.passes.collectives.all_reduce_combiner import AllReduceCombiner
from heron.passes.collectives.all_reduce_cross_combiner import AllReduceCrossCombiner
from heron.passes.collectives.all_reduce_folder import AllReduceFolder
from heron.passes.collectives.all_reduce_of_one_rewriter import AllReduceOfOneRewriter
from heron.passes.collectives.all_reduce_reassociate import AllReduceReassociate
from heron.passes.collectives.all_reduce_reduce_scatter_reorder import AllReduceReduceScatterReorder
from heron.passes.collectives.all_reduce_simplifier import AllReduceSimplifier
from heron.passes.collectives.all_reduce_splitter import AllReduceSplitter
from heron.passes.collectives.async_to_sync import AsyncToSync
from heron.passes.collectives.canonicalize_all_gather_for_cse import CanonicalizeAllGatherForCse
from heron.passes.collectives.collective_cse import CollectiveCse
from heron.passes.collectives.collective_permute_combiner import CollectivePermuteCombiner
from heron.passes.collectives.collective_pipeliner import CollectivePipeliner
from heron.passes.collectives.collective_quantizer import CollectiveQuantizer
from heron.passes.collectives.collective_select_folder import CollectiveSelectFolder
from heron.passes.collectives.ragged_all_to_all_canonicalizer import RaggedAllToAllCanonicalizer
from heron.passes.collectives.reduce_scatter_combiner import ReduceScatterCombiner
from heron.passes.collectives.reduce_scatter_creator import ReduceScatterCreator
from heron.passes.collectives.reduce_scatter_reassociate import ReduceScatterReassociate
from heron.passes.collectives.trivial_collective_remover import TrivialCollectiveRemover
from heron.passes.collectives.while_loop_all_reduce_code_motion import WhileLoopAllReduceCodeMotion
from heron.passes.collectives.while_loop_last_exchange_remover import WhileLoopLastExchangeRemover
from heron.passes.control_flow.call_inliner import CallInliner
from heron.passes.control_flow.computation_deduplicator import ComputationDeduplicator
from heron.passes.control_flow.conditional_canonicalizer import ConditionalCanonicalizer
from heron.passes.control_flow.conditional_code_motion import ConditionalCodeMotion
from heron.passes.control_flow.conditional_simplifier import ConditionalSimplifier
from heron.passes.control_flow.while_loop_constant_sinking import WhileLoopConstantSinking
from heron.passes.control_flow.while_loop_fusible_sinking import WhileLoopFusibleSinking
from heron.passes.control_flow.while_loop_invariant_code_motion import WhileLoopInvariantCodeMotion
from heron.passes.control_flow.while_loop_simplifier import WhileLoopSimplifier
from heron.passes.control_flow.while_loop_trip_count_annotator import WhileLoopTripCountAnnotator
from heron.passes.control_flow.while_loop_unroller import WhileLoopUnroller
from heron.passes.dynamic.get_dimension_size_rewriter import GetDimensionSizeRewriter
from heron.passes.expand.bitcast_dtypes_expander import BitcastDtypesExpander
from heron.passes.expand.dynamic_index_splitter import DynamicIndexSplitter
from heron.passes.expand.eigh_expander import EighExpander
from heron.passes.expand.qr_expander import QrExpander
from heron.passes.expand.ragged_dot_rewriter import RaggedDotRewriter
from heron.passes.expand.rng_bit_generator_expander import RngBitGeneratorExpander
from heron.passes.expand.rng_expander import RngExpander
from heron.passes.expand.scaled_dot_rewriter import ScaledDotRewriter
from heron.passes.expand.scan_expander import ScanExpander
from heron.passes.expand.stochastic_convert_decomposer import StochasticConvertDecomposer
from heron.passes.framework.base import Pass
from heron.passes.framework.pipeline import Fixpoint, Pipeline
from heron.passes.framework.registry import named_pipeline
from heron.passes.framework.with_collectives import WithCollectives
from heron.passes.fusion.fusion_legalizer import FusionLegalizer
from heron.passes.fusion.fusion_tuple_flattener import FusionTupleFlattener
from heron.passes.layout.bitcast_decomposer import BitcastDecomposer
from heron.passes.layout.layout_assignment import LayoutAssignment
from heron.passes.layout.layout_normalization import LayoutNormalization
from heron.passes.layout.marker_remover import MarkerRemover
from heron.passes.layout.move_copy_to_users import MoveCopyToUsers
from heron.passes.layout.reshape_decomposer import ReshapeDecomposer
from heron.passes.precision.float_normalization import FloatNormalization
from heron.passes.precision.reducer_operand_caster import ReducerOperandCaster
from heron.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from heron.passes.simplify.constant_folding import ConstantFolding
from heron.passes.simplify.cse import Cse
from heron.passes.simplify.dce import Dce
from heron.passes.simplify.gather_simplifier import GatherSimplifier
from heron.passes.simplify.reshape_mover import ReshapeMover
from heron.passes.simplify.scatter_simplifier import ScatterSimplifier
from heron.passes.simplify.simplify_fp_conversions import SimplifyFpConversions
from heron.passes.simplify.slice_sinker import SliceSinker
from heron.passes.simplify.sort_simplifier import SortSimplifier
from heron.passes.simplify.tuple_simplifier import TupleSimplifier
from heron.passes.simplify.zero_sized_hlo_elimination import ZeroSizedHloElimination
from heron.passes.tools.hlo_descheduler import HloDescheduler


@named_pipeline("simplify")
def simplify() -> Pipeline:
    """Calls inlined, then everything that only makes a program smaller, until nothing changes any more."""
    return Pipeline(
        "simplify",
        [
            # what a bitcast gives must not depend on layouts from here on
            BitcastDecomposer(),
            CallInliner(),
            Dce(),
            Cse(),
            simplification(),
        ],
    )


def simplification() -> Fixpoint:
    """The loop of simplifying passes; pipelines run it wherever new chances may have come up."""
    return Fixpoint(
        "simplification",
        [
            ZeroSizedHloElimination(),
            GatherSimplifier(),
            ScatterSimplifier(),
            AlgebraicSimplifier(),
            SortSimplifier(),
            TupleSimplifier(),
            WhileLoopConstantSinking(),
            WhileLoopSimplifier(),
            SliceSinker(),
            ReshapeMover(),
            ConstantFolding(),
            ConditionalSimplifier(),
            Cse(),
            Dce(),
        ],
    )


@named_pipeline("exchanges")
def exchanges(*more: Pass) -> Pipeline:
    """Fewer and smaller exchanges between devices, of programs that were partitioned here or came so."""
    return WithCollectives(
        "exchanges",
        [
            # integers that every backend reads
            RaggedAllToAllCanonicalizer(element_type="s32", enough_bits=32),
            # sums of sums are one, and what is the same on all devices needs none
            AllReduceSimplifier(),
            AllReduceReassociate(),
            ReduceScatterReassociate(),
            AllReduceFolder(),
            AllReduceCrossCombiner(),
            AllReduceSplitter(),
            AllGatherOptimizer(),
            # what is cut at once need not be whole before
            AllGatherDynamicSliceSimplifier(),
            AllGatherDynamicSlicePermutedOffsetSimplifier(),
            AllGatherPadDsSimplifier(),
            ReduceScatterCreator(),
            AllReduceReduceScatterReorder(),
            AllGatherBroadcastReorder(),
            # what no sender chooses need not be computed before the exchange
            CollectiveSelectFolder(),
            # fewer bytes an element
            CollectiveQuantizer(),
            # once instead of once a round
            WhileLoopAllReduceCodeMotion(),
            CanonicalizeAllGatherForCse(),
            CollectiveCse(),
            # in another round than the one that computes with them, where an option asks for it
            CollectivePipeliner(by_option=True),
            CollectivePipeliner(direction="late", by_option=True),
            # no more than somebody reads, from no more devices than have something
            WhileLoopLastExchangeRemover(),
            AllReduceOfOneRewriter(),
            # more of them can be combined
            AllGatherRemoveDegenerateDims(),
            *more,
        ],
    )


def combiners() -> Pipeline:
    """Collectives that do not depend on each other as one; behind fusion, which does not look into their tuples."""
    steps = [AllGatherCombiner(), ReduceScatterCombiner(), AllReduceCombiner(), CollectivePermuteCombiner()]
    return WithCollectives("combiners", steps)


def partition(*, blocks: bool = False) -> Pipeline:
    """Inlines calls and removes what is dead or computed twice: the passes after it see the program as it runs.

    Args:
        blocks: keep fusions that a program brings with tiles of its own.
    """
    return Pipeline(
        "partition",
        [
            # an order that came with the program is that of other instructions
            HloDescheduler(),
            # ahead of all passes that know no layouts: what a bitcast gives must not depend on them
            BitcastDecomposer(),
            # functions of reductions are called with values of their own types from here on
            ReducerOperandCaster(),
            # programs printed by a compiler may hold fusions of tuples, and some that no kernel can do
            FusionTupleFlattener(),
            FusionLegalizer(blocks=blocks),
            # sizes that are asked for though they are known
            GetDimensionSizeRewriter(),
            # what scans do at a step may hold anything that is expanded below
            ScanExpander(),
            # makes calls, so ahead of the inliner
            RngExpander(),
            RngBitGeneratorExpander(),
            # one device has nothing to do meanwhile, and pairs are made again for those that have
            AsyncToSync(),
            # everything below sees one computation a loop body or branch
            CallInliner(),
            ConditionalCanonicalizer(),
            # what only other devices or other memories would be for
            TrivialCollectiveRemover(),
            MarkerRemover(),
            Dce(),
            Cse(),
            # every reduction came with a combiner of its own: fewer for all that follows to look at
            ComputationDeduplicator(),
        ],
    )


def expansions() -> list[Pass]:
    """Ops that no kernel or library computes become simpler ones, which are simplified with the rest."""
    return [
        DynamicIndexSplitter(),
        RaggedDotRewriter(),
        ScaledDotRewriter(),
        StochasticConvertDecomposer(),
        BitcastDtypesExpander(),
        QrExpander(lapack=False),
        EighExpander(lapack=False),
    ]


def loops() -> list[Pass]:
    """Loops and branches, once their conditions are as simple as they get."""
    return [
        WhileLoopUnroller(),
        WhileLoopInvariantCodeMotion(),
        WhileLoopFusibleSinking(),
        ConditionalCodeMotion(move_out=False),
    ]


def layouts() -> list[Pass]:
    """An order in memory for every value; then all values are row-major, and transposes move elements."""
    return [
        # what loops are now is what they stay
        WhileLoopTripCountAnnotator(),
        LayoutAssignment(),
        # whatever is in another order becomes row-major: what moves is a transpose from here on
        ReshapeDecomposer(),
        MoveCopyToUsers(),
        LayoutNormalization(),
    ]


def narrow_floats() -> list[Pass]:
    """Narrow floats are computed in f32 where the option math allows it; conversions between two ops then go."""
    return [
        FloatNormalization(excess=True),
        SimplifyFpConversions(),
    ]
