"""Sizes known only at run time (bounded dynamic dimensions). In the evaluator, arrays have their actual sizes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape, scalar
from heron.hlo.ir.types import S32
from heron.hlo.meaning.dynamic_size import resized, within_bound
from heron.hlo.ops.rules import attr, default, given, need_arrays, need_dims, need_same_type, stated

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

DIMENSIONS = {"dimensions": Attr(AttrKind.INTS, required=True)}


def need_one_dimension(i: Instruction, x: Shape) -> int:
    """The only entry of `dimensions`."""
    need_arrays(i, x)
    dims = attr(i, "dimensions")
    if len(dims) != 1:
        reject(i, "dimensions must name one dimension", f"{len(dims)} given")
    need_dims(i, "dimensions", dims, x.rank)
    return dims[0]


def need_size(i: Instruction, s: Shape, n: int) -> None:
    """Rejects an operand that is no s32 scalar: all sizes at run time are."""
    if s.bare is not scalar(S32).bare:
        reject(i, f"operand {n}, a size, must be s32[]", f"it is {s}")


@op("get-dimension-size")
class GetDimensionSize(Op):
    """The size that a dimension, the one in `dimensions`, has at run time.

    Shape: s32[].
    """

    operands = ("operand",)
    attributes = DIMENSIONS
    traits = {Trait.SIZES}

    def shape(self, i: Instruction, x: Shape) -> Shape:
        need_one_dimension(i, x)
        return scalar(S32)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        return np.array(x.shape[i.dimensions[0]], np.int32)


@op("set-dimension-size")
class SetDimensionSize(Op):
    """The operand with the dimension in `dimensions` cut to `size` elements.

    The elements that a larger size than before brings in are open; the evaluator brings in zeros.

    Shape: the operand's, with that dimension bounded (``<=``).
    """

    operands = ("operand", "size")
    attributes = DIMENSIONS
    traits = {Trait.SIZES}

    def shape(self, i: Instruction, x: Shape, size: Shape) -> Shape:
        d = need_one_dimension(i, x)
        need_size(i, size, 1)
        marks = list(x.dynamic or (False,) * x.rank)
        marks[d] = True
        if stated(i) is not None and i.shape.dims == x.dims and i.shape.dynamic == x.dynamic:
            return default(x)  # a constant size equal to the bound stays static
        return shapes.array(x.element_type, x.dims, x.layout, tuple(marks)).with_default_layout()

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, size: np.ndarray) -> np.ndarray:
        (d,) = i.dimensions
        bound = i.shape.dims[d]
        least = 0 if i.shape.dynamic and i.shape.dynamic[d] else bound
        return resized(x, d, within_bound(int(size), bound, d, least))


@op("dynamic-reshape")
class DynamicReshape(Op):
    """A reshape to sizes computed at run time, bounded by the stated ones.

    Shape: as stated.
    """

    operands = ("operand", "sizes*")
    traits = {Trait.SIZES}

    def shape(self, i: Instruction, x: Shape, *sizes: Shape) -> Shape:
        to = given(i)
        need_arrays(i, x, to, *sizes)
        need_same_type(i, x, to)
        for n, s in enumerate(sizes, 1):
            need_size(i, s, n)
        if len(sizes) != to.rank:
            reject(i, "needs one size a result dimension", f"{len(sizes)} given for {to}")
        if x.num_elements != to.num_elements:
            reject(i, "a reshape keeps the elements", f"{x} has {x.num_elements}, {to} has {to.num_elements}")
        return default(to)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, *sizes: np.ndarray) -> np.ndarray:
        dims = tuple(
            within_bound(int(n), bound, d) for d, (n, bound) in enumerate(zip(sizes, i.shape.dims, strict=True))
        )
        if prod(dims) != x.size:
            why = f"{list(dims)} has {prod(dims)} elements, the operand {x.size}"
            raise HeronError("EVAL009", f"'dynamic-reshape' to {list(dims)}", why=why)
        return x.reshape(dims)
