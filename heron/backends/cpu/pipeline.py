"""The HLO passes of the CPU backend, in order."""

from __future__ import annotations

from heron.analysis.fusion.moved_blocks import joins_blocks
from heron.hlo.facts import plain_products
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ops.normalization import BATCH_NORMS
from heron.passes import pipelines as shared
from heron.passes.copies.copy_insertion import CopyInsertion
from heron.passes.copies.flatten_call_graph import FlattenCallGraph
from heron.passes.framework.late import Late
from heron.passes.framework.pipeline import Pipeline
from heron.passes.framework.registry import named_pipeline
from heron.passes.fusion.fusion_hints import FusionHints
from heron.passes.fusion.fusion_wrapper import FusionWrapper
from heron.passes.fusion.instruction_fusion import InstructionFusion
from heron.passes.fusion.multi_output_fusion import MultiOutputFusion
from heron.passes.fusion.normalization_fusion import NormalizationFusion
from heron.passes.precision.operand_upcaster import OperandUpcaster
from heron.passes.schedule.memory_scheduler import MemoryScheduler
from heron.passes.schedule.rematerialization import Rematerialization
from heron.passes.simplify.cse import Cse
from heron.passes.simplify.dce import Dce


def multiplies_blocks(dot: Instruction) -> bool:
    """Whether a product can be done in blocks. The code of products is loaded for programs that have some."""
    from heron.codegen.native import row_blocks

    return row_blocks.multiplies_blocks(dot)


def is_called(product: Instruction) -> bool:
    """Whether code for all products computes this one, and no kernel."""
    from heron.analysis.fusion.products import reads_large_matrix_once
    from heron.codegen.native import gemm

    if product.opcode != "dot" or reads_large_matrix_once(product):
        return False
    lhs, rhs = (o.shape.element_type for o in product.operands)
    return lhs is rhs and gemm.multiplies(lhs, product.shape.element_type)


def joins_by_parts(i: Instruction) -> bool:
    """Whether many arrays are joined by parts first: those that no copies join, where memory for the parts is small."""
    return i.shape.byte_size <= 1 << 20 and not joins_blocks(i)


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
            Late("expand.topk_rewriter", {"sort"}),
            Late("expand.topk_decomposer", {"custom-call", "topk"}, selects=True),
            Late("expand.permutation_sort_expander", {"sort"}),
            Late("simplify.convolution_dot_rewriter", {"convolution"}),
            OperandUpcaster(one_type=False, rounds=False),
            Late("precision.integer_convolution_upcaster", {"convolution"}),
            Late("precision.complex_convolution_splitter", {"convolution"}),
            Late("expand.batchnorm_expander", BATCH_NORMS),
            Late("expand.select_and_scatter_expander", {"select-and-scatter"}),
            # the computations of maps and reductions stand inside kernels, which have no branches
            Late("control_flow.conditional_to_select", {"conditional"}),
            Late("expand.map_inliner", {"map"}),
            shared.simplification(),
            shared.exchanges(),
            *shared.loops(most_code=128),
            # dots as libraries take them: transposes that this makes are folded into operands or simplified away
            Late("expand.dot_decomposer", {"dot"}),
            Late("simplify.transpose_folding", {"dot"}),
            Late("simplify.dot_strength_reduction", {"dot"}, made=True, most=1 << 62),
            Late("simplify.convolution_strength_reduction", {"convolution"}),
            Late("simplify.convolution_product_rewriter", {"convolution"}),
            Late("simplify.convolution_canonicalization", {"convolution"}),
            # behind a simplifier, which has one reduce find the largest element and its place, and before another one
            Late("expand.arg_extremum_expander", {"reduce"}),
            shared.simplification(),
            Late("precision.integer_narrowing", {"convert"}),
            # what sums have in common is summed once
            Late("simplify.reduction_reuse", {"reduce"}),
            Late("expand.window_splitter", {"reduce-window"}),
            # behind what would put the padding back
            Late("expand.convolution_padding_expander", {"convolution"}),
            # nothing may simplify behind it: that would join the steps of a reduction again
            Late(
                "expand.tree_reduction_rewriter",
                {"reduce"},
                parts=64,
                least=1 << 15,
                column_bytes=128,
                pads=False,
                fold=32,
            ),
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
            # LLVM takes time with the square of a kernel's parameters: half a second for 500 of them
            Late("simplify.variadic_op_splitter", {"concatenate"}, most=256, splits=joins_by_parts),
            InstructionFusion(),
            Dce(),
            # while slices are kernels by themselves; larger products may be done in blocks first
            Late("fusion.dynamic_slice_fusion_rewriter", plain_products(), most=(1 << 19) - 1, takes_any=is_called),
            FusionHints(),
            MultiOutputFusion(joins_pieces=False),
            Dce(),
            # longer rows have places of extrema found by vectors along them, in a kernel of its own
            NormalizationFusion(positions=8),
            Dce(),
            # what kernels that were joined both compute
            Cse(layout_sensitive=True, inside=True),
            FusionWrapper(),
            Dce(),
            # a product with what is around it, now that this is one kernel
            Late("fusion.row_block_fusion", {"dot"}, multiplies=multiplies_blocks),
            Late("fusion.dynamic_slice_fusion_rewriter", plain_products(), takes_any=is_called),
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
            Late("copies.double_buffer_loop_unrolling", {"while"}, least_bytes=4096),
            CopyInsertion(),
            Late("copies.copy_fusion", {"copy"}, join=False),
            MemoryScheduler(cache=1 << 20, splits=0.05),
            # does nothing unless memory is short: what is left to save costs time
            Rematerialization(limit="machine"),
        ],
    )


@named_pipeline("cpu")
def whole() -> Pipeline:
    """All stages in one: from a program as given to what buffers and code are made for."""
    return Pipeline("cpu", [hlo(), fuse(), schedule()])
