"""Attributes of ops ↔ fields of HloInstructionProto: one `Field`, a writer and a reader, for each attribute's name.

Computations are not here: they are called by number (`writer`, `reader`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Op
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.window import ConvDims, WindowDim
from heron.hlo.ir.words import Words
from heron.hlo.proto import enums
from heron.hlo.proto.annotations import read_accuracy, write_accuracy
from heron.hlo.proto.field_kinds import (
    Field,
    bytes_field,
    count_field,
    enum_field,
    first_field,
    inner_field,
    ints_field,
    plain_field,
)
from heron.hlo.proto.groups import read_groups, write_groups
from heron.hlo.proto.literals import read_literal, write_literal
from heron.hlo.proto.schema import Message
from heron.hlo.proto.shapes import ShapeReader, ShapeWriter
from heron.hlo.proto.sharding import read_sharding, write_sharding
from heron.hlo.text.shapes import MAX_RANK


def field_of(op: Op, name: str) -> Field | None:
    """The field of an op's attribute."""
    return _BY_OP.get((op.name, name)) or _FIELDS.get(name)


# -- one by one ------------------------------------------------------------------------------------------------------
def _write_slices(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
    for start, limit, stride in v:
        to.slice_dimensions.add(start=start, limit=limit, stride=stride)


def _write_padding(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
    to.padding_config.SetInParent()
    for low, high, interior in v:
        to.padding_config.dimensions.add(edge_padding_low=low, edge_padding_high=high, interior_padding=interior)


def _read_padding(p: Message, s: ShapeReader, o: Sequence[Instruction]) -> Any:
    dims = p.padding_config.dimensions
    return tuple((d.edge_padding_low, d.edge_padding_high, d.interior_padding) for d in dims)


def _write_window(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
    if v is None:
        return
    to.window.SetInParent()
    for d in v:
        to.window.dimensions.add(
            size=d.size,
            stride=d.stride,
            padding_low=d.pad_low,
            padding_high=d.pad_high,
            window_dilation=d.window_dilation,
            base_dilation=d.base_dilation,
            window_reversal=d.reversal,
        )


def _read_window(p: Message, s: ShapeReader, o: Sequence[Instruction]) -> tuple[WindowDim, ...] | None:
    if p.opcode == "custom-call" and not p.HasField("window"):
        return None
    return tuple(
        WindowDim(
            d.size, d.stride, d.padding_low, d.padding_high, d.base_dilation, d.window_dilation, d.window_reversal
        )
        for d in p.window.dimensions
    )


_SIDE = re.compile(r"(lhs|rhs)=\{sparsity=(\d+)x(\d+) dimension=(\d+) stride=(\d+)\}")
_SPARSE = ("num_non_zero", "block_size", "dimension", "stride")


def _write_sparsity(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
    to.sparsity_config.SetInParent()
    for side, *numbers in _SIDE.findall(v):
        part = getattr(to.sparsity_config, side)
        part.SetInParent()
        for field, number in zip(_SPARSE, numbers, strict=True):
            setattr(part, field, int(number))


def _read_sparsity(p: Message, s: ShapeReader, o: Sequence[Instruction]) -> str | None:
    if not p.sparsity_config.ByteSize():
        return None
    sides = [(side, getattr(p.sparsity_config, side)) for side in ("lhs", "rhs") if p.sparsity_config.HasField(side)]
    shown = [
        f"{side}={{sparsity={part.num_non_zero}x{part.block_size} dimension={part.dimension} stride={part.stride}}}"
        for side, part in sides
    ]
    return "{" + " ".join(shown) + "}"


#: ConvDims' field -> that of ConvolutionDimensionNumbers
_CONV = {
    "input_batch": "input_batch_dimension",
    "input_feature": "input_feature_dimension",
    "input_spatial": "input_spatial_dimensions",
    "kernel_input": "kernel_input_feature_dimension",
    "kernel_output": "kernel_output_feature_dimension",
    "kernel_spatial": "kernel_spatial_dimensions",
    "output_batch": "output_batch_dimension",
    "output_feature": "output_feature_dimension",
    "output_spatial": "output_spatial_dimensions",
}


def _write_conv(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
    numbers = to.convolution_dimension_numbers
    numbers.SetInParent()
    for name, field in _CONV.items():
        if name.endswith("spatial"):
            getattr(numbers, field).extend(getattr(v, name))
        else:
            setattr(numbers, field, getattr(v, name))


def _read_conv(p: Message, s: ShapeReader, o: Sequence[Instruction]) -> ConvDims | None:
    if not p.HasField("convolution_dimension_numbers"):
        return None
    numbers = p.convolution_dimension_numbers
    values: dict[str, Any] = {name: getattr(numbers, field) for name, field in _CONV.items()}
    plain: dict[str, Any] = {n: tuple(v) if n.endswith("spatial") else v for n, v in values.items()}
    found = ConvDims(**plain)
    for side in ("input", "kernel", "output"):
        named = [v for n in values if n.startswith(side) for v in (values[n] if n.endswith("spatial") else [values[n]])]
        # a custom call may leave out dimensions, which are ? in text
        rank = MAX_RANK if p.opcode == "custom-call" else len(named)
        if len(set(named)) != len(named) or not all(0 <= d < rank for d in named):
            why = f"dimensions {named[:8]}"
            raise HeronError("PROTO003", f"the {side} of a convolution needs each dimension once", why=why)
    return found


def _write_sizes(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
    for sizes in v:
        to.dynamic_slice_sizes.extend(sizes)


def _read_sizes(p: Message, s: ShapeReader, operands: Sequence[Instruction]) -> tuple[tuple[int, ...], ...] | None:
    """The message has the sizes of all slices in a row: as many for each as the array it is cut from has dimensions."""
    left = list(p.dynamic_slice_sizes)
    if not left or len(operands) < 3:
        return None
    found: list[tuple[int, ...]] = []
    for rank in _slice_ranks(operands[0].shape, operands[2].shape):
        found.append(tuple(left[:rank]))
        del left[:rank]
        if not left:
            break
    if left or sum(map(len, found)) != len(p.dynamic_slice_sizes):
        why = f"{len(p.dynamic_slice_sizes)} sizes for slices of {operands[0].shape.bare}"
        raise HeronError("PROTO003", f"the slice sizes of a {p.opcode} do not fit its operands", why=why)
    return tuple(found)


def _slice_ranks(data: Shape, starts: Shape) -> Iterator[int]:
    """The rank of each slice. An array has a tuple of start indices, or a tuple of such for several slices."""
    if data.is_tuple:
        for part, start in zip(data.tuple_shapes or (), starts.tuple_shapes or (), strict=False):
            yield from _slice_ranks(part, start)
        return
    several = [s for s in starts.tuple_shapes or () if s.is_tuple]
    yield from [data.rank] * (len(several) or 1)


def _write_precision(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
    count = len(i.operands) if i.opcode == "custom-call" else 2
    numbers = [enums.number(enums.PRECISION, w) for w in v or ("default",) * count]
    to.precision_config.operand_precision.extend(numbers)


def _read_precision(p: Message, s: ShapeReader, o: Sequence[Instruction]) -> tuple[str, ...] | None:
    found = p.precision_config.operand_precision
    if not any(found):
        return None
    return tuple(enums.word(enums.PRECISION, n) or "" for n in found)


def _write_comparison(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
    to.comparison_type = v or _usual_comparison(i.operands)


def _read_comparison(p: Message, s: ShapeReader, operands: Sequence[Instruction]) -> str | None:
    found = p.comparison_type
    if found not in ("", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"):
        raise HeronError("PROTO003", f"comparison type '{found[:40]}' is unknown")
    return None if not found or not operands or found == _usual_comparison(operands) else found


def _usual_comparison(operands: Sequence[Instruction]) -> str:
    element_type = operands[0].shape.element_type
    if element_type.is_signed:
        return "SIGNED"
    return "FLOAT" if element_type.is_float or element_type.is_complex else "UNSIGNED"


def _write_shapes(to: Message, v: Any, i: Instruction, shapes: ShapeWriter) -> None:
    to.constrain_layout = True
    for shape in v:
        shapes.write(shape, to.operand_shapes_with_layout.add())


def _read_shapes(p: Message, shapes: ShapeReader, o: Sequence[Instruction]) -> Any:
    return tuple(map(shapes.read, p.operand_shapes_with_layout)) if p.constrain_layout else None


def _write_aliasing(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
    for output, operand, index in v:
        to.output_operand_aliasing.add(output_shape_index=output, operand_index=operand, operand_shape_index=index)


def _read_aliasing(p: Message, s: ShapeReader, o: Sequence[Instruction]) -> Any:
    return tuple(
        (tuple(a.output_shape_index), a.operand_index, tuple(a.operand_shape_index)) for a in p.output_operand_aliasing
    )


def _write_pairs(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
    for source, target in v:
        to.source_target_pairs.add(source=source, target=target)


# the text's entry is the users' side, which the proto calls exit
def _write_domain(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
    w = Words(v, "domain")
    for token in ("{", "kind", "=", '"sharding"', ",", "entry", "="):
        w.expect(token)
    entry, _, leave = v.partition("entry=")[2].rpartition("exit=")
    write_sharding(entry.strip().rstrip(","), to.domain_exit_sharding)
    write_sharding(leave.strip().removesuffix("}"), to.domain_entry_sharding)


def _read_domain(p: Message, s: ShapeReader, o: Sequence[Instruction]) -> str:
    entry, leave = read_sharding(p.domain_exit_sharding), read_sharding(p.domain_entry_sharding)
    return f'{{kind="sharding", entry={entry}, exit={leave}}}'


def _read_float(p: Message, s: ShapeReader, o: Sequence[Instruction]) -> float:
    return float(str(np.float32(p.epsilon)))  # the short number that rounds to it


_FIELDS: dict[str, Field] = {
    "number": plain_field("parameter_number"),
    "index": plain_field("tuple_index"),
    "kind": plain_field("fusion_kind"),
    "direction": plain_field("comparison_direction"),
    "type": Field(_write_comparison, _read_comparison, always=True),
    "channel_id": Field(
        lambda to, v, i, s: setattr(to, "channel_id", v), lambda p, s, o: p.channel_id if p.channel_id > 0 else None
    ),
    "use_global_device_ids": plain_field("use_global_device_ids"),
    "constrain_layout": plain_field("constrain_layout"),
    "is_host_transfer": plain_field("is_host_transfer"),
    "is_stable": plain_field("is_stable"),
    "is_composite": plain_field("is_composite"),
    "is_reverse": plain_field("is_reverse"),
    "is_associative": Field(
        lambda to, v, i, s: setattr(to, "is_associative", 1 if v else 2), lambda p, s, o: p.is_associative == 1, True
    ),
    "num_carries": plain_field("num_carries"),
    "k": plain_field("k"),
    "largest": plain_field("largest"),
    "delta": plain_field("delta"),
    "feature_index": plain_field("feature_index"),
    "epsilon": Field(lambda to, v, i, s: setattr(to, "epsilon", v), _read_float),
    "exponent_bits": plain_field("exponent_bits"),
    "mantissa_bits": plain_field("mantissa_bits"),
    "indices_are_sorted": plain_field("indices_are_sorted"),
    "unique_indices": plain_field("unique_indices"),
    "custom_call_target": plain_field("custom_call_target"),
    "custom_call_has_side_effect": plain_field("custom_call_has_side_effect"),
    "feature_group_count": count_field("feature_group_count"),
    "batch_group_count": count_field("batch_group_count"),
    "async_execution_thread": Field(
        lambda to, v, i, s: setattr(to, "async_execution_thread", "" if v == "main" else v),
        lambda p, s, o: p.async_execution_thread or "main",
    ),
    "infeed_config": bytes_field("infeed_config"),
    "outfeed_config": bytes_field("outfeed_config"),
    "dimensions": ints_field("dimensions"),
    "dynamic_slice_sizes": ints_field("dynamic_slice_sizes"),
    "fft_length": ints_field("fft_length"),
    "iota_dimension": first_field("dimensions"),
    "inferred_dimension": first_field("dimensions"),
    "slice": Field(_write_slices, lambda p, s, o: tuple((d.start, d.limit, d.stride or 1) for d in p.slice_dimensions)),
    "padding": Field(_write_padding, _read_padding),
    "window": Field(_write_window, _read_window, always=True),
    "dim_labels": Field(_write_conv, _read_conv),
    "sparsity_config": Field(_write_sparsity, _read_sparsity),
    "convolution_kind": enum_field("conv_kind", enums.CONVOLUTION),
    "operand_precision": Field(_write_precision, _read_precision, always=True),
    "algorithm": enum_field("algorithm", enums.DOT_ALGORITHM, "precision_config"),
    "literal": Field(lambda to, v, i, s: write_literal(v, to.literal, s), lambda p, s, o: _literal(p, s)),
    "outfeed_shape": Field(
        lambda to, v, i, s: s.write(v, to.outfeed_shape),
        lambda p, s, o: s.read(p.outfeed_shape) if p.HasField("outfeed_shape") else None,
    ),
    "operand_layout_constraints": Field(_write_shapes, _read_shapes),
    "output_to_operand_aliasing": Field(_write_aliasing, _read_aliasing),
    "schedule": enum_field("custom_call_schedule", enums.SCHEDULE),
    "api_version": enum_field("custom_call_api_version", enums.API_VERSION, always=True),
    "padding_type": enum_field("padding_type", enums.PADDING),
    "fft_type": enum_field("fft_type", enums.FFT),
    "distribution": enum_field("distribution", enums.DISTRIBUTION),
    "transpose_a": enum_field("transpose_a", enums.TRANSPOSE, "triangular_solve_options"),
    "left_side": inner_field("triangular_solve_options", "left_side"),
    "unit_diagonal": inner_field("triangular_solve_options", "unit_diagonal"),
    "lower": inner_field("triangular_solve_options", "lower"),
    "cross_program_prefetch_index": Field(
        lambda to, v, i, s: setattr(to, "cross_program_prefetch_index", v),
        lambda p, s, o: p.cross_program_prefetch_index if p.HasField("cross_program_prefetch_index") else None,
    ),
    "domain": Field(_write_domain, _read_domain),
    "replica_groups": Field(lambda to, v, i, s: write_groups(v, to), lambda p, s, o: read_groups(p), always=True),
    "source_target_pairs": Field(
        _write_pairs, lambda p, s, o: tuple((d.source, d.target) for d in p.source_target_pairs)
    ),
    "result_accuracy": Field(
        lambda to, v, i, s: write_accuracy(v, to.result_accuracy),
        lambda p, s, o: read_accuracy(p.result_accuracy) if p.HasField("result_accuracy") else None,
    ),
}


def _literal(p: Message, s: ShapeReader) -> Any:
    return read_literal(p.literal, s) if p.HasField("literal") else None


_DOT = "dot_dimension_numbers"
_RAGGED = "ragged_dot_dimension_numbers"
for _name in ("lhs_batch", "lhs_contracting", "rhs_batch", "rhs_contracting"):
    _FIELDS[f"{_name}_dims"] = ints_field(f"{_name}_dimensions", _DOT)
_FIELDS["lhs_ragged_dims"] = ints_field("lhs_ragged_dimensions", _RAGGED)
_FIELDS["rhs_group_dims"] = ints_field("rhs_group_dimensions", _RAGGED)
for _name in (
    "offset_dims",
    "collapsed_slice_dims",
    "start_index_map",
    "operand_batching_dims",
    "start_indices_batching_dims",
):
    _FIELDS[_name] = ints_field(_name, "gather_dimension_numbers")
for _name in (
    "update_window_dims",
    "inserted_window_dims",
    "scatter_dims_to_operand_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
):
    _FIELDS[_name] = ints_field(_name, "scatter_dimension_numbers")

#: attributes that mean another field with some ops
_BY_OP: dict[tuple[str, str], Field] = {
    ("rng-bit-generator", "algorithm"): enum_field("rng_algorithm", enums.RNG_ALGORITHM),
    ("cholesky", "lower"): inner_field("cholesky_options", "lower"),
    ("all-to-all", "dimensions"): Field(
        lambda to, v, i, s: to.dimensions.extend(v), lambda p, s, o: tuple(p.dimensions) or None
    ),
    ("gather", "slice_sizes"): ints_field("gather_slice_sizes"),
    ("gather", "index_vector_dim"): inner_field("gather_dimension_numbers", "index_vector_dim"),
    ("scatter", "index_vector_dim"): inner_field("scatter_dimension_numbers", "index_vector_dim"),
    ("collective-permute", "slice_sizes"): Field(_write_sizes, _read_sizes),
    ("collective-permute-start", "slice_sizes"): Field(_write_sizes, _read_sizes),
    **{
        ("ragged-dot", f"{name}_dims"): ints_field(f"{name}_dimensions", _RAGGED, _DOT)
        for name in ("lhs_batch", "lhs_contracting", "rhs_batch", "rhs_contracting")
    },
}
