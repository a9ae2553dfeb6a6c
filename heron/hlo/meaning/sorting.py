"""Stable sorting by a comparator computation, in whole-array steps.

A comparator that compares one function of each side (``f(a) < f(b)``), and where they are equal another one, sorts by
those keys. Any other comparator goes through a bitonic network: all comparisons of one stage at once, ties broken by
position, so that it is stable too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.ir.types import ElementType
from heron.hlo.meaning import batched
from heron.hlo.meaning.numeric import total_order, working

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction


def order(ev: Evaluation, comparator: Computation, operands: tuple[np.ndarray, ...], dim: int) -> np.ndarray:
    """The positions along `dim`, in sorted order."""
    keys = sort_keys(ev, comparator, operands)
    if keys is not None:
        return np.argsort(keys[0], dim, "stable") if len(keys) == 1 else np.lexsort(keys[::-1], dim)
    lines = tuple(np.moveaxis(x, dim, -1) for x in operands)
    return np.moveaxis(_network(ev, comparator, lines), -1, dim)


def top_k(x: np.ndarray, t: ElementType, k: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """The `k` first elements of each line of `x` by total order, and their positions (s32)."""
    key = total_order(x, t)
    positions = np.argsort(~key if largest else key, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(x, positions, -1), positions.astype(np.int32)


def sort_keys(ev: Evaluation, comparator: Computation, operands: tuple[np.ndarray, ...]) -> list[np.ndarray] | None:
    """Numbers whose ascending stable order, the first ones counting most, is the comparator's; None where none are."""
    if not ev.is_batchable(comparator):
        return None
    comparisons = _comparisons(comparator.root)
    if comparisons is None:
        return None
    both = tuple(x for x in operands for _ in range(2))
    keys = [_key(ev, c, both) for c in comparisons]
    return None if any(k is None for k in keys) else [k for k in keys if k is not None]


def _comparisons(i: Instruction) -> list[Instruction] | None:
    """The comparisons `i` goes through, each asked where the ones before find both sides equal."""
    if i.opcode == "compare":
        return [i] if i.direction in ("LT", "GT") and {*map(_side, i.operands)} == {0, 1} else None
    for first, equal, rest in _chains(i):
        if first.opcode != "compare" or equal.opcode != "compare" or equal.direction != "EQ":
            continue
        if {*first.operands} == {*equal.operands} and first.type == equal.type:
            head, tail = _comparisons(first), _comparisons(rest)
            return None if head is None or tail is None else head + tail
    return None


def _chains(i: Instruction) -> list[tuple[Instruction, Instruction, Instruction]]:
    """Readings of `i` as: the first value, or where the second one holds the third."""
    if i.opcode == "select":
        equal, rest, first = i.operands
        return [(first, equal, rest)]
    if i.opcode != "or":
        return []
    a, b = i.operands
    pairs = [(x, both) for x, both in ((a, b), (b, a)) if both.opcode == "and"]
    return [(x, both.operands[n], both.operands[1 - n]) for x, both in pairs for n in (0, 1)]


def _key(ev: Evaluation, compare: Instruction, both: tuple[np.ndarray, ...]) -> np.ndarray | None:
    """Numbers that ascend as `compare` says; None where its sides are other functions or no numbers give its order."""
    left, right = compare.operands
    values = [_value(ev, side, both) for side in (left, right)]
    if values[0].tobytes() != values[1].tobytes():  # another function of each side
        return None
    descending = (compare.direction == "GT") == (_side(left) == 0)
    t, value = left.shape.element_type, np.broadcast_to(values[0], both[0].shape)
    if t.is_complex:
        return None
    if t.is_float and compare.type != "TOTALORDER":
        value = working(value)
        if np.isnan(value).any():
            return None
        value = np.where(value == 0, value.dtype.type(0), value)  # zeros are equal
        return -value if descending else value
    key = total_order(value, t)
    return ~key if descending else key


def _side(i: Instruction) -> int | None:
    """The side (0: a, 1: b) a value depends on; None when on both or none."""
    found = _sides(i)
    return next(iter(found)) if len(found) == 1 else None


def _sides(i: Instruction) -> set[int]:
    """The sides (0: a, 1: b) whose parameters a value depends on."""
    found, work, seen = set(), [i], set()
    while work:
        v = work.pop()
        if v in seen:
            continue
        seen.add(v)
        if v.opcode == "parameter":
            found.add(v.number % 2)
        work.extend(v.operands)
    return found


def _value(ev: Evaluation, i: Instruction, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    known: dict[Instruction, Any] = {}
    for v in ev.order(i.parent):  # type: ignore[arg-type]
        if v.opcode == "parameter":
            known[v] = arrays[v.number]
        elif all(o in known for o in v.operands):
            made = v.op.evaluate(ev, v, *(known[o] for o in v.operands))
            known[v] = made if v.shape.is_tuple else np.asarray(made)
        if v is i:
            break
    return known[i]


def _network(ev: Evaluation, comparator: Computation, lines: tuple[np.ndarray, ...]) -> np.ndarray:
    """Bitonic sort of the last dimension; gives positions."""
    size = lines[0].shape[-1]
    width = 1 << max(0, size - 1).bit_length()
    where = np.broadcast_to(np.arange(width), (*lines[0].shape[:-1], width)).copy()
    at = np.arange(width)
    span = 2
    while span <= width:
        distance = span // 2
        while distance:
            low = at[(at & distance) == 0]
            a, b = where[..., low], where[..., low | distance]
            swap = _before(ev, comparator, lines, b, a, size) == ((low & span) == 0)
            where[..., low] = np.where(swap, b, a)
            where[..., low | distance] = np.where(swap, a, b)
            distance //= 2
        span *= 2
    return where[..., :size]


def _before(
    ev: Evaluation, comparator: Computation, lines: tuple[np.ndarray, ...], a: np.ndarray, b: np.ndarray, size: int
) -> np.ndarray:
    """Whether the elements at positions `a` come before those at `b`; positions from `size` on come last."""
    real_a, real_b = np.minimum(a, size - 1), np.minimum(b, size - 1)
    first = [np.take_along_axis(x, real_a, -1) for x in lines]
    second = [np.take_along_axis(x, real_b, -1) for x in lines]
    forth = batched.apply(ev, comparator, *(v for pair in zip(first, second, strict=True) for v in pair))
    back = batched.apply(ev, comparator, *(v for pair in zip(second, first, strict=True) for v in pair))
    decided = np.where(forth == back, a < b, forth)
    return np.where((a < size) & (b < size), decided, a < b)
