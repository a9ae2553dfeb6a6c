"""Elementwise ops of one operand."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from heron.hlo.evaluation import numeric
from heron.hlo.evaluation.numeric import lift, lift_precise
from heron.hlo.op import Attr, AttrKind, Op, Trait, op
from heron.hlo.ops.rules import default, need_arrays, need_kind
from heron.hlo.shape import Shape
from heron.hlo.types import PRED, ElementType

if TYPE_CHECKING:
    from heron.hlo.evaluator import Evaluator
    from heron.hlo.instruction import Instruction

FLOAT = frozenset({"float"})
FRACTION = frozenset({"float", "complex"})
INTEGER = frozenset({"signed", "unsigned"})
NUMBER = FRACTION | INTEGER
LOGICAL = INTEGER | {"pred"}


class Unary(Op):
    """Same shape out as in; `compute` gets the operand in its working type."""

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

    def evaluate(self, ev: Evaluator, i: Instruction, x: np.ndarray) -> np.ndarray:
        t = i.operands[0].shape.element_type
        return lift(lambda v: self.compute(t, v), i.shape.element_type, x)

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        """The result for operand type `t`, in a working type."""
        raise NotImplementedError


class Transcendental(Unary):
    """Computed in f64 and rounded once."""

    attributes = {"result_accuracy": Attr(AttrKind.RAW)}
    traits = {Trait.ELEMENTWISE, Trait.TRANSCENDENTAL}
    kinds = FRACTION

    def evaluate(self, ev: Evaluator, i: Instruction, x: np.ndarray) -> np.ndarray:
        t = i.shape.element_type
        return lift_precise(lambda v: self.compute(t, v), t, x)


# -- rounding and sign ----------------------------------------------------------------------------------------------
@op("abs")
class Abs(Unary):
    def shape(self, i: Instruction, x: Shape) -> Shape:
        self.check(i, x)
        return default(x.with_type(x.element_type.component))

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.abs(x)


@op("negate")
class Negate(Unary):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.negative(x)


@op("sign")
class Sign(Unary):
    """-1, 0 or 1 (``x / |x|`` when complex); zeros keep their sign, NaN stays NaN."""

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        if t.is_complex:
            return np.where(x == 0, x, x / np.abs(x))
        return np.where(x == 0, x, np.sign(x))


@op("ceil")
class Ceil(Unary):
    kinds = FLOAT

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.ceil(x)


@op("floor")
class Floor(Unary):
    kinds = FLOAT

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.floor(x)


@op("round-nearest-afz")
class RoundNearestAfz(Unary):
    """To the nearest whole number, halves away from zero."""

    kinds = FLOAT

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        whole = np.trunc(x)
        return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole)


@op("round-nearest-even")
class RoundNearestEven(Unary):
    kinds = FLOAT

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.rint(x)


# -- bits and parts -------------------------------------------------------------------------------------------------
@op("not")
class Not(Unary):
    kinds = LOGICAL

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.invert(x)


@op("popcnt")
class PopulationCount(Unary):
    kinds = INTEGER

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return numeric.popcount(x, t)


@op("count-leading-zeros")
class CountLeadingZeros(Unary):
    kinds = INTEGER

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return numeric.leading_zeros(x, t)


@op("is-finite")
class IsFinite(Unary):
    kinds = FLOAT

    def shape(self, i: Instruction, x: Shape) -> Shape:
        self.check(i, x)
        return default(x.with_type(PRED))

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.isfinite(x)


@op("real")
class Real(Unary):
    kinds = FRACTION

    def shape(self, i: Instruction, x: Shape) -> Shape:
        self.check(i, x)
        return default(x.with_type(x.element_type.component))

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.real(x)


@op("imag")
class Imag(Real):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.imag(x)


# -- roots, exponentials, logarithms --------------------------------------------------------------------------------
@op("sqrt")
class Sqrt(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.sqrt(x)


@op("rsqrt")
class Rsqrt(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return 1.0 / np.sqrt(x)


@op("cbrt")
class Cbrt(Transcendental):
    kinds = FLOAT

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.cbrt(x)


@op("exponential")
class Exponential(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.exp(x)


@op("exponential-minus-one")
class ExponentialMinusOne(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.expm1(x)


@op("log")
class Log(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.log(x)


@op("log-plus-one")
class LogPlusOne(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.log1p(x)


@op("logistic")
class Logistic(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(-x))


@op("erf")
class Erf(Transcendental):
    kinds = FLOAT

    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        from scipy.special import erf  # slow to import, seldom needed

        return erf(x)


# -- circular and hyperbolic functions ------------------------------------------------------------------------------
@op("sine")
class Sine(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.sin(x)


@op("cosine")
class Cosine(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.cos(x)


@op("tan")
class Tan(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.tan(x)


@op("sinh")
class Sinh(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.sinh(x)


@op("cosh")
class Cosh(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.cosh(x)


@op("tanh")
class Tanh(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.tanh(x)


@op("acos")
class Acos(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.arccos(x)


@op("asin")
class Asin(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.arcsin(x)


@op("acosh")
class Acosh(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.arccosh(x)


@op("asinh")
class Asinh(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.arcsinh(x)


@op("atanh")
class Atanh(Transcendental):
    def compute(self, t: ElementType, x: np.ndarray) -> np.ndarray:
        return np.arctanh(x)
