"""The keys of a comparator: one or more numbers of each element that can be sorted by their bits.

A comparator gives for two elements whether the first comes before the second. It is taken for an order by keys where it
compares a number computed from the one with the same computed from the other: alone, or where they are equal by a
further key. Any other comparator has no keys here.

Floats compared in the partial order, where both zeros are equal and NaNs have no place, have keys only where that is
asked for: rows with NaNs must be sorted by asking the comparator.
"""

from __future__ import annotations

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, F64, PRED
from heron.records import dataclass

_WIDTHS = (8, 16, 32, 64)
#: floats that may be keys in the partial order
_PARTIAL = (F32, F64)


@dataclass(frozen=True, slots=True)
class Key:
    """``value``: what the comparator computes of one of its two elements; ``descending``: the largest comes first.

    ``partial``: both zeros are equal, and no element may be NaN.
    """

    value: Instruction
    descending: bool
    partial: bool = False

    @property
    def bits(self) -> int:
        """The number of bits that order it."""
        t = self.value.shape.element_type
        return 8 if t is PRED else t.bits


def keys_of(comparator: Computation, partial: bool = False) -> tuple[Key, ...] | None:
    """The keys of a comparator, the most significant first; None where it is no order by keys.

    ``partial``: whether keys may be partial.
    """
    found: list[Key] = []
    at: Instruction | None = comparator.root
    while at is not None:
        before, equal, at = _parts(at)
        key = _key(before)
        if key is None or (key.partial and not partial):
            return None
        if equal is not None and not _tells_equal(equal, before, key.partial):
            return None
        found.append(key)
    return tuple(found)


def _parts(i: Instruction) -> tuple[Instruction, Instruction | None, Instruction | None]:
    """``before``, or ``before or (equal and rest)`` in the forms that has, taken apart."""
    if i.opcode == "or":
        for before, both in (i.operands, i.operands[::-1]):
            if both.opcode == "and":
                for equal, rest in (both.operands, both.operands[::-1]):
                    if equal.opcode == "compare" and equal.direction == "EQ":
                        return before, equal, rest
    if i.opcode == "select":
        equal, rest, before = i.operands
        if equal.opcode == "compare" and equal.direction == "EQ":
            return before, equal, rest
    return i, None, None


def _key(i: Instruction) -> Key | None:
    if i.opcode != "compare" or i.direction not in ("LT", "GT"):
        return None
    a, b = i.operands
    t = a.shape.element_type
    if t is not PRED and (t.is_complex or t.bits not in _WIDTHS):
        return None
    is_partial = t.is_float and i.type != "TOTALORDER"
    if is_partial and t not in _PARTIAL:
        return None
    side = _side(a, b, {})
    if side is None:
        return None
    return Key(a, (i.direction == "GT") != (side == 1), is_partial)


def _side(a: Instruction, b: Instruction, known: dict[tuple[Instruction, Instruction], int | None]) -> int | None:
    """The element that `a` depends on (0, 1, or -1: neither) if `b` is the same of the other; None otherwise."""
    if (a, b) in known:
        return known[a, b]
    known[a, b] = found = _compute_side(a, b, known)
    return found


def _compute_side(
    a: Instruction, b: Instruction, known: dict[tuple[Instruction, Instruction], int | None]
) -> int | None:
    if a.opcode != b.opcode or a.shape != b.shape or a.called or b.called or not a.shape.is_scalar:
        return None
    if a.opcode == "parameter":
        return a.number % 2 if a.number ^ 1 == b.number else None
    if a.opcode == "constant":
        return -1 if a.literal.key == b.literal.key else None
    if len(a.operands) != len(b.operands) or str(a.attrs) != str(b.attrs) or not a.operands:
        return None
    sides = [_side(x, y, known) for x, y in zip(a.operands, b.operands, strict=True)]
    if None in sides:
        return None
    told = {s for s in sides if s != -1}
    return None if len(told) > 1 else told.pop() if told else -1


def _tells_equal(equal: Instruction, before: Instruction, partial: bool) -> bool:
    """Whether `equal` compares the numbers that `before` does, in the same order of values."""
    (a, b), given = equal.operands, before.operands
    is_partial = a.shape.element_type.is_float and equal.type != "TOTALORDER"
    return is_partial == partial and any(_same(a, x) and _same(b, y) for x, y in (given, given[::-1]))


def _same(a: Instruction, b: Instruction) -> bool:
    if a is b:
        return True
    if a.opcode != b.opcode or a.shape != b.shape or a.called or a.opcode == "parameter":
        return False
    if a.opcode == "constant":
        return a.literal.key == b.literal.key
    if len(a.operands) != len(b.operands) or str(a.attrs) != str(b.attrs) or not a.operands:
        return False
    return all(map(_same, a.operands, b.operands))
