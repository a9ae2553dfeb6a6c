"""Ops that make or move elements: constant, iota, broadcast … reverse, pad, concatenate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, SSAValue

from heron.analysis.fusion.cuts import made_of_one
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index, moves_elements, operand_index, pad_index
from heron.codegen.elemental.constants import scalar_constant
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.logic import select
from heron.codegen.elemental.positions import index_to_scalar
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Value
from heron.codegen.ir.types import I64, INDEX, tensor_type
from heron.hlo.facts import is_given
from heron.hlo.ir import types
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.types import ElementType

#: most elements of a constant in a kernel; larger ones are operands
MAX_CONSTANT = 1 << 16


@rule("broadcast", "reshape", "transpose", "slice", "reverse")
def _move(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    return e.value(i.operands[0], e.simplify(operand_index(i, 0, index)))


@rule("parameter")
def _parameter(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    return e.load(i, index)


# -- constants ---------------------------------------------------------------------------------------------------------


def _small_enough(i: Instruction) -> str | None:
    n = i.shape.num_elements
    if n <= MAX_CONSTANT or i.literal.array.strides == (0,) * i.shape.rank:
        return None
    return f"{n} elements are too many for code"


@rule("constant", check=_small_enough)
def _constant(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    array, t = i.literal.array, i.shape.element_type
    uniform = _uniform(array)
    if uniform is not None:
        return scalar_constant(e, uniform, t)
    type_ = tensor_type(i.shape.with_default_layout())
    return e.extract(e.b.constants.dense(_dense(array, t, type_), type_), index)


def _uniform(array: np.ndarray) -> np.ndarray | None:
    """The one element all are bitwise equal to, or None."""
    if array.size == 1 or (array.size and not any(array.strides)):
        return array.reshape(-1)[:1]
    if not array.size:
        return np.zeros(1, array.dtype)
    flat = np.ascontiguousarray(array).reshape(-1)
    raw = flat.view(np.uint8).reshape(flat.size, -1)
    return flat[:1] if bool((raw == raw[0]).all()) else None


def _dense(array: np.ndarray, t: ElementType, type_: Attribute) -> Attribute:
    if t is types.PRED or (t.is_integer and t.bits < 8):
        return DenseIntOrFPElementsAttr.from_list(type_, [int(v) for v in array.reshape(-1)])  # type: ignore
    return DenseIntOrFPElementsAttr(type_, BytesAttr(np.ascontiguousarray(array).tobytes()))  # type: ignore[arg-type]


def _one_device(i: Instruction) -> str | None:
    module = i.parent.module if i.parent is not None else None
    if module is None:
        return "its program is not known"
    count = module.num_partitions if i.opcode == "partition-id" else module.replica_count
    return None if count == 1 else f"kernels are not told which of the {count} devices they run on"


@rule("partition-id", "replica-id", check=_one_device)
def _device_id(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    return scalar_constant(e, 0, i.shape.element_type)


@rule("iota")
def _iota(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    d: int = i.iota_dimension
    return index_to_scalar(e, index[d], i.shape.element_type)


def scalar_to_index(e: FunctionEmitter, value: SSAValue, t: ElementType) -> SSAValue:
    """An integer scalar as an `index`, by its signedness."""
    if t.is_unsigned and t.bits < 64:
        value = e.b.op(arith.ExtUIOp, value, type=I64)
    return e.b.op(arith.IndexCastOp, value, type=INDEX)


# -- pad and concatenate -----------------------------------------------------------------------------------------------


@rule("pad")
def _pad(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    source, padding = i.operands
    if not source.shape.num_elements:
        return e.value(padding, ())
    where, constraints = pad_index(i, index)
    if e.never(constraints):
        return e.value(padding, ())
    inside = e.holds(constraints)
    if inside is None:
        return e.value(source, e.simplify(where))
    safe = clamped(e, where, source)
    if safe is not None:
        return select(e, inside, e.value(source, safe), e.value(padding, ()))
    return e.if_(inside, i.shape, lambda: e.value(source, e.simplify(where)), lambda: e.value(padding, ()))


def clamped(e: FunctionEmitter, where: Index, source: Instruction) -> Index | None:
    """An index into `source` that is always inside and `where` it should be when that is; None to branch instead.

    Reading somewhere else and throwing it away is straight code, which vectorises; but not where the index along
    memory is clamped, nor where it is the dearer way.
    """
    dims = source.shape.dims
    if not e.kernel.straight or not dims or 0 in dims or not is_plain(source):
        return None
    index = e.simplify(where)
    ranges = [e.range_of(x) for x in index]
    outside = [d for d, (size, (lo, hi)) in enumerate(zip(dims, ranges, strict=True)) if lo < 0 or hi >= size]
    if len(dims) - 1 in outside:
        return None
    result = list(index)
    for d in outside:
        value = e.b.op(arith.MaxSIOp, e.index_value(index[d]), e.b.integer(0))
        result[d] = e.variable(e.b.op(arith.MinSIOp, value, e.b.integer(dims[d] - 1)), 0, dims[d] - 1)
    return tuple(result)


#: instructions below a value that still make it cheap to compute in vain
_PLAIN_LIMIT = 8


def is_plain(i: Instruction) -> bool:
    """Whether a value comes from memory by a few cheap ops."""
    seen: set[Instruction] = set()
    stack = [i]
    while stack:
        at = stack.pop()
        if at in seen:
            continue
        seen.add(at)
        if is_given(at):
            continue
        if at.opcode != "pad" and (not moves_elements(at) or at.has(Trait.TRANSCENDENTAL)):
            return False
        stack.extend(at.operands)
    return len(seen) <= _PLAIN_LIMIT


@rule("concatenate")
def _concatenate(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    d: int = i.dimensions[0]
    one = made_of_one(i) if d < i.shape.rank - 1 else None
    if one is not None:
        return _from_one(e, i, index, *one)
    parts: list[tuple[Instruction, int]] = []
    offset = 0
    for operand in i.operands:
        if operand.shape.num_elements:
            parts.append((operand, offset))
        offset += operand.shape.dims[d]
    return _concatenate_parts(e, i, index, d, parts)


def _from_one(e: FunctionEmitter, i: Instruction, index: Index, source: Instruction, starts: Sequence[int]) -> Value:
    """An element of slices of one array side by side: the place in the array is chosen, not the value."""
    (d,) = i.dimensions
    (place,) = e.simplify((index[d],))
    low, high = e.range_of(place)
    ends = [*accumulate(o.shape.dims[d] for o in i.operands)]
    # what is added to the place in each slice
    begins = [end - o.shape.dims[d] for end, o in zip(ends, i.operands, strict=True)]
    parts = zip(begins, ends, (start - begin for start, begin in zip(starts, begins, strict=True)), strict=True)
    live = [(end, shift) for begin, end, shift in parts if end > low and begin <= high]
    if len(live) == 1:
        where: Expr = place + live[0][1]
    else:
        at = e.index_value(place)
        shift = e.b.integer(live[-1][1])
        for end, other in reversed(live[:-1]):
            shift = e.b.select(e.b.cmpi("slt", at, e.b.integer(end)), e.b.integer(other), shift)
        where = e.variable(e.b.op(arith.AddiOp, at, shift), 0, source.shape.dims[d] - 1)
    return e.value(source, e.simplify((*index[:d], where, *index[d + 1 :])))


def _concatenate_parts(
    e: FunctionEmitter, i: Instruction, index: Index, d: int, parts: list[tuple[Instruction, int]]
) -> Value:
    """A balanced tree of comparisons: few for many operands, and no deep nesting."""
    low, high = e.range_of(index[d])
    live = [p for p in parts if p[1] <= high and p[1] + p[0].shape.dims[d] > low]
    parts = live or parts[:1]
    if len(parts) == 1:
        operand, offset = parts[0]
        where = (*index[:d], index[d] - offset, *index[d + 1 :])
        return e.value(operand, e.simplify(where))
    middle = len(parts) // 2
    first = e.b.cmpi("slt", e.index_value(e.simplify((index[d],))[0]), e.b.integer(parts[middle][1]))
    return e.if_(
        first,
        i.shape,
        lambda: _concatenate_parts(e, i, index, d, parts[:middle]),
        lambda: _concatenate_parts(e, i, index, d, parts[middle:]),
    )
