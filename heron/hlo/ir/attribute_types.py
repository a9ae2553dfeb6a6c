"""Types of the ops' attributes, as they read on an instruction: `i.dimensions`, `i.to_apply`, ….

Generated from the declarations in heron/hlo/ops: `python -m pytest tests/hlo/ops/test_attribute_types.py --bless`.
An attribute has the type of the ops that require it or give it a default, and ``| None`` where no op does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.hlo.ir.window import ConvDims, Window

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.literal import Literal


class AttributeTypes:
    """Base of `Instruction`: nothing but the types of attributes."""

    __slots__ = ()

    algorithm: str
    api_version: str
    async_execution_thread: str
    batch_group_count: int
    body: Computation
    branch_computations: tuple[Computation, ...]
    called_computations: tuple[Computation, ...]
    calls: Computation
    channel_id: int | None
    collapsed_slice_dims: tuple[int, ...]
    condition: Computation
    constrain_layout: bool
    convolution_kind: str
    cross_program_prefetch_index: int | None
    custom_call_has_side_effect: bool
    custom_call_target: str
    delta: int
    dim_labels: ConvDims
    dimensions: tuple[int, ...]
    direction: str
    distribution: str
    domain: str
    dynamic_slice_sizes: tuple[int, ...]
    epsilon: float
    exponent_bits: int
    feature_group_count: int
    feature_index: int
    fft_length: tuple[int, ...]
    fft_type: str
    index: int
    index_vector_dim: int
    indices_are_sorted: bool
    infeed_config: str
    inferred_dimension: int | None
    input_batching_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    iota_dimension: int
    is_associative: bool
    is_composite: bool
    is_host_transfer: bool
    is_reverse: bool
    is_stable: bool
    k: int
    kind: str
    largest: bool
    left_side: bool
    lhs_batch_dims: tuple[int, ...]
    lhs_contracting_dims: tuple[int, ...]
    lhs_ragged_dims: tuple[int, ...]
    literal: Literal
    lower: bool
    mantissa_bits: int
    num_carries: int
    number: int
    offset_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...]
    operand_layout_constraints: tuple[Shape, ...] | None
    operand_precision: tuple[str, ...] | None
    outfeed_config: str
    outfeed_shape: Shape | None
    output_to_operand_aliasing: tuple[tuple[ShapeIndex, int, ShapeIndex], ...]
    padding: tuple[tuple[int, int, int], ...]
    padding_type: str | None
    replica_groups: str
    result_accuracy: str | None
    rhs_batch_dims: tuple[int, ...]
    rhs_contracting_dims: tuple[int, ...]
    rhs_group_dims: tuple[int, ...]
    scatter: Computation
    scatter_dims_to_operand_dims: tuple[int, ...]
    scatter_indices_batching_dims: tuple[int, ...]
    schedule: str
    select: Computation
    slice: tuple[tuple[int, int, int], ...]
    slice_sizes: tuple[int, ...]
    source_target_pairs: tuple[tuple[int, int], ...]
    sparsity_config: str | None
    start_index_map: tuple[int, ...]
    start_indices_batching_dims: tuple[int, ...]
    to_apply: Computation
    transpose_a: str | None
    type: str | None
    unique_indices: bool
    unit_diagonal: bool
    update_window_dims: tuple[int, ...]
    use_global_device_ids: bool
    window: Window
