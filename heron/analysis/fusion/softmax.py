"""Softmaxes between two products: what a block kernel must know of one to do it in one pass over its rows."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

import numpy as np

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.facts import combiner, having, is_scaling
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait

#: what stands between a softmax and the product that reads it
_BETWEEN = having(Trait.PERMUTES) | {"convert"}
#: what stands between a number for each row and the row
_SPREAD = having(Trait.VIEW) | {"broadcast", "convert"}


class Softmax(NamedTuple):
    """``quotient``: `terms / total`, or `terms * (1 / total)`; ``terms``: `exp(x - largest)`; ``largest``, ``total``:
    the reductions of the rows. ``operand``: which one of the product's it is."""

    operand: int
    quotient: Instruction
    terms: Instruction
    largest: Instruction
    total: Instruction


def softmax_of(dot: Instruction, inside: Container[Instruction]) -> Softmax | None:
    """The softmax that an operand of a product is; None when neither is one that `inside` holds whole."""
    for n, operand in enumerate(dot.operands[:2]):
        quotient = _through(operand, _BETWEEN, inside)
        if is_scaling(quotient) and (found := _softmax(n, quotient, inside)) is not None:
            return found
    return None


def _softmax(operand: int, quotient: Instruction, inside: Container[Instruction]) -> Softmax | None:
    terms, below = quotient.operands
    if terms.opcode != "exponential":
        terms, below = below, terms
    total = _divisor(quotient, below, inside)
    if terms.opcode != "exponential" or total is None or total.operands[0] is not terms:
        return None
    difference = terms.operands[0]
    if difference.opcode != "subtract" or any(i not in inside for i in (quotient, terms, difference)):
        return None
    largest = _through(difference.operands[1], _SPREAD, inside)
    if not _reduces(largest, "maximum", -np.inf, inside) or largest.operands[0] is not difference.operands[0]:
        return None
    return Softmax(operand, quotient, terms, largest, total)


def _divisor(quotient: Instruction, below: Instruction, inside: Container[Instruction]) -> Instruction | None:
    """The sum of a row that an element is divided by."""
    total = _through(below, _SPREAD, inside)
    if quotient.opcode == "multiply":
        if total.opcode != "divide" or total not in inside or not is_splat(total.operands[0], 1):
            return None
        total = _through(total.operands[1], _SPREAD, inside)
    elif quotient.operands[0].opcode != "exponential":
        return None
    return total if _reduces(total, "add", 0.0, inside) else None


def _through(i: Instruction, opcodes: frozenset[str], inside: Container[Instruction]) -> Instruction:
    while i.opcode in opcodes and i in inside:
        i = i.operands[0]
    return i


def _reduces(i: Instruction, opcode: str, start: float, inside: Container[Instruction]) -> bool:
    if i.opcode != "reduce" or i not in inside or len(i.operands) != 2 or len(i.dimensions) != 1:
        return False
    if combiner(i.to_apply) != opcode or not i.shape.element_type.is_float:
        return False
    value = splat_value(i.operands[1])
    return value is not None and float(value) == start
