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

from heron.hlo.exact import holds_all
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


@functools.cache
def done_of() -> dict[str, str]:
    """Every opcode that begins work (``all-gather-start``, ``send``, …) → the one that waits for its end."""
    return {op.name: op.done for op in all_ops() if op.done}


@functools.cache
def ends_work(opcode: str) -> bool:
    """Whether the op waits for the end of work that another one began: ``all-gather-done``, ``recv-done``, …"""
    return opcode in done_of().values()


# -- movement --------------------------------------------------------------------------------------------------------
def has_start_operands(op: Op) -> bool:
    """Whether operands of `op` say where a slice starts: dynamic-slice, dynamic-update-slice."""
    return "start_indices*" in op.operands


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


@functools.cache
def reshapings() -> frozenset[str]:
    """The opcodes that give an array other dimensions and keep its elements: reshape, transpose."""
    return opcodes(lambda op: Trait.PERMUTES in op.traits and not op.is_elementwise and Trait.FREE not in op.traits)


def rearranges(i: Instruction) -> bool:
    """Whether `i` may bring the operand's elements into another order in memory: transpose, copy."""
    return Trait.PERMUTES in i.op.traits and not is_view(i)


def is_generated(i: Instruction) -> bool:
    """Whether `i` is a broadcast or an iota: cheaper to compute where it is read than to keep in memory."""
    return Trait.GENERATED in i.op.traits


def reads_part(i: Instruction) -> bool:
    """Whether `i` reads only some elements of operand 0: slice, dynamic-slice, gather."""
    return Trait.READS_PART in i.op.traits


def updates_operand(i: Instruction) -> bool:
    """Whether `i` is operand 0 with some elements replaced, so that it can be done in the operand's memory."""
    return Trait.UPDATES_OPERAND in i.op.traits


def updated_operands(i: Instruction) -> Sequence[Instruction]:
    """The operands that `i` gives back with some elements replaced; a scatter may have several."""
    if not updates_operand(i):
        return ()
    return i.operands[: len(i.operands) // 2 if i.opcode == "scatter" else 1]


def works_in_step(i: Instruction) -> bool:
    """Whether an element of `i` may be written over an operand's element at the same index: elementwise and alike."""
    return i.op.is_elementwise or Trait.IN_PLACE in i.op.traits


def works_on_own_operand(i: Instruction) -> bool:
    """Whether each output may be computed where the operand of the same number lies: sort, all-reduce."""
    return Trait.IN_PLACE in i.op.traits and Trait.CALL not in i.op.traits


def is_indirect(i: Instruction) -> bool:
    """Whether `i` reads or writes at indices that another operand holds, one for each part: gather, scatter."""
    return Trait.INDIRECT in i.op.traits


def is_slice(i: Instruction) -> bool:
    """Whether `i` is one box of operand 0: slice, dynamic-slice."""
    return reads_part(i) and not is_indirect(i)


def is_copy(i: Instruction) -> bool:
    """Whether `i` copies an array, or begins to."""
    return i.opcode == "copy" or i.opcode == "copy-start"


# -- work ------------------------------------------------------------------------------------------------------------
def is_expensive(i: Instruction) -> bool:
    """Whether an element costs more to compute again than to keep: divisions, roots and transcendental functions."""
    return i.op.flops >= EXPENSIVE_FLOPS


def calls_function(i: Instruction) -> bool:
    """Whether an element takes a call of a maths function: transcendental ops but square roots."""
    return Trait.TRANSCENDENTAL in i.op.traits and i.op.flops >= FUNCTION_FLOPS


def is_additive(i: Instruction) -> bool:
    """Whether `i` is the sum or the difference of two operands, element by element."""
    return Trait.ADDS in i.op.traits


def shapes_kernel(i: Instruction) -> bool:
    """Whether the kernel of `i` may be other than one loop that computes each element of the results by itself."""
    return Trait.SHAPES_KERNEL in i.op.traits


def is_over_operand(i: Instruction) -> bool:
    """Whether the work follows the elements of an operand, not those of the result: reduce, scatter, sort."""
    return Trait.OVER_OPERAND in i.op.traits


def is_scaling(i: Instruction) -> bool:
    """Whether `i` is a product or a quotient of two operands, element by element."""
    return Trait.SCALES in i.op.traits


def is_product(i: Instruction) -> bool:
    """Whether `i` sums products: dot, ragged-dot, scaled-dot, convolution."""
    return Trait.PRODUCT in i.op.traits


def is_plain_product(i: Instruction) -> bool:
    """Whether `i` sums products of two arrays alone, without group sizes or scales: dot, convolution."""
    return i.opcode in plain_products()


@functools.cache
def plain_products() -> frozenset[str]:
    """The opcodes of plain products."""
    return opcodes(lambda op: Trait.PRODUCT in op.traits and op.max_operands == 2)


def contracts(i: Instruction) -> bool:
    """Whether `i` is a dot or a reduce: all elements along some dimensions become one."""
    return Trait.CONTRACTS in i.op.traits


def is_reduction(i: Instruction) -> bool:
    """Whether `i` is a reduce or a reduce-window: half its operands are arrays, half initial values."""
    return Trait.REDUCES in i.op.traits


def linear_groups(i: Instruction) -> list[tuple[int, ...]]:
    """Groups of operands in which `i` is linear: of sums in all operands of a group, the others being the same, its
    value is the sum of its values for the summands. But for rounding, and for factors that are no finite numbers."""
    op = i.op
    if not op.linear or ("to_apply" in op.attributes and combiner(i.to_apply) != "add"):
        return []
    types = {o.shape.element_type for o in i.operands if o.shape.is_array}
    if is_product(i) and types != {i.shape.element_type} and any(t.is_integer for t in types):
        return []  # summands wrap in another type than the result
    if Trait.CONVERTS in op.traits and not _converts_sums(i):
        return []
    return [tuple(n for name in group.split() for n in _numbers(i, name)) for group in op.linear]


def _converts_sums(i: Instruction) -> bool:
    """Whether the conversion of a sum is the sum of the conversions: summands that are integers wrap before it, and
    those that lose digits lose more of them."""
    old, new = i.operands[0].shape.element_type, i.shape.element_type
    return not old.is_integer and old.kind != "pred" and holds_all(old, new)


def _numbers(i: Instruction, name: str) -> range:
    """The numbers of the operands of that name; a name with a star has all that are left."""
    first = i.op.operands.index(name)
    return range(first, len(i.operands) if name.endswith("*") else first + 1)


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


def parts_of(i: Instruction) -> Sequence[Instruction]:
    """The operands of a tuple; of anything else, itself."""
    return i.operands if i.opcode == "tuple" else [i]


def root_parts(c: Computation) -> Sequence[Instruction]:
    """The results of a computation: the operands of a root tuple, or the root."""
    return parts_of(c.root)


def is_tuple_op(i: Instruction) -> bool:
    """Whether `i` makes a tuple or takes one element of it."""
    return Trait.TUPLE in i.op.traits


def is_boundary(i: Instruction) -> bool:
    """Whether values enter or leave a computation by `i`: parameter, tuple."""
    return i.opcode == "parameter" or i.opcode == "tuple"


def is_stored(i: Instruction) -> bool:
    """Whether the value of `i` is in memory whatever is fused: a parameter, a part of a tuple, what a library or a
    called computation gives."""
    return i.opcode in _stored()


@functools.cache
def _stored() -> frozenset[str]:
    return having(Trait.LIBRARY, Trait.CONTROL_FLOW) | {"parameter", "get-tuple-element"}


def is_call(i: Instruction) -> bool:
    """Whether `i` is a call or a fusion: the value of its computation on the operands."""
    return Trait.CALL in i.op.traits


def continues_async(i: Instruction) -> bool:
    """Whether `i` is an async-update or an async-done: operand 0 is the work that it continues or ends."""
    return Trait.ASYNC in i.op.traits and not i.op.done


def begun_by(i: Instruction) -> Computation:
    """The computation of the async-start that `i`, an async-update or async-done, goes back to."""
    while continues_async(i):
        i = i.operands[0]
    return i.calls


def is_device_id(i: Instruction) -> bool:
    """Whether `i` is a replica-id or a partition-id."""
    return Trait.DEVICE_ID in i.op.traits


# -- reducers --------------------------------------------------------------------------------------------------------
def is_combiner(op: Op) -> bool:
    """Whether a reduction by `op` does not depend on the order of elements, but for rounding."""
    return Trait.COMMUTATIVE in op.traits and Trait.ASSOCIATIVE in op.traits


def is_order_free(opcode: str) -> bool:
    """Whether a reduction by that op gives the same bits in any order: it only picks operands or works on bits."""
    return not get(opcode).traits.isdisjoint((Trait.EXTREMUM, Trait.BITWISE))


def accumulates(op: Op) -> bool:
    """Whether a reduction by `op` adds or multiplies: each step makes a new number, and rounds it if it is a float."""
    return is_combiner(op) and not is_order_free(op.name)


def identity(opcode: str, t: ElementType) -> Any:
    """The value e with ``op(e, x) == x`` for every x of type `t`; -0.0 for sums of floats. None when there is none."""
    return get(opcode).identity(t)


def combiner(c: Computation) -> str | None:
    """The opcode when `c` is one commutative op applied to its two scalar parameters, else None."""
    root = c.root
    if not is_combiner(root.op) or len(c) != 3:
        return None
    a, b = root.operands
    if a.opcode == b.opcode == "parameter" and a is not b and a.shape.bare is b.shape.bare is root.shape.bare:
        return root.opcode
    return None


def combiners(c: Computation) -> tuple[str, ...]:
    """The opcodes, where each of n results is one commutative op of parameters k and n + k; otherwise none."""
    one = combiner(c)
    if one is not None:
        return (one,)
    results = c.root.operands if c.root.opcode == "tuple" else ()
    pairs = [{o.attrs.get("number") for o in r.operands if o.opcode == "parameter"} for r in results]
    same = all(pair == {k, len(results) + k} for k, pair in enumerate(pairs))
    return tuple(r.opcode for r in results) if same and all(is_combiner(r.op) for r in results) else ()
