"""Formulas over real scalars: Python's operators emit ops, so that a function of complex numbers reads as it is."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.ir import Attribute, Operation, SSAValue

from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.values import Pair
from heron.codegen.ir.types import F64


class Real:
    """A float scalar of the function being emitted; Python numbers it is combined with become constants of its type."""

    __slots__ = ("e", "v")

    def __init__(self, e: FunctionEmitter, v: SSAValue) -> None:
        self.e, self.v = e, v

    @property
    def type(self) -> Attribute:
        return self.v.type

    @property
    def is_double(self) -> bool:
        return self.v.type == F64

    def of(self, number: float) -> Real:
        """A constant of the same type."""
        return Real(self.e, self.e.b.floating(number, self.v.type))

    def value_of(self, other: Real | float) -> SSAValue:
        return other.v if isinstance(other, Real) else self.e.b.floating(float(other), self.v.type)

    def _binary(self, kind: type[Operation], other: Real | float, swap: bool = False) -> Real:
        a, b = self.v, self.value_of(other)
        return Real(self.e, self.e.b.op(kind, *((b, a) if swap else (a, b))))

    def __add__(self, other: Real | float) -> Real:
        return self._binary(arith.AddfOp, other)

    __radd__ = __add__

    def __sub__(self, other: Real | float) -> Real:
        return self._binary(arith.SubfOp, other)

    def __rsub__(self, other: float) -> Real:
        return self._binary(arith.SubfOp, other, swap=True)

    def __mul__(self, other: Real | float) -> Real:
        return self._binary(arith.MulfOp, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Real | float) -> Real:
        return self._binary(arith.DivfOp, other)

    def __rtruediv__(self, other: float) -> Real:
        return self._binary(arith.DivfOp, other, swap=True)

    def __neg__(self) -> Real:
        return self.apply(arith.NegfOp)

    def __abs__(self) -> Real:
        return self.apply(math.AbsFOp)

    def apply(self, kind: type[Operation]) -> Real:
        """A function of one operand."""
        return Real(self.e, self.e.b.op(kind, self.v))

    def copysign(self, sign: Real) -> Real:
        """The magnitude with another's sign."""
        return self._binary(math.CopySignOp, sign)

    def atan2(self, x: Real) -> Real:
        """The angle of the point (x, self)."""
        return self._binary(math.Atan2Op, x)

    def largest(self, other: Real) -> Real:
        """The larger one; NaN when either is."""
        return self._binary(arith.MaximumfOp, other)

    def smallest(self, other: Real) -> Real:
        """The smaller one; NaN when either is."""
        return self._binary(arith.MinimumfOp, other)

    def _compare(self, predicate: str, other: Real | float) -> Truth:
        return Truth(self.e, self.e.b.cmpf(predicate, self.v, self.value_of(other)))

    def __lt__(self, other: Real | float) -> Truth:
        return self._compare("olt", other)

    def __gt__(self, other: Real | float) -> Truth:
        return self._compare("ogt", other)

    def __ge__(self, other: Real | float) -> Truth:
        return self._compare("oge", other)

    def equals(self, other: Real | float) -> Truth:
        return self._compare("oeq", other)

    def is_nan(self) -> Truth:
        return self._compare("uno", self)

    def is_infinite(self) -> Truth:
        return abs(self).equals(float("inf"))

    def is_finite(self) -> Truth:
        return abs(self) < float("inf")


class Truth:
    """A condition."""

    __slots__ = ("e", "v")

    def __init__(self, e: FunctionEmitter, v: SSAValue) -> None:
        self.e, self.v = e, v

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.e, self.e.b.op(arith.AndIOp, self.v, other.v))

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.e, self.e.b.op(arith.OrIOp, self.v, other.v))

    def __invert__(self) -> Truth:
        return Truth(self.e, self.e.b.op(arith.XOrIOp, self.v, self.e.b.integer(1, self.v.type)))

    def choose(self, yes: Real | float, no: Real | float) -> Real:
        """`yes` where it holds, else `no`; one of them is no plain number."""
        like = yes if isinstance(yes, Real) else no
        assert isinstance(like, Real)
        return Real(self.e, self.e.b.select(self.v, like.value_of(yes), like.value_of(no)))


def parts(e: FunctionEmitter, z: Pair) -> tuple[Real, Real]:
    """The parts of a complex value."""
    return Real(e, z.re), Real(e, z.im)


def joined(re: Real, im: Real) -> Pair:
    """A complex value from its parts."""
    return Pair(re.v, im.v)
