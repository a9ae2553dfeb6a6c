"""The protocol buffers' schema: message classes made, on import of this file, from the table below.

A line is ``number type name``; ``*`` marks a repeated field, ``?`` one whose absence differs from zero. Numbers are
those published in openxla/xla (xla/xla_data.proto, xla/service/hlo.proto). Three liberties, none visible on the wire:
enumerations are int32 (their names are in `enums`), maps are lists of entries, and a literal's packed floats and
booleans are bytes, which is what they are, so that arrays go in and out as a whole, NaN payloads included. Fields not
in the table are kept unread by protobuf; those of a module travel in `Module.carried`.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

#: heron's own field of HloModuleProto: what the header line says and XLA's fields cannot (XLA skips it, unread)
HEADER_FIELD = 186743

_TABLE = f"""
TileProto
  1 int64* dimensions
SplitConfigProto
  1 int64 dimension
  2 int64* split_indices
LayoutProto
  1 int64* minor_to_major
  6 TileProto* tiles
  7 int64 element_size_in_bits
  8 int64 memory_space
  9 int32* dim_level_types
  10 ShapeProto physical_shape
  11 int32 index_primitive_type
  12 int32 pointer_primitive_type
  13 bool* dim_unique
  14 bool* dim_ordered
  15 int64 dynamic_shape_metadata_prefix_bytes
  16 int64 tail_padding_alignment_in_elements
  17 SplitConfigProto* split_configs
ShapeProto
  2 int32 element_type
  3 int64* dimensions
  4 ShapeProto* tuple_shapes
  5 LayoutProto layout
  6 bool* is_dynamic_dimension
ProgramShapeProto
  1 ShapeProto* parameters
  2 ShapeProto result
  3 string* parameter_names
OpMetadata
  1 string op_type
  2 string op_name
  3 string source_file
  4 int32 source_line
  5 int32* profile_type
  12 string deduplicated_name
  15 int32 stack_frame_id
  16 string scheduling_name
  17 int32 source_end_line
  18 int32 source_column
  19 int32 source_end_column
LiteralProto
  1 ShapeProto shape
  2 bytes preds
  3 bytes u8s
  4 int32* s32s
  5 int64* s64s
  6 uint32* u32s
  7 uint64* u64s
  8 bytes f32s
  9 bytes f64s
  10 LiteralProto* tuple_literals
  11 bytes f16s
  12 bytes c64s
  13 bytes bf16s
  15 bytes s8s
  16 bytes u16s
  17 bytes s16s
  18 bytes c128s
  19 bytes f8e5m2s
  20 bytes f8e4m3fns
  21 bytes s4s
  22 bytes u4s
  23 bytes f8e4m3b11fnuzs
  24 bytes f8e5m2fnuzs
  25 bytes f8e4m3fnuzs
  26 bytes s2s
  27 bytes u2s
  28 bytes f8e4m3s
  29 bytes f8e3m4s
  30 bytes s1s
  31 bytes u1s
  32 bytes f4e2m1fns
  33 bytes f8e8m0fnus
  35 bytes f6e3m2fns
  36 bytes f6e2m3fns
  34 int32* dynamic_sizes
WindowDimension
  1 int64 size
  2 int64 stride
  3 int64 padding_low
  4 int64 padding_high
  5 int64 window_dilation
  6 int64 base_dilation
  7 bool window_reversal
Window
  1 WindowDimension* dimensions
GatherDimensionNumbers
  1 int64* offset_dims
  2 int64* collapsed_slice_dims
  3 int64* start_index_map
  4 int64 index_vector_dim
  5 int64* operand_batching_dims
  6 int64* start_indices_batching_dims
ScatterDimensionNumbers
  1 int64* update_window_dims
  2 int64* inserted_window_dims
  3 int64* scatter_dims_to_operand_dims
  4 int64 index_vector_dim
  5 int64* input_batching_dims
  6 int64* scatter_indices_batching_dims
ConvolutionDimensionNumbers
  3 int64 kernel_input_feature_dimension
  4 int64 kernel_output_feature_dimension
  6 int64* kernel_spatial_dimensions
  7 int64 input_batch_dimension
  8 int64 input_feature_dimension
  9 int64 output_batch_dimension
  10 int64 output_feature_dimension
  11 int64* input_spatial_dimensions
  12 int64* output_spatial_dimensions
DotDimensionNumbers
  1 int64* lhs_contracting_dimensions
  2 int64* rhs_contracting_dimensions
  3 int64* lhs_batch_dimensions
  4 int64* rhs_batch_dimensions
RaggedDotDimensionNumbers
  1 DotDimensionNumbers dot_dimension_numbers
  2 int64* lhs_ragged_dimensions
  3 int64* rhs_group_dimensions
TriangularSolveOptions
  1 bool left_side
  2 bool lower
  3 bool unit_diagonal
  4 int32 transpose_a
CholeskyOptions
  1 bool lower
PaddingConfigDimension
  1 int64 edge_padding_low
  2 int64 edge_padding_high
  3 int64 interior_padding
PaddingConfig
  1 PaddingConfigDimension* dimensions
StringEntry
  1 string key
  2 string value
FrontendAttributes
  1 StringEntry* map
Statistic
  1 string stat_name
  2 double stat_val
StatisticsViz
  1 int64 stat_index_to_visualize
  2 Statistic* statistics
MeshAxis
  1 string name
  2 int64 size
IotaTransform
  1 int64* reshape_dims
  2 int64* transpose_perm
MeshProto
  1 MeshAxis* axes
  2 int64* device_ids
  3 IotaTransform iota_transform
SubAxis
  1 int64 pre_size
  2 int64 size
AxisRefProto
  1 int64 mesh_axis_index
  2 SubAxis sub_axis_info
DimensionSharding
  1 AxisRefProto* axes
  2 bool is_closed
NamedShardingProto
  2 MeshProto mesh
  3 DimensionSharding* dim_shardings
  4 AxisRefProto* replicated_axes
  5 AxisRefProto* unreduced_axes
  6 OpMetadata* metadata
  7 AxisRefProto* manual_axes
OpSharding
  1 int32 type
  3 int64* tile_assignment_dimensions
  4 int64* tile_assignment_devices
  5 OpSharding* tuple_shardings
  6 bool replicate_on_last_tile_dim
  7 OpMetadata* metadata
  8 int32* last_tile_dims
  9 int64* iota_reshape_dims
  10 int32* iota_transpose_perm
  11 bool is_shard_group
  12 int64 shard_group_id
  13 int32 shard_group_type
  14 NamedShardingProto named_sharding
ReplicaGroup
  1 int64* replica_ids
CollectiveDeviceListProto
  1 ReplicaGroup* replica_groups
IotaReplicaGroupListProto
  1 int64 num_replica_groups
  2 int64 num_devices_per_group
  3 int64* iota_reshape_dims
  4 int32* iota_transpose_perm
MeshAxesReplicaGroupListProto
  1 MeshProto mesh
  2 AxisRefProto* axes
SourceTarget
  1 int64 source
  2 int64 target
Tolerance
  1 double atol
  2 double rtol
  3 int64 ulps
ResultAccuracy
  1 int32? mode
  2 Tolerance tolerance
PrecisionConfig
  1 int32* operand_precision
  2 int32 algorithm
ParameterReplication
  1 bool* replicated_at_leaf_buffers
OutputOperandAliasing
  1 int64* output_shape_index
  2 int64 operand_index
  3 int64* operand_shape_index
OriginalArrayProto
  1 string instruction_name
  2 int64* shape_index
OriginalValueElementProto
  1 int64* shape_index
  2 OriginalArrayProto original_array
OriginalValueProto
  1 OriginalValueElementProto* elements
  2 bool is_synthetic_call
SliceDimensions
  1 int64 start
  2 int64 limit
  3 int64 stride
Payload
  1 bytes? value
  2 int64? id
TensorSparsityConfig
  1 int64 num_non_zero
  2 int64 block_size
  3 int64 dimension
  4 int64 stride
SparsityConfig
  1 TensorSparsityConfig lhs
  2 TensorSparsityConfig rhs
HloInstructionProto
  1 string name
  2 string opcode
  3 ShapeProto shape
  7 OpMetadata metadata
  8 LiteralProto literal
  9 int64 parameter_number
  11 string fusion_kind
  13 int64 tuple_index
  14 int64* dimensions
  15 Window window
  16 ConvolutionDimensionNumbers convolution_dimension_numbers
  17 SliceDimensions* slice_dimensions
  18 int32 exponent_bits
  19 int32 mantissa_bits
  20 int64* dynamic_slice_sizes
  21 PaddingConfig padding_config
  22 bytes outfeed_config
  23 int32 distribution
  24 float epsilon
  25 int64 feature_index
  26 int64 channel_id
  27 bytes infeed_config
  28 string custom_call_target
  29 ShapeProto outfeed_shape
  30 DotDimensionNumbers dot_dimension_numbers
  31 int32 fft_type
  32 int64* fft_length
  33 GatherDimensionNumbers gather_dimension_numbers
  34 int64* gather_slice_sizes
  35 int64 id
  36 int64* operand_ids
  37 int64* control_predecessor_ids
  38 int64* called_computation_ids
  40 OpSharding sharding
  43 bytes backend_config
  45 int64 all_reduce_id
  47 bool is_host_transfer
  48 ScatterDimensionNumbers scatter_dimension_numbers
  49 ReplicaGroup* replica_groups
  50 int64 feature_group_count
  51 PrecisionConfig precision_config
  52 SourceTarget* source_target_pairs
  54 OpSharding domain_entry_sharding
  55 OpSharding domain_exit_sharding
  56 bool constrain_layout
  57 ShapeProto* operand_shapes_with_layout
  58 int64 batch_group_count
  59 TriangularSolveOptions triangular_solve_options
  60 bool is_stable
  61 ParameterReplication parameter_replication
  62 CholeskyOptions cholesky_options
  63 string comparison_direction
  65 bool custom_call_has_side_effect
  66 int64 delta
  67 bool indices_are_sorted
  68 FrontendAttributes frontend_attributes
  69 bool unique_indices
  70 int32 rng_algorithm
  71 bool use_global_device_ids
  72 string comparison_type
  74 OutputOperandAliasing* output_operand_aliasing
  75 int32 padding_type
  76 int32 custom_call_schedule
  77 int32 custom_call_api_version
  79 string async_execution_thread
  80 int32? cross_program_prefetch_index
  81 int64 k
  82 StatisticsViz statistics_viz
  85 bool largest
  87 CollectiveDeviceListProto collective_device_list
  88 OriginalValueProto original_value
  89 bool is_composite
  90 RaggedDotDimensionNumbers ragged_dot_dimension_numbers
  91 ResultAccuracy result_accuracy
  92 IotaReplicaGroupListProto iota_collective_device_list
  93 MeshAxesReplicaGroupListProto mesh_axes_replica_group_list
  94 bool is_reverse
  95 int64 num_carries
  96 int32 is_associative
  97 int32 conv_kind
  98 SparsityConfig sparsity_config
  99 Payload backend_config_payload
HloComputationProto
  1 string name
  2 HloInstructionProto* instructions
  4 ProgramShapeProto program_shape
  5 int64 id
  6 int64 root_id
  7 bool is_fusion_computation
  8 string execution_thread
InstructionSequence
  1 int64* instruction_ids
SequenceEntry
  1 int64 key
  2 InstructionSequence value
HloScheduleProto
  1 SequenceEntry* sequences
AliasEntryProto
  1 int64* output_shape_index
  2 int64 parameter_number
  3 int64* parameter_shape_index
  4 int32 kind
HloInputOutputAliasProto
  1 AliasEntryProto* entries
BufferDonorEntryProto
  1 int64 parameter_number
  2 int64* parameter_shape_index
HloBufferDonorProto
  1 BufferDonorEntryProto* entries
CrossProgramPrefetch
  1 int64 parameter
  2 int64* index
  3 int64 offset
FileLocation
  1 int32 file_name_id
  2 int32 function_name_id
  3 int32 line
  4 int32 column
  5 int32 end_line
  6 int32 end_column
StackFrame
  1 int32 file_location_id
  2 int32 parent_frame_id
StackFrameIndexProto
  1 string* file_names
  2 string* function_names
  3 FileLocation* file_locations
  4 StackFrame* stack_frames
HloModuleProto
  1 string name
  2 string entry_computation_name
  3 HloComputationProto* computations
  4 ProgramShapeProto host_program_shape
  6 int64 entry_computation_id
  7 HloScheduleProto schedule
  8 HloInputOutputAliasProto input_output_alias
  10 CrossProgramPrefetch* cross_program_prefetches
  12 OpSharding spmd_output_sharding
  14 OpSharding* spmd_parameters_shardings
  17 StackFrameIndexProto stack_frame_index
  18 HloBufferDonorProto buffer_donor
  19 FrontendAttributes frontend_attributes
  22 bytes* payloads
  {HEADER_FIELD} string header_text
HloModuleConfigProto
  1 ProgramShapeProto entry_computation_layout
  4 int64 replica_count
  5 int64 num_partitions
  7 bool use_spmd_partitioning
HloModuleProtoWithConfig
  1 HloModuleProto hlo_module
  2 HloModuleConfigProto config
HloProto
  1 HloModuleProto hlo_module
HloSnapshot
  1 HloProto hlo
  2 LiteralProto* arguments
  3 LiteralProto result
  4 string execution_platform
"""

_PACKAGE = "heron"
_Field = descriptor_pb2.FieldDescriptorProto


def _build() -> dict[str, Any]:
    """Message classes by name."""
    file = descriptor_pb2.FileDescriptorProto(name="heron_hlo.proto", package=_PACKAGE, syntax="proto3")
    message: descriptor_pb2.DescriptorProto | None = None
    for line in _TABLE.strip().splitlines():
        if not line.startswith(" "):
            message = file.message_type.add(name=line)
            continue
        assert message is not None
        number, type_name, name = line.split()
        field = message.field.add(name=name, number=int(number), label=_Field.LABEL_OPTIONAL)
        if type_name.endswith("*"):
            field.label = _Field.LABEL_REPEATED
        if type_name.endswith("?"):  # presence, which proto3 spells as a oneof of a single field
            field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{name}")
        type_name = type_name.rstrip("*?")
        if type_name[0].islower():
            field.type = _Field.Type.Value(f"TYPE_{type_name.upper()}")
        else:
            field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{type_name}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindFileByName(file.name).message_types_by_name
    return {name: message_factory.GetMessageClass(d) for name, d in found.items()}


MESSAGES: dict[str, Any] = _build()
#: messages are made by descriptor, so no type checker knows their fields
Message = Any
