"""Elementwise ops of two operands."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from heron.hlo.ir.op import Op, Trait, op, reject
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import C64, C128, F64, PRED, ElementType
from heron.hlo.meaning import complex_math, numeric
from heron.hlo.meaning.numeric import lift, lift_precise
from heron.hlo.ops.rules import default, need_arrays, need_kind, need_same_dims, need_same_type
from heron.hlo.ops.unary import FLOAT, FRACTION, INTEGER, LOGICAL, NUMBER

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

ANY = NUMBER | LOGICAL
LATTICE = {Trait.ELEMENTWISE, Trait.COMMUTATIVE, Trait.ASSOCIATIVE}


class Binary(Op):
    """Two operands; `compute` gets them in their working type.

    Shape: the operands', which must be the same.
    """

    operands = ("lhs", "rhs")
    traits = {Trait.ELEMENTWISE}
    kinds: ClassVar[frozenset[str]] = ANY

    def shape(self, i: Instruction, x: Shape, y: Shape) -> Shape:
        if x is not y:
            need_arrays(i, x, y)
            need_same_type(i, x, y)
            need_same_dims(i, x, y)
        if not x.is_array or x.element_type.kind not in self.kinds:
            need_arrays(i, x)
            need_kind(i, x, self.kinds)
        return default(x)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = i.shape.element_type
        return lift(partial(self.compute, t), t, x, y)

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The result for operand type `t`, in a working type."""
        raise NotImplementedError


#: by a value, by a number; of up to 32 bits, of 64
DIVISIONS = ((220.0, 350.0), (12.0, 80.0))


# -- arithmetic -----------------------------------------------------------------------------------------------------
@op("add")
class Add(Binary):
    """The sum; integers wrap. For preds: or."""

    traits = LATTICE | {Trait.ADDS}
    linear = ("lhs rhs",)

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.add(x, y)

    def identity(self, t: ElementType) -> Any:
        return -0.0 if t.is_float else False if t is PRED else 0


@op("subtract")
class Subtract(Binary):
    """The difference; integers wrap."""

    traits = {Trait.ELEMENTWISE, Trait.ADDS}
    linear = ("lhs rhs",)

    kinds = NUMBER

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.subtract(x, y)


@op("multiply")
class Multiply(Binary):
    """The product; integers wrap. For preds: and."""

    traits = LATTICE | {Trait.SCALES}
    linear = ("lhs", "rhs")

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = i.shape.element_type
        return (lift_precise if t.is_complex else lift)(np.multiply, t, x, y)

    def identity(self, t: ElementType) -> Any:
        return 1


@op("mulhi")
class MultiplyHigh(Binary):
    """The upper half of the product of two integers."""

    traits = {Trait.ELEMENTWISE, Trait.COMMUTATIVE}
    kinds = INTEGER

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return numeric.multiply_high(x, y, t)


@op("divide")
class Divide(Binary):
    """The quotient. Integers: towards zero, ``x / 0 == -1``, ``INT_MIN / -1 == INT_MIN``."""

    traits = {Trait.ELEMENTWISE, Trait.SCALES}
    kinds = NUMBER
    flops = 4
    integer_flops = DIVISIONS
    code = 2
    gpu_code = 20
    complex_code = (183, 219)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = i.shape.element_type
        if t.is_complex:
            return lift_precise(complex_math.divide, t, x, y)
        return lift(numeric.divide if t.is_integer else np.divide, t, x, y)


@op("remainder")
class Remainder(Binary):
    """The remainder of a division, with the dividend's sign; integers: ``x % 0 == x``."""

    kinds = INTEGER | FLOAT
    flops = 12
    float_flops = 44
    integer_flops = DIVISIONS
    code = 4
    gpu_code = 24

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return numeric.remainder(x, y) if t.is_integer else np.fmod(x, y)


@op("power")
class Power(Binary):
    """``lhs`` to the power of ``rhs``; of integers, wrapping, and by negative powers 0 unless lhs is 1 or -1."""

    traits = {Trait.ELEMENTWISE, Trait.TRANSCENDENTAL}
    kinds = NUMBER
    flops = 40
    code = 85
    complex_code = (1129, 1122)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = i.shape.element_type
        if t.is_integer:
            return lift(partial(numeric.power, bits=t.bits), t, x, y)
        return lift_precise(complex_math.power if t.is_complex else np.power, t, x, y)


@op("atan2")
class Atan2(Binary):
    """The angle of the point (rhs, lhs)."""

    traits = {Trait.ELEMENTWISE, Trait.TRANSCENDENTAL}
    kinds = FRACTION
    flops = 30
    code = 81
    complex_code = (1022, 1015)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = i.shape.element_type
        return lift_precise(complex_math.arctan2 if t.is_complex else np.arctan2, t, x, y)


@op("complex")
class Complex(Binary):
    """Complex numbers of a real and an imaginary part.

    Shape: the operands', with the complex element type.
    """

    kinds = FLOAT
    traits = {Trait.ELEMENTWISE, Trait.CHANGES_TYPE}
    linear = ("lhs rhs",)

    def shape(self, i: Instruction, x: Shape, y: Shape) -> Shape:
        part = super().shape(i, x, y)
        if part.element_type.bits < 32:
            reject(i, f"no complex type has parts of type {part.element_type}", "f32 and f64 do")
        return part.with_type(C128 if part.element_type is F64 else C64)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x, y = np.broadcast_arrays(x, y)
        result = np.empty(x.shape, i.shape.element_type.dtype)
        result.real, result.imag = x, y
        return result


# -- order ----------------------------------------------------------------------------------------------------------
@op("maximum")
class Maximum(Binary):
    """The larger one; NaN when either is; 0 is above -0. Complex numbers: by their real parts, the first of equals."""

    traits = LATTICE | {Trait.IDEMPOTENT, Trait.EXTREMUM}

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(np.real(x) >= np.real(y), x, y) if t.is_complex else numeric.maximum(x, y)

    def identity(self, t: ElementType) -> Any:
        return numeric.extreme(t, lowest=True)


@op("minimum")
class Minimum(Binary):
    """The smaller one; NaN when either is; -0 is below 0. Complex numbers: by their real parts, the first of equals."""

    traits = LATTICE | {Trait.IDEMPOTENT, Trait.EXTREMUM}

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(np.real(x) <= np.real(y), x, y) if t.is_complex else numeric.minimum(x, y)

    def identity(self, t: ElementType) -> Any:
        return numeric.extreme(t, lowest=False)


# -- bits -----------------------------------------------------------------------------------------------------------
@op("and")
class And(Binary):
    """Both, bit by bit; for preds, logically."""

    traits = LATTICE | {Trait.IDEMPOTENT, Trait.BITWISE}
    kinds = LOGICAL

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.bitwise_and(x, y)

    def identity(self, t: ElementType) -> Any:
        return True if t is PRED else -1 if t.is_signed else (1 << t.bits) - 1


@op("or")
class Or(Binary):
    """Either, bit by bit; for preds, logically."""

    traits = LATTICE | {Trait.IDEMPOTENT, Trait.BITWISE}
    kinds = LOGICAL

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.bitwise_or(x, y)

    def identity(self, t: ElementType) -> Any:
        return 0


@op("xor")
class Xor(Binary):
    """Just one, bit by bit; for preds, logically."""

    traits = LATTICE | {Trait.BITWISE}
    kinds = LOGICAL

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.bitwise_xor(x, y)

    def identity(self, t: ElementType) -> Any:
        return 0


@op("shift-left")
class ShiftLeft(Binary):
    """``lhs`` shifted by ``rhs`` bits; zero when the amount reaches the width (negative amounts count as huge)."""

    kinds = INTEGER

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return numeric.shift(x, y, t, "left")


@op("shift-right-arithmetic")
class ShiftRightArithmetic(Binary):
    """``lhs`` shifted down by ``rhs`` bits; copies of the sign bit come in."""

    kinds = INTEGER

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return numeric.shift(x, y, t, "arithmetic")


@op("shift-right-logical")
class ShiftRightLogical(Binary):
    """``lhs`` shifted down by ``rhs`` bits; zeros come in."""

    kinds = INTEGER

    def compute(self, t: ElementType, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return numeric.shift(x, y, t, "logical")
