"""Expression: arithmetic written as formulas, which adds instructions to a block.

Numbers in a formula become constants of the other side's shape. Functions of small floats are worked out in f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heron.frontends.stablehlo.block import Block
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, F64, PRED, ElementType

Operand = Any  # an Expression or a number


class Expression:
    """The value of an instruction, with Python's operators; comparisons are methods."""

    __slots__ = ("block", "i")

    def __init__(self, block: Block, i: Instruction) -> None:
        self.block, self.i = block, i

    @property
    def type(self) -> ElementType:
        return self.i.shape.element_type

    def like(self, value: Operand) -> Expression:
        """A number as a constant of this shape; expressions as they are."""
        if isinstance(value, Expression):
            return value
        return Expression(self.block, self.block.full(value, self.i.shape))

    def apply(self, opcode: str, *others: Operand, **attrs: Any) -> Expression:
        """An op of this value and others."""
        operands = [self.i, *(self.like(o).i for o in others)]
        return Expression(self.block, self.block.add(opcode, operands, **attrs))

    def __add__(self, other: Operand) -> Expression:
        return self.apply("add", other)

    def __radd__(self, other: Operand) -> Expression:
        return self.like(other).apply("add", self)

    def __sub__(self, other: Operand) -> Expression:
        return self.apply("subtract", other)

    def __rsub__(self, other: Operand) -> Expression:
        return self.like(other).apply("subtract", self)

    def __mul__(self, other: Operand) -> Expression:
        return self.apply("multiply", other)

    def __rmul__(self, other: Operand) -> Expression:
        return self.like(other).apply("multiply", self)

    def __truediv__(self, other: Operand) -> Expression:
        return self.apply("divide", other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return self.like(other).apply("divide", self)

    def __neg__(self) -> Expression:
        return self.apply("negate")

    def __and__(self, other: Expression) -> Expression:
        return self.apply("and", other)

    def __or__(self, other: Expression) -> Expression:
        return self.apply("or", other)

    def __invert__(self) -> Expression:
        return self.apply("not")

    def __abs__(self) -> Expression:
        return self.apply("abs")

    def compare(self, direction: str, other: Operand) -> Expression:
        return self.apply("compare", other, direction=direction)

    def less(self, other: Operand) -> Expression:
        return self.compare("LT", other)

    def equals(self, other: Operand) -> Expression:
        return self.compare("EQ", other)

    def power(self, other: Operand) -> Expression:
        return self.apply("power", other)

    def convert(self, element_type: ElementType) -> Expression:
        if self.type is element_type:
            return self
        i = self.block.add("convert", (self.i,), self.i.shape.with_type(element_type))
        return Expression(self.block, i)

    def bits(self, element_type: ElementType) -> Expression:
        """The same bits as another type of equal width."""
        i = self.block.add("bitcast-convert", (self.i,), self.i.shape.with_type(element_type))
        return Expression(self.block, i)

    def named(self, opcode: str) -> Expression:
        """A unary op by its opcode; reads better than `apply` in formulas."""
        return self.apply(opcode)

    def is_integral(self) -> Expression:
        return self.equals(self.named("floor"))


def where(condition: Expression, yes: Operand, no: Operand) -> Expression:
    """``yes`` where the condition holds, else ``no``; one of the two must be an expression."""
    assert condition.type is PRED
    if isinstance(yes, Expression):
        pair = yes, yes.like(no)
    else:
        pair = no.like(yes), no
    return condition.apply("select", *pair)


def polynomial(x: Expression, coefficients: Sequence[float]) -> Expression:
    """By Horner's rule, the highest power's coefficient first."""
    total = x.like(coefficients[0])
    for c in coefficients[1:]:
        total = total * x + c
    return total


def in_working_type(function: Callable[..., Expression]) -> Callable[..., Expression]:
    """Let a function of floats see f32 or f64 only; its result has the operands' type again."""

    def worked(*operands: Expression) -> Expression:
        t = operands[0].type
        work = F64 if t is F64 else F32
        return function(*(o.convert(work) for o in operands)).convert(t)

    return worked
