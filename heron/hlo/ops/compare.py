"""compare, select, clamp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import PRED
from heron.hlo.meaning.numeric import lift, maximum, minimum, total_order, working
from heron.hlo.ops.rules import attr, default, need_arrays, need_same_dims, need_same_type

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

COMPARISONS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


@op("compare")
class Compare(Op):
    """Whether ``lhs`` stands in ``direction`` to ``rhs``.

    ``type`` TOTALORDER ranks floats -NaN < -inf < … < -0 < 0 < … < inf < NaN; otherwise NaN is unequal to all.

    Shape: the operands', of preds.
    """

    operands = ("lhs", "rhs")
    attributes = {
        "direction": Attr(AttrKind.ENUM, required=True, choices=tuple(COMPARISONS)),
        "type": Attr(AttrKind.ENUM, choices=("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")),
    }
    traits = {Trait.ELEMENTWISE, Trait.CHANGES_TYPE}

    def shape(self, i: Instruction, x: Shape, y: Shape) -> Shape:
        need_arrays(i, x, y)
        if x is not y:
            need_same_type(i, x, y)
            need_same_dims(i, x, y)
        direction = attr(i, "direction")
        if direction not in COMPARISONS:
            reject(i, f"direction={direction} is none of {', '.join(COMPARISONS)}")
        if x.element_type.is_complex and direction not in ("EQ", "NE"):
            reject(i, f"complex numbers have no order for direction={direction}")
        return default(x.with_type(PRED))

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = i.operands[0].shape.element_type
        if i.type == "TOTALORDER":
            x, y = total_order(x, t), total_order(y, t)
        return COMPARISONS[i.direction](working(x), working(y))


@op("select")
class Select(Op):
    """The element of ``on_true`` where ``pred`` holds, elsewhere that of ``on_false``.

    Shape: that of the last two operands, which must be the same; ``pred`` is a scalar or has their dimensions.
    """

    operands = ("pred", "on_true", "on_false")
    traits = {Trait.ELEMENTWISE}
    linear = ("on_true on_false",)

    def shape(self, i: Instruction, pred: Shape, x: Shape, y: Shape) -> Shape:
        if x is not y:
            need_arrays(i, x, y)
            need_same_type(i, x, y)
            need_same_dims(i, x, y)
        if not x.is_array:
            need_arrays(i, pred, x, y)
        if pred.element_type is not PRED:
            reject(i, "operand 0 must be of type pred", f"it is {pred}")
        if pred.dims and pred.dims != x.dims:
            reject(i, "operand 0 must be a scalar or as large as the others", f"{pred} and {x}")
        return default(x)

    def evaluate(self, ev: Evaluation, i: Instruction, pred: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(pred, x, y)


@op("clamp")
class Clamp(Op):
    """``minimum(max, maximum(min, operand))``.

    Shape: the operand's; the bounds are scalars or have its dimensions.
    """

    operands = ("min", "operand", "max")
    traits = {Trait.ELEMENTWISE}
    code = 2

    def shape(self, i: Instruction, low: Shape, x: Shape, high: Shape) -> Shape:
        need_arrays(i, low, x, high)
        for bound, name in ((low, "min"), (high, "max")):
            need_same_type(i, bound, x)
            if bound.dims and bound.dims != x.dims:
                reject(i, f"{name} must be a scalar or as large as the operand", f"{bound} and {x}")
        if x.element_type.is_complex or x.element_type is PRED:
            reject(i, f"{x.element_type} cannot be clamped", "integers and floats can")
        return default(x)

    def evaluate(self, ev: Evaluation, i: Instruction, low: np.ndarray, x: np.ndarray, high: np.ndarray) -> np.ndarray:
        def clamp(a: np.ndarray, v: np.ndarray, b: np.ndarray) -> np.ndarray:
            return minimum(b, maximum(a, v))

        return lift(clamp, i.shape.element_type, low, x, high)
