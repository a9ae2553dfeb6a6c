"""Pipelines any target may use; those of one target are in ``heron/backends/TARGET/pipeline.py``."""

from __future__ import annotations

from heron.hlo.calls.markers import MARKING
from heron.hlo.facts import has_start_operands, having, opcodes
from heron.hlo.ir.op import Trait
from heron.passes.collectives.async_to_sync import AsyncToSync
from heron.passes.collectives.trivial_collective_remover import TrivialCollectiveRemover
from heron.passes.control_flow.computation_deduplicator import ComputationDeduplicator
from heron.passes.framework.base import Pass
from heron.passes.framework.late import Late
from heron.passes.framework.pipeline import Fixpoint, Pipeline
from heron.passes.framework.registry import named_pipeline
from heron.passes.framework.with_collectives import WithCollectives
from heron.passes.layout.layout_assignment import LayoutAssignment
from heron.passes.layout.layout_normalization import LayoutNormalization
from heron.passes.precision.float_normalization import FloatNormalization
from heron.passes.precision.reducer_operand_caster import ReducerOperandCaster
from heron.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from heron.passes.simplify.constant_folding import ConstantFolding
from heron.passes.simplify.cse import Cse
from heron.passes.simplify.dce import Dce
from heron.passes.simplify.reshape_mover import ReshapeMover
from heron.passes.simplify.zero_sized_hlo_elimination import ZeroSizedHloElimination
from heron.passes.tools.hlo_descheduler import HloDescheduler


@named_pipeline("simplify")
def simplify() -> Pipeline:
    """Calls inlined, then everything that only makes a program smaller, until nothing changes any more."""
    return Pipeline(
        "simplify",
        [
            # what a bitcast gives must not depend on layouts from here on
            Late("layout.bitcast_decomposer", {"bitcast"}),
            Late("control_flow.call_inliner", {"call"}),
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
            Late("simplify.gather_simplifier", {"gather"}),
            Late("simplify.scatter_simplifier", {"scatter"}),
            AlgebraicSimplifier(),
            Late("simplify.sort_simplifier", {"sort"}),
            Late("simplify.tuple_simplifier", having(Trait.TUPLE)),
            Late("control_flow.while_loop_constant_sinking", {"while"}),
            Late("control_flow.while_loop_simplifier", {"while"}),
            Late("simplify.slice_sinker", {"slice"}),
            ReshapeMover(),
            ConstantFolding(),
            Late("control_flow.conditional_simplifier", {"conditional"}),
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
            Late("collectives.ragged_all_to_all_canonicalizer", element_type="s32", enough_bits=32),
            # sums of sums are one, and what is the same on all devices needs none
            Late("collectives.all_reduce_simplifier"),
            Late("collectives.all_reduce_reassociate"),
            Late("collectives.reduce_scatter_reassociate"),
            Late("collectives.all_reduce_folder"),
            Late("collectives.all_reduce_cross_combiner"),
            Late("collectives.all_reduce_splitter"),
            Late("collectives.all_gather_optimizer"),
            # what is cut at once need not be whole before
            Late("collectives.all_gather_dynamic_slice_simplifier"),
            Late("collectives.all_gather_dynamic_slice_permuted_offset_simplifier"),
            Late("collectives.all_gather_pad_ds_simplifier"),
            Late("collectives.reduce_scatter_creator"),
            Late("collectives.all_reduce_reduce_scatter_reorder"),
            Late("collectives.all_gather_broadcast_reorder"),
            # what no sender chooses need not be computed before the exchange
            Late("collectives.collective_select_folder"),
            # fewer bytes an element
            Late("collectives.collective_quantizer"),
            # once instead of once a round
            Late("collectives.while_loop_all_reduce_code_motion"),
            Late("collectives.canonicalize_all_gather_for_cse"),
            Late("collectives.collective_cse"),
            # in another round than the one that computes with them, where an option asks for it
            Late("collectives.collective_pipeliner", by_option=True),
            Late("collectives.collective_pipeliner", direction="late", by_option=True),
            # no more than somebody reads, from no more devices than have something
            Late("collectives.while_loop_last_exchange_remover"),
            Late("collectives.all_reduce_of_one_rewriter"),
            # more of them can be combined
            Late("collectives.all_gather_remove_degenerate_dims"),
            *more,
        ],
    )


def combiners() -> Pipeline:
    """Collectives that do not depend on each other as one; behind fusion, which does not look into their tuples."""
    steps = [
        Late("collectives.all_gather_combiner"),
        Late("collectives.reduce_scatter_combiner"),
        Late("collectives.all_reduce_combiner"),
        Late("collectives.collective_permute_combiner"),
    ]
    return WithCollectives("combiners", steps)


def partition(*, blocks: bool = False, offload: bool = False) -> Pipeline:
    """Inlines calls and removes what is dead or computed twice: the passes after it see the program as it runs.

    Args:
        blocks: keep fusions that a program brings with tiles of its own.
        offload: whether the backend keeps arrays in the host's memory where the program says so.
    """
    return Pipeline(
        "partition",
        [
            # an order that came with the program is that of other instructions
            HloDescheduler(),
            # ahead of all passes that know no layouts: what a bitcast gives must not depend on them
            Late("layout.bitcast_decomposer", {"bitcast"}),
            # functions of reductions are called with values of their own types from here on
            ReducerOperandCaster(),
            Late("expand.reduction_untupler", having(Trait.REDUCES)),
            # programs printed by a compiler may hold fusions of tuples, and some that no kernel can do
            Late("fusion.fusion_tuple_flattener", {"fusion"}),
            Late("fusion.fusion_legalizer", {"fusion"}, blocks=blocks),
            # sizes that are asked for though they are known
            Late("dynamic.get_dimension_size_rewriter", having(Trait.SIZES)),
            # what scans do at a step may hold anything that is expanded below
            Late("expand.scan_expander", {"scan"}),
            # makes calls, so ahead of the inliner
            Late("expand.rng_expander", having(Trait.RANDOM)),
            Late("expand.rng_bit_generator_expander", {"rng-bit-generator"}),
            # one device has nothing to do meanwhile, and pairs are made again for those that have
            AsyncToSync(),
            # everything below sees one computation a loop body or branch
            Late("control_flow.call_inliner", {"call"}),
            Late("control_flow.conditional_canonicalizer", {"conditional"}),
            # what only other devices or other memories would be for
            TrivialCollectiveRemover(),
            Late("layout.marker_remover", MARKING, offload=offload),
            Dce(),
            Cse(),
            # every reduction came with a combiner of its own: fewer for all that follows to look at
            ComputationDeduplicator(),
        ],
    )


def expansions() -> list[Pass]:
    """Ops that no kernel or library computes become simpler ones, which are simplified with the rest."""
    return [
        Late("expand.dynamic_index_splitter", opcodes(has_start_operands)),
        Late("expand.ragged_dot_rewriter", {"ragged-dot"}),
        Late("expand.scaled_dot_rewriter", {"scaled-dot"}),
        Late("expand.stochastic_convert_decomposer", {"stochastic-convert"}),
        Late("expand.bitcast_dtypes_expander", {"bitcast-convert"}),
        Late("expand.qr_expander", {"custom-call"}, lapack=False),
        Late("expand.eigh_expander", {"custom-call"}, lapack=False),
        Late("expand.sparse_product_expander", {"custom-call"}),
    ]


def loops(**unrolling: int) -> list[Pass]:
    """Loops and branches, once their conditions are as simple as they get; ``unrolling``: options of the unroller."""
    return [
        Late("control_flow.while_loop_unroller", {"while"}, **unrolling),
        Late("control_flow.while_loop_invariant_code_motion", {"while"}),
        Late("control_flow.while_loop_fusible_sinking", {"while"}),
        Late("control_flow.conditional_code_motion", {"conditional"}, move_out=False),
    ]


def layouts() -> list[Pass]:
    """An order in memory for every value; then all values are row-major, and transposes move elements."""
    return [
        # what loops are now is what they stay
        Late("control_flow.while_loop_trip_count_annotator", {"while"}),
        LayoutAssignment(),
        # whatever is in another order becomes row-major: what moves is a transpose from here on
        Late("layout.reshape_decomposer", {"reshape"}),
        Late("layout.move_copy_to_users", {"copy"}),
        LayoutNormalization(),
    ]


def narrow_floats() -> list[Pass]:
    """Narrow floats are computed in f32 where the option math allows it; conversions between two ops then go."""
    return [
        FloatNormalization(excess=True),
        Late("simplify.simplify_fp_conversions", {"convert"}),
    ]
