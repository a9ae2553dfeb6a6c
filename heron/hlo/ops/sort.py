"""sort and topk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import PRED_SCALAR, Shape, scalar, tuple_
from heron.hlo.ir.types import S32
from heron.hlo.meaning import sorting
from heron.hlo.ops.rules import array, attr, default, need_arrays, need_dims, need_signature

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction


@op("sort")
class Sort(Op):
    """Sorts along one dimension, all operands by the same order; ``to_apply(a0, b0, a1, b1…)`` says a before b.

    The evaluator always sorts stably.

    Shape: the operand's; a tuple of the operands' for several.
    """

    operands = ("operands*",)
    attributes = {
        "dimensions": Attr(AttrKind.INTS, required=True),
        "is_stable": Attr(AttrKind.BOOL, False),
        "to_apply": Attr(AttrKind.COMPUTATION, required=True),
    }
    traits = {
        Trait.APPLIES, Trait.LIBRARY, Trait.IN_PLACE, Trait.ONE_BY_ONE, Trait.SHAPES_KERNEL, Trait.OVER_OPERAND,
    }  # fmt: skip
    code = 40

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        if not operands:
            reject(i, "needs at least one operand")
        need_arrays(i, *operands)
        first, dims = operands[0], attr(i, "dimensions")
        for n, s in enumerate(operands):
            if s.dims != first.dims:
                reject(i, f"operand {n} has other dimensions than operand 0", f"{s} and {first}")
        if len(dims) != 1:
            reject(i, "dimensions must name one dimension", f"{len(dims)} given")
        need_dims(i, "dimensions", dims, first.rank)
        pairs = [scalar(s.element_type) for s in operands for _ in range(2)]
        need_signature(i, "to_apply", attr(i, "to_apply"), pairs, PRED_SCALAR)
        return default(first) if len(operands) == 1 else tuple_([default(s) for s in operands])

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: np.ndarray) -> object:
        (d,) = i.dimensions
        permutation = sorting.order(ev, i.to_apply, operands, d)
        results = tuple(np.take_along_axis(x, permutation, d) for x in operands)
        return results[0] if len(results) == 1 else results


@op("topk")
class TopK(Op):
    """The k largest (or smallest) elements of the last dimension and their positions; of equals, earlier ones first.

    Shape: a tuple: the operand's with k in the last dimension, and the same of s32.
    """

    operands = ("operand",)
    attributes = {
        "k": Attr(AttrKind.INT, required=True),
        "largest": Attr(AttrKind.BOOL, required=True),
    }
    traits = {Trait.LIBRARY}

    def shape(self, i: Instruction, x: Shape) -> Shape:
        need_arrays(i, x)
        k = attr(i, "k")
        attr(i, "largest")
        if not x.rank or not 0 <= k <= x.dims[-1]:
            reject(i, f"k={k} does not fit the last dimension", f"the operand is {x}")
        dims = (*x.dims[:-1], k)
        return tuple_([array(x.element_type, dims), array(S32, dims)])

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return sorting.top_k(x, i.operands[0].shape.element_type, i.k, i.largest)
