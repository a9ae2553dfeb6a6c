"""Attributes of an op on parts: those that name sizes have the sizes of the parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction

#: the dimensions of an array
Sizes: TypeAlias = Sequence[int]


def local_attributes(i: Instruction, operands: Sequence[Sizes], results: Sequence[Sizes]) -> dict[str, Any]:
    """The attributes of `i` that differ when it is computed on parts.

    `operands` and `results` have the dimensions of the parts of each array. They must be parts that the rule of the op
    allows: pass-through and reduction factors split, and no positional ones.
    """
    make = _ATTRIBUTES.get(i.opcode)
    return {} if make is None else make(i, operands, results)


def _slice(i: Instruction, operands: Sequence[Sizes], results: Sequence[Sizes]) -> dict[str, Any]:
    pairs = zip(i.slice, i.operands[0].shape.dims, operands[0], strict=True)
    return {"slice": tuple(bounds if size == part else (0, part, 1) for bounds, size, part in pairs)}


def _dynamic_slice(i: Instruction, operands: Sequence[Sizes], results: Sequence[Sizes]) -> dict[str, Any]:
    return {"dynamic_slice_sizes": tuple(results[0])}


def _gather(i: Instruction, operands: Sequence[Sizes], results: Sequence[Sizes]) -> dict[str, Any]:
    gone = {*i.collapsed_slice_dims, *i.operand_batching_dims}
    window = iter([results[0][d] for d in i.offset_dims])
    return {"slice_sizes": tuple(n if d in gone else next(window) for d, n in enumerate(i.slice_sizes))}


def _convolution(i: Instruction, operands: Sequence[Sizes], results: Sequence[Sizes]) -> dict[str, Any]:
    dims = i.dim_labels
    found: dict[str, Any] = {}
    if i.feature_group_count > 1:
        found["feature_group_count"] = operands[0][dims.input_feature] // operands[1][dims.kernel_input]
    if i.batch_group_count > 1:
        found["batch_group_count"] = operands[0][dims.input_batch] // results[0][dims.output_batch]
    return found


def _reshape(i: Instruction, operands: Sequence[Sizes], results: Sequence[Sizes]) -> dict[str, Any]:
    return {"inferred_dimension": None} if i.attrs.get("inferred_dimension") is not None else {}


def _custom_call(i: Instruction, operands: Sequence[Sizes], results: Sequence[Sizes]) -> dict[str, Any]:
    stated = i.attrs.get("operand_layout_constraints")
    if stated is None or len(stated) != len(operands):
        return {}
    parts = zip(stated, operands, strict=True)
    local = [shapes.array(s.element_type, tuple(dims), s.layout) if s.is_array else s for s, dims in parts]
    return {"operand_layout_constraints": tuple(local)}


_ATTRIBUTES: dict[str, Callable[[Instruction, Sequence[Sizes], Sequence[Sizes]], dict[str, Any]]] = {
    "slice": _slice,
    "dynamic-slice": _dynamic_slice,
    "gather": _gather,
    "convolution": _convolution,
    "reshape": _reshape,
    "custom-call": _custom_call,
}
