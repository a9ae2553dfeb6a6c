"""Elementwise ops of one operand."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import F64, PRED, ElementType
from heron.hlo.meaning import complex_math, numeric
from heron.hlo.meaning.numeric import lift, lift_precise
from heron.hlo.meaning.scipy_part import scipy_part
from heron.hlo.ops.rules import default, need_arrays, need_kind

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

FLOAT = frozenset({"float"})
FRACTION = frozenset({"float", "complex"})
INTEGER = frozenset({"signed", "unsigned"})
NUMBER = FRACTION | INTEGER
LOGICAL = INTEGER | {"pred"}


class Unary(Op):
    """One operand; `compute` gets it in its working type.

    Shape: the operand's.
    """

    operands = ("operand",)
    traits = {Trait.ELEMENTWISE}
    kinds: ClassVar[frozenset[str]] = NUMBER

    def shape(self, i: Instruction, x: Shape) -> Shape:
        self.check(i, x)
        return default(x)

    def check(self, i: Instruction, x: Shape) -> None:
        if not x.is_array or x.element_type.kind not in self.kinds:
            need_arrays(i, x)
            need_kind(i, x, self.kinds)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        t = i.operands[0].shape.element_type
        return lift(partial(self.compute, t), i.shape.element_type, x)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        """The result for operand type `t`, in a working type."""
        raise NotImplementedError


class Transcendental(Unary):
    """Computed in f64 and rounded once."""

    attributes = {"result_accuracy": Attr(AttrKind.RAW)}
    traits = {Trait.ELEMENTWISE, Trait.TRANSCENDENTAL}
    kinds = FRACTION

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        t = i.shape.element_type
        return lift_precise(partial(self.compute, t), t, x)


# -- rounding and sign ----------------------------------------------------------------------------------------------
@op("abs")
class Abs(Unary):
    """The magnitude; of complex numbers, a real. The least signed integer stays as it is.

    Shape: the operand's; of complex numbers, with the real element type.
    """

    traits = {Trait.ELEMENTWISE, Trait.CHANGES_TYPE}
    complex_code = (162, 226)

    def shape(self, i: Instruction, x: Shape) -> Shape:
        self.check(i, x)
        return default(x.with_type(x.element_type.component))

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.abs(x)


@op("negate")
class Negate(Unary):
    """The operand with its sign turned; integers wrap."""

    linear = ("operand",)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.negative(x)


@op("sign")
class Sign(Unary):
    """-1, 0 or 1 (``x / |x|`` when complex); zeros keep their sign, NaN stays NaN."""

    code = 4
    complex_code = (190, 276)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        if t.is_complex:
            return complex_math.sign(x.astype(np.complex128))
        return np.where(x == 0, x, np.sign(x))


@op("ceil")
class Ceil(Unary):
    """The least whole number that is not below."""

    kinds = FLOAT

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.ceil(x)


@op("floor")
class Floor(Unary):
    """The greatest whole number that is not above."""

    kinds = FLOAT

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.floor(x)


@op("round-nearest-afz")
class RoundNearestAfz(Unary):
    """To the nearest whole number, halves away from zero."""

    kinds = FLOAT
    code = 6

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        whole = np.trunc(x)
        return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole)


@op("round-nearest-even")
class RoundNearestEven(Unary):
    """To the nearest whole number, halves to the even one."""

    kinds = FLOAT

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.rint(x)


# -- bits and parts -------------------------------------------------------------------------------------------------
@op("not")
class Not(Unary):
    """Each bit turned; for preds, the other truth value."""

    kinds = LOGICAL
    traits = {Trait.ELEMENTWISE, Trait.BITWISE}

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.invert(x)


@op("popcnt")
class PopulationCount(Unary):
    """The number of set bits."""

    kinds = INTEGER
    code = 2

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return numeric.popcount(x, t)


@op("count-leading-zeros")
class CountLeadingZeros(Unary):
    """The number of zero bits above the highest set one; the width for 0."""

    kinds = INTEGER

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return numeric.leading_zeros(x, t)


@op("is-finite")
class IsFinite(Unary):
    """Whether an element is neither infinite nor NaN.

    Shape: the operand's, of preds.
    """

    kinds = FLOAT
    code = 2
    traits = {Trait.ELEMENTWISE, Trait.CHANGES_TYPE}

    def shape(self, i: Instruction, x: Shape) -> Shape:
        self.check(i, x)
        return default(x.with_type(PRED))

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.isfinite(x)


@op("real")
class Real(Unary):
    """The real part; the operand itself for reals.

    Shape: the operand's, with the real element type.
    """

    kinds = FRACTION
    traits = {Trait.ELEMENTWISE, Trait.CHANGES_TYPE}
    linear = ("operand",)

    def shape(self, i: Instruction, x: Shape) -> Shape:
        self.check(i, x)
        return default(x.with_type(x.element_type.component))

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.real(x)


@op("imag")
class Imag(Real):
    """The imaginary part; 0 for reals.

    Shape: the operand's, with the real element type.
    """

    traits = {Trait.ELEMENTWISE, Trait.CHANGES_TYPE}

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.imag(x)


# -- roots, exponentials, logarithms --------------------------------------------------------------------------------
@op("sqrt")
class Sqrt(Transcendental):
    """The square root."""

    flops = 4
    code = 2
    gpu_code = 16
    complex_code = (219, 318)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.sqrt(x)


@op("rsqrt")
class Rsqrt(Transcendental):
    """``1 / sqrt(x)``."""

    flops = 5
    code = 4
    complex_code = (290, 439)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return complex_math.reciprocal_sqrt(x) if t.is_complex else 1.0 / np.sqrt(x)


@op("cbrt")
class Cbrt(Transcendental):
    """The cube root, also of negative numbers."""

    kinds = FLOAT
    traits = {Trait.ELEMENTWISE, Trait.TRANSCENDENTAL, Trait.MONOTONE}
    flops = 25
    code = 58

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        # some C libraries' own is off by 4 units in the last place of an f64
        return np.cbrt(x.astype(np.longdouble)).astype(x.dtype) if t is F64 else np.cbrt(x)


@op("exponential")
class Exponential(Transcendental):
    """e to the power of the operand."""

    flops = 12
    code = 32
    complex_code = (205, 475)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.exp(x)


@op("exponential-minus-one")
class ExponentialMinusOne(Transcendental):
    """``exp(x) - 1``, exact for small x too."""

    flops = 18
    code = 30
    complex_code = (333, 646)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return complex_math.exponential_minus_one(x) if t.is_complex else np.expm1(x)


@op("log")
class Log(Transcendental):
    """The natural logarithm."""

    flops = 14
    code = 41
    complex_code = (247, 603)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.log(x)


@op("log-plus-one")
class LogPlusOne(Transcendental):
    """``log(1 + x)``, exact for small x too."""

    flops = 18
    code = 65
    complex_code = (283, 745)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return complex_math.log_plus_one(x) if t.is_complex else np.log1p(x)


@op("logistic")
class Logistic(Transcendental):
    """``1 / (1 + exp(-x))``."""

    traits = {Trait.ELEMENTWISE, Trait.TRANSCENDENTAL, Trait.MONOTONE}
    flops = 18
    code = 36
    complex_code = (404, 710)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        if t.is_complex:
            return complex_math.logistic(x)
        e = np.exp(-np.abs(x))  # cannot overflow
        return np.where(x < 0, e, 1.0) / (1.0 + e)


@op("erf")
class Erf(Transcendental):
    """The error function."""

    kinds = FLOAT
    traits = {Trait.ELEMENTWISE, Trait.TRANSCENDENTAL, Trait.MONOTONE}
    flops = 20
    code = 46

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return scipy_part("special").erf(x)


# -- circular and hyperbolic functions ------------------------------------------------------------------------------
@op("sine")
class Sine(Transcendental):
    """The sine."""

    flops = 22
    code = 97
    complex_code = (233, 731)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.sin(x)


@op("cosine")
class Cosine(Transcendental):
    """The cosine."""

    flops = 22
    code = 94
    complex_code = (240, 738)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.cos(x)


@op("tan")
class Tan(Transcendental):
    """The tangent."""

    flops = 30
    code = 87
    complex_code = (496, 1037)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return complex_math.tangent(x) if t.is_complex else np.tan(x)


@op("sinh")
class Sinh(Transcendental):
    """The hyperbolic sine."""

    flops = 25
    code = 42
    complex_code = (233, 724)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.sinh(x)


@op("cosh")
class Cosh(Transcendental):
    """The hyperbolic cosine."""

    flops = 25
    code = 33
    complex_code = (233, 738)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.cosh(x)


@op("tanh")
class Tanh(Transcendental):
    """The hyperbolic tangent."""

    traits = {Trait.ELEMENTWISE, Trait.TRANSCENDENTAL, Trait.MONOTONE}
    flops = 18
    code = 38
    complex_code = (496, 1030)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.tanh(x)


@op("acos")
class Acos(Transcendental):
    """The inverse cosine."""

    flops = 25
    code = 53
    complex_code = (461, 909)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.arccos(x)


@op("asin")
class Asin(Transcendental):
    """The inverse sine."""

    flops = 25
    code = 43
    complex_code = (454, 902)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.arcsin(x)


@op("atan")
class Atan(Transcendental):
    """The inverse tangent."""

    flops = 20
    code = 50

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.arctan(x)


@op("acosh")
class Acosh(Transcendental):
    """The inverse hyperbolic cosine."""

    flops = 30
    code = 89
    complex_code = (461, 902)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.arccosh(x)


@op("asinh")
class Asinh(Transcendental):
    """The inverse hyperbolic sine."""

    flops = 30
    code = 87
    complex_code = (461, 909)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.arcsinh(x)


@op("atanh")
class Atanh(Transcendental):
    """The inverse hyperbolic tangent."""

    flops = 30
    code = 83
    complex_code = (297, 590)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.arctanh(x)
