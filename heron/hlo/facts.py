"""Questions about ops and instructions, answered from the op declarations.

Ask here rather than listing opcodes: a new op then answers by its declaration, and no list is left to forget. For a
set of opcodes, `having` gives the names of all ops with a trait::

    if facts.is_view(i): ...
    _CHEAP = facts.having(Trait.MOVES_ELEMENTS) | facts.having(Trait.GIVEN)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Op, Trait, all_ops, get
from heron.hlo.ir.types import ElementType

#: flops of one element from which computing it again costs more than keeping it
EXPENSIVE_FLOPS = 4
#: flops of one element from which a transcendental op is a call of a maths function, not an instruction
FUNCTION_FLOPS = 12


# -- sets of opcodes -------------------------------------------------------------------------------------------------
@functools.cache
def having(*traits: Trait) -> frozenset[str]:
    """The opcodes of all ops with any of these traits."""
    return opcodes(lambda op: not op.traits.isdisjoint(traits))


def opcodes(condition: Callable[[Op], bool]) -> frozenset[str]:
    """The opcodes of all ops that fulfil a condition."""
    return frozenset(op.name for op in all_ops() if condition(op))


# -- movement --------------------------------------------------------------------------------------------------------
def is_view(i: Instruction) -> bool:
    """Whether `i` is a bitcast or a reshape: the operand's elements in the same row-major order."""
    return Trait.VIEW in i.op.traits


def keeps_order(i: Instruction) -> bool:
    """Whether `i` is a view or a copy: element n of the result, in row-major order, is element n of the operand."""
    return Trait.VIEW in i.op.traits or i.opcode == "copy"


def moves_elements(i: Instruction) -> bool:
    """Whether `i` computes nothing: its elements are elements of its operands, or indices. Copies are elementwise."""
    return Trait.MOVES_ELEMENTS in i.op.traits


def reindexes(i: Instruction) -> bool:
    """Whether every element of `i` is an element of its one operand, at an index known from the attributes."""
    return Trait.REINDEXES in i.op.traits


def reads_part(i: Instruction) -> bool:
    """Whether `i` reads only some elements of operand 0: slice, dynamic-slice, gather."""
    return Trait.READS_PART in i.op.traits


def updates_operand(i: Instruction, n: int = 0) -> bool:
    """Whether `i` is operand `n` with some elements replaced, so that it can be done in the operand's memory."""
    if Trait.UPDATES_OPERAND not in i.op.traits:
        return False
    return n == 0 or i.opcode == "scatter" and n < len(i.operands) // 2


# -- work ------------------------------------------------------------------------------------------------------------
def is_expensive(i: Instruction) -> bool:
    """Whether an element costs more to compute again than to keep: divisions, roots and transcendental functions."""
    return i.op.flops >= EXPENSIVE_FLOPS


def calls_function(i: Instruction) -> bool:
    """Whether an element takes a call of a maths function: transcendental ops but square roots."""
    return Trait.TRANSCENDENTAL in i.op.traits and i.op.flops >= FUNCTION_FLOPS


def is_product(i: Instruction) -> bool:
    """Whether `i` sums products: dot, ragged-dot, scaled-dot, convolution."""
    return Trait.PRODUCT in i.op.traits


# -- structure -------------------------------------------------------------------------------------------------------
def is_given(i: Instruction) -> bool:
    """Whether `i` is a parameter or a constant."""
    return Trait.GIVEN in i.op.traits


def is_leaf(i: Instruction) -> bool:
    """Whether the op takes no operands: parameter, constant, iota, partition-id, replica-id, …"""
    return i.op.max_operands == 0


def is_free(i: Instruction) -> bool:
    """Whether `i` takes no time of its own: parameters, constants, tuples, bitcasts, waits."""
    return Trait.FREE in i.op.traits


def is_alias(i: Instruction) -> bool:
    """Whether `i` is a bitcast or an element of a tuple: memory its operand has, under another name."""
    return i.opcode == "bitcast" or i.opcode == "get-tuple-element"


def root_parts(c: Computation) -> Sequence[Instruction]:
    """The results of a computation: the operands of a root tuple, or the root."""
    return c.root.operands if c.root.opcode == "tuple" else [c.root]


# -- reducers --------------------------------------------------------------------------------------------------------
def is_combiner(op: Op) -> bool:
    """Whether a reduction by `op` does not depend on the order of elements, but for rounding."""
    return Trait.COMMUTATIVE in op.traits and Trait.ASSOCIATIVE in op.traits


def identity(opcode: str, t: ElementType) -> Any:
    """The value e with ``op(e, x) == x`` for every x of type `t`; -0.0 for sums of floats. None when there is none."""
    return get(opcode).identity(t)
