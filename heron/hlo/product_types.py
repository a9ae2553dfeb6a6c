"""The types of products (dot, convolution): of a result that is not stated, and the one that is summed in.

Operands and result may be of any types. One rule says what is computed then, for the evaluator, passes and kernels:
operands are converted to the type products are summed in, and the sums to the type of the result.
"""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import C64, C128, F32, F64, ElementType


def result_type(lhs: ElementType, rhs: ElementType) -> ElementType:
    """The type of a product whose program states none: the wider of its operands', a float rather than an integer."""
    if lhs.is_integer != rhs.is_integer:
        return rhs if lhs.is_integer else lhs
    return rhs if rhs.bits > lhs.bits else lhs


def sum_type(lhs: ElementType, rhs: ElementType, result: ElementType) -> ElementType:
    """The type that products of these types are summed in.

    Complex when one of the three is, else a float when one is, of at least 32 bits and as wide as the widest of them.
    Integers are summed in the result's type, so modulo its width; for a `pred` result in the wider operand's.
    """
    types = (lhs, rhs, result)
    wide = any(t.component is F64 for t in types)
    if any(t.is_complex for t in types):
        return C128 if wide else C64
    if any(t.is_float for t in types):
        return F64 if wide else F32
    if result.is_integer:
        return result
    return max((lhs, rhs), key=lambda t: t.bits if t.is_integer else 0)


def sum_type_of(i: Instruction) -> ElementType:
    """The type that a dot's or convolution's products are summed in."""
    lhs, rhs = (o.shape.element_type for o in i.operands[:2])
    return sum_type(lhs, rhs, i.shape.element_type)
