"""Ops that only move elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape
from heron.hlo.ops.rules import array, attr, default, given, need_arrays, need_dims, need_same_type

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

DIMENSIONS = {"dimensions": Attr(AttrKind.INTS, required=True)}


@op("broadcast")
class Broadcast(Op):
    """Operand dimension n becomes result dimension ``dimensions[n]``; along the others the operand repeats.

    Shape: as stated; it has the operand's sizes in those dimensions.
    """

    operands = ("operand",)
    attributes = DIMENSIONS
    traits = {Trait.MOVES_ELEMENTS, Trait.REINDEXES, Trait.GENERATED}
    linear = ("operand",)
    flops = 0
    code = 0

    def shape(self, i: Instruction, x: Shape) -> Shape:
        to, dims = given(i), attr(i, "dimensions")
        need_arrays(i, x, to)
        need_same_type(i, x, to)
        if len(dims) != x.rank:
            reject(i, "one result dimension for each operand dimension", f"{len(dims)} given for {x}")
        need_dims(i, "dimensions", dims, to.rank)
        for n, d in enumerate(dims):
            if x.dims[n] != to.dims[d]:
                reject(i, f"operand dimension {n} has another size than result dimension {d}", f"{x} and {to}")
        return default(to)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        dims, to = i.dimensions, i.shape.dims
        order = sorted(range(len(dims)), key=dims.__getitem__)
        sizes = [1] * len(to)
        for n, d in enumerate(dims):
            sizes[d] = x.shape[n]
        return np.broadcast_to(x.transpose(order).reshape(sizes), to)


@op("reshape")
class Reshape(Op):
    """The same elements in row-major order, under other dimensions.

    Shape: as stated, with as many elements.
    """

    operands = ("operand",)
    attributes = {"inferred_dimension": Attr(AttrKind.INT)}
    traits = {Trait.VIEW, Trait.MOVES_ELEMENTS, Trait.REINDEXES, Trait.PERMUTES}
    linear = ("operand",)
    flops = 0
    code = 3

    def shape(self, i: Instruction, x: Shape) -> Shape:
        to = given(i)
        need_arrays(i, x, to)
        need_same_type(i, x, to)
        if x.num_elements != to.num_elements:
            reject(i, "a reshape keeps the elements", f"{x} has {x.num_elements}, {to} has {to.num_elements}")
        return default(to)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        return x.reshape(i.shape.dims)


@op("transpose")
class Transpose(Op):
    """Result dimension n is operand dimension ``dimensions[n]``.

    Shape: the operand's sizes in that order.
    """

    operands = ("operand",)
    attributes = DIMENSIONS
    traits = {Trait.MOVES_ELEMENTS, Trait.REINDEXES, Trait.PERMUTES, Trait.SHAPES_KERNEL}
    linear = ("operand",)
    flops = 0
    code = 0

    def shape(self, i: Instruction, x: Shape) -> Shape:
        dims: tuple[int, ...] = attr(i, "dimensions")
        need_arrays(i, x)
        if len(dims) != x.rank:
            reject(i, "dimensions must name each operand dimension", f"{len(dims)} given for {x}")
        need_dims(i, "dimensions", dims, x.rank)
        dynamic = tuple(x.dynamic[d] for d in dims) if x.dynamic else ()
        return array(x.element_type, [x.dims[d] for d in dims], dynamic)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        return x.transpose(i.dimensions)


@op("reverse")
class Reverse(Op):
    """The operand turned around along `dimensions`.

    Shape: the operand's.
    """

    operands = ("operand",)
    attributes = DIMENSIONS
    traits = {Trait.MOVES_ELEMENTS, Trait.REINDEXES, Trait.ANY_ORDER}
    linear = ("operand",)
    flops = 0

    def shape(self, i: Instruction, x: Shape) -> Shape:
        need_arrays(i, x)
        need_dims(i, "dimensions", attr(i, "dimensions"), x.rank)
        return default(x)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        return np.flip(x, i.dimensions)


@op("concatenate")
class Concatenate(Op):
    """The operands one behind the other along the one dimension in `dimensions`.

    Shape: the operands' sizes summed in that dimension; in the others they must be the same.
    """

    operands = ("operands*",)
    attributes = DIMENSIONS
    traits = {Trait.MOVES_ELEMENTS, Trait.SHAPES_KERNEL, Trait.ANY_ORDER}
    linear = ("operands*",)
    code = 0
    code_per_operand = 8

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        if not operands:
            reject(i, "needs at least one operand")
        need_arrays(i, *operands)
        first = operands[0]
        dims: tuple[int, ...] = attr(i, "dimensions")
        if len(dims) != 1:
            reject(i, "dimensions must name one dimension", f"{len(dims)} given")
        need_dims(i, "dimensions", dims, first.rank)
        (d,) = dims
        total = first.dims[d]
        for n, s in enumerate(operands[1:], 1):
            need_same_type(i, first, s)
            if s.rank != first.rank or any(s.dims[k] != first.dims[k] for k in range(s.rank) if k != d):
                reject(i, f"operand {n} may differ from operand 0 in dimension {d} only", f"{s} and {first}")
            total += s.dims[d]
        return array(first.element_type, (*first.dims[:d], total, *first.dims[d + 1 :]), first.dynamic)

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: np.ndarray) -> np.ndarray:
        return np.concatenate(operands, i.dimensions[0])


@op("pad")
class Pad(Op):
    """The operand with ``padding_value`` around and between its elements.

    ``padding``: (low, high, interior) a dimension; interior counts between elements, negative edges cut.

    Shape: each size n becomes ``low + n + interior * (n - 1) + high``.
    """

    operands = ("operand", "padding_value")
    attributes = {"padding": Attr(AttrKind.PADDING, required=True)}
    traits = {Trait.MOVES_ELEMENTS, Trait.ANY_ORDER}
    linear = ("operand padding_value",)
    code = 20

    def shape(self, i: Instruction, x: Shape, value: Shape) -> Shape:
        need_arrays(i, x, value)
        need_same_type(i, x, value)
        padding = attr(i, "padding")
        if value.rank:
            reject(i, "operand 1 must be a scalar", f"it is {value}")
        if len(padding) != x.rank:
            reject(i, "padding needs one entry a dimension", f"{len(padding)} given for {x}")
        dims: list[int] = []
        for d, (low, high, interior) in enumerate(padding):
            if interior < 0:
                reject(i, f"interior padding of dimension {d} is negative", f"{interior}")
            size = low + high + _dilated(x.dims[d], interior)
            if size < 0:
                reject(i, f"padding leaves dimension {d} a negative size", f"{size}")
            dims.append(size)
        return array(x.element_type, dims, x.dynamic)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, value: np.ndarray) -> np.ndarray:
        full: list[int] = []
        inside: list[slice] = []
        kept: list[slice] = []
        for n, (low, high, interior) in zip(x.shape, i.padding, strict=True):
            start = max(low, 0)
            end = start + _dilated(n, interior)
            full.append(end + max(high, 0))
            inside.append(slice(start, end, interior + 1))
            kept.append(slice(max(-low, 0), min(high, 0) or None))
        result = np.full(full, value, x.dtype)
        result[tuple(inside)] = x
        return result[tuple(kept)]


def _dilated(size: int, interior: int) -> int:
    return size + max(size - 1, 0) * interior
