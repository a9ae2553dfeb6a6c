"""Matrix products: dot, ragged-dot, scaled-dot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType
from heron.hlo.meaning import products
from heron.hlo.meaning.nibbles import by_halves, is_packed
from heron.hlo.ops.rules import array, need_arrays, need_dims, need_rank, stated
from heron.hlo.product_types import result_type

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

PRECISION = Attr(AttrKind.WORDS)
ALGORITHM = Attr(AttrKind.ENUM)
DIMENSION_NUMBERS = {
    "lhs_batch_dims": Attr(AttrKind.INTS, ()),
    "lhs_contracting_dims": Attr(AttrKind.INTS, (), shown=True),
    "rhs_batch_dims": Attr(AttrKind.INTS, ()),
    "rhs_contracting_dims": Attr(AttrKind.INTS, (), shown=True),
}


@op("dot")
class Dot(Op):
    """Sums of products over contracting dimensions, for each index of the batch dimensions.

    Operands and result may be of any types (s8 operands with an s32 result). Operands are converted to one type, and
    the sums to the result's: complex or float, of at least 32 bits, when one of the three is; else the result's.

    Shape: batch dimensions, then the lhs's free ones, then the rhs's.
    """

    operands = ("lhs", "rhs")
    attributes = {
        **DIMENSION_NUMBERS,
        "operand_precision": PRECISION,
        "algorithm": ALGORITHM,
    }
    traits = {Trait.PRODUCT, Trait.LIBRARY, Trait.CONTRACTS, Trait.SHAPES_KERNEL}
    linear = ("lhs", "rhs")
    code = 12

    def shape(self, i: Instruction, x: Shape, y: Shape) -> Shape:
        return dot_shape(i, x, y)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        dims = (i.lhs_batch_dims, i.lhs_contracting_dims, i.rhs_batch_dims, i.rhs_contracting_dims)
        if i.attrs.get("algorithm") is not None:
            x, y = products.rounded_for(i.algorithm, x), products.rounded_for(i.algorithm, y)
        return by_halves(i, x, y, lambda a, b: products.dot(a, b, dims, i.shape.element_type))


def dot_shape(i: Instruction, x: Shape, y: Shape) -> Shape:
    """Batch dimensions, free dimensions of the lhs, free dimensions of the rhs."""
    batch = need_dot_dims(i, x, y)
    attrs = i.attrs
    lhs_gone = (*attrs.get("lhs_batch_dims", ()), *attrs.get("lhs_contracting_dims", ()))
    rhs_gone = (*attrs.get("rhs_batch_dims", ()), *attrs.get("rhs_contracting_dims", ()))
    dims = list(batch)
    dims += [n for d, n in enumerate(x.dims) if d not in lhs_gone]
    dims += [n for d, n in enumerate(y.dims) if d not in rhs_gone]
    return array(stated_type(i, x, y), dims)


def need_dot_dims(i: Instruction, x: Shape, y: Shape) -> list[int]:
    """Checks dot dimension numbers; gives the sizes of the batch dimensions."""
    need_arrays(i, x, y)
    attrs = i.attrs
    for kind in ("batch", "contracting"):
        lhs, rhs = attrs.get(f"lhs_{kind}_dims", ()), attrs.get(f"rhs_{kind}_dims", ())
        if len(lhs) != len(rhs):
            reject(i, f"as many lhs as rhs {kind} dimensions", f"{len(lhs)} and {len(rhs)} given")
        need_dims(i, f"lhs_{kind}_dims", lhs, x.rank)
        need_dims(i, f"rhs_{kind}_dims", rhs, y.rank)
        for a, b in zip(lhs, rhs, strict=True):
            if x.dims[a] != y.dims[b]:
                reject(
                    i,
                    f"{kind} dimensions {a} of the lhs and {b} of the rhs differ in size",
                    f"{x.dims[a]} and {y.dims[b]} ({x} and {y})",
                )
    for side in ("lhs", "rhs"):
        both = set(attrs.get(f"{side}_batch_dims", ())) & set(attrs.get(f"{side}_contracting_dims", ()))
        if both:
            reject(i, f"{side} dimension {min(both)} is both batch and contracting")
    return [x.dims[d] for d in attrs.get("lhs_batch_dims", ())]


def stated_type(i: Instruction, x: Shape, y: Shape) -> ElementType:
    """The result type stated by the program, else the one that follows from the operands' types."""
    if stated(i) is not None and i.shape.is_array:
        return i.shape.element_type
    return result_type(x.element_type, y.element_type)


@op("ragged-dot")
class RaggedDot(Op):
    """A dot whose `lhs_ragged_dims` dimension is cut into groups of `group_sizes`.

    A free ragged dimension: each group of lhs rows meets its own rhs (``rhs_group_dims``). A contracting one: each
    group gives a result of its own, stacked in front. A batch one: an ordinary dot.

    Shape: that of the dot without the group dimension; with a ragged contraction, the groups' number before it.
    """

    operands = ("lhs", "rhs", "group_sizes")
    attributes = {
        **DIMENSION_NUMBERS,
        "lhs_ragged_dims": Attr(AttrKind.INTS, ()),
        "rhs_group_dims": Attr(AttrKind.INTS, ()),
        "operand_precision": PRECISION,
    }
    traits = {Trait.PRODUCT, Trait.LIBRARY}

    def shape(self, i: Instruction, x: Shape, y: Shape, sizes: Shape) -> Shape:
        batch = need_dot_dims(i, x, y)
        need_arrays(i, sizes)
        if not sizes.element_type.is_integer or not sizes.rank:
            reject(i, "group_sizes must be integers, at least a vector", f"it is {sizes}")
        if len(i.lhs_ragged_dims) != 1:
            reject(i, "lhs_ragged_dims must name one dimension", f"{len(i.lhs_ragged_dims)} given")
        need_dims(i, "lhs_ragged_dims", i.lhs_ragged_dims, x.rank)
        need_dims(i, "rhs_group_dims", i.rhs_group_dims, y.rank)
        ragged, groups = i.lhs_ragged_dims[0], sizes.dims[-1]
        free = ragged not in i.lhs_contracting_dims and ragged not in i.lhs_batch_dims
        if len(i.rhs_group_dims) != int(free):
            reject(i, "rhs_group_dims names one dimension just when the ragged one is free")
        for d in i.rhs_group_dims:
            if d in i.rhs_batch_dims or d in i.rhs_contracting_dims:
                reject(i, f"rhs dimension {d} is a group and a batch or contracting dimension")
            if y.dims[d] != groups:
                reject(i, f"rhs dimension {d} has size {y.dims[d]}", f"there are {groups} groups")
        numbers = (i.lhs_batch_dims, i.lhs_contracting_dims, i.rhs_batch_dims, i.rhs_contracting_dims)
        outer = [x.dims[d] for d in products.outer_dims(numbers, ragged)]
        if sizes.rank > 1 and [*sizes.dims[:-1]] != outer:
            reject(i, "group_sizes must be one vector or one for each place outside", f"{outer} before the last")
        dims = [groups] if ragged in i.lhs_contracting_dims else []
        dims += batch
        gone = (*i.lhs_batch_dims, *i.lhs_contracting_dims)
        dims += [n for d, n in enumerate(x.dims) if d not in gone]
        gone = (*i.rhs_batch_dims, *i.rhs_contracting_dims, *i.rhs_group_dims)
        dims += [n for d, n in enumerate(y.dims) if d not in gone]
        return array(stated_type(i, x, y), dims)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, y: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        dims = (i.lhs_batch_dims, i.lhs_contracting_dims, i.rhs_batch_dims, i.rhs_contracting_dims)
        t, ragged = i.shape.element_type, i.lhs_ragged_dims[0]
        if ragged in i.lhs_batch_dims:
            return by_halves(i, x, y, lambda a, b: products.dot(a, b, dims, t))
        group_dim = i.rhs_group_dims[0] if i.rhs_group_dims else None
        return by_halves(i, x, y, lambda a, b: products.ragged_dot(a, b, sizes, dims, ragged, group_dim, i.shape))


@op("scaled-dot")
class ScaledDot(Op):
    """A dot of operands multiplied by block scales: a scale's dimension divides the operand's; a scalar is no scale.

    Shape: that of the dot.
    """

    operands = ("lhs", "rhs", "lhs_scale", "rhs_scale")
    attributes = {**DIMENSION_NUMBERS, "operand_precision": PRECISION, "algorithm": ALGORITHM}
    traits = {Trait.PRODUCT, Trait.LIBRARY}

    def shape(self, i: Instruction, x: Shape, y: Shape, x_scale: Shape, y_scale: Shape) -> Shape:
        need_arrays(i, x, y, x_scale, y_scale)
        if is_packed(i):
            reject(i, "packed nibbles have no scales", f"operand_precision is {','.join(i.operand_precision or ())}")
        for n, (s, scale) in enumerate(((x, x_scale), (y, y_scale))):
            if not scale.rank:
                continue
            need_rank(i, scale, s.rank, f"the scale of operand {n}")
            if any(not b or a % b for a, b in zip(s.dims, scale.dims, strict=True)):
                reject(i, f"the scale's dimensions must divide those of operand {n}", f"{scale} and {s}")
        return dot_shape(i, x, y)

    def evaluate(
        self,
        ev: Evaluation,
        i: Instruction,
        x: np.ndarray,
        y: np.ndarray,
        x_scale: np.ndarray,
        y_scale: np.ndarray,
    ) -> np.ndarray:
        dims = (i.lhs_batch_dims, i.lhs_contracting_dims, i.rhs_batch_dims, i.rhs_contracting_dims)
        return products.dot(products.scaled(x, x_scale), products.scaled(y, y_scale), dims, i.shape.element_type)
