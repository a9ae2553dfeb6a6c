"""How often a while loop runs, where its condition counts one integer up or down to a constant."""

from __future__ import annotations

import operator
from dataclasses import dataclass

from heron.hlo.instruction import Instruction

_HOLDS = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "NE": operator.ne}
_SWAPPED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE", "EQ": "EQ"}


@dataclass(frozen=True, slots=True)
class Counter:
    """The loop state's element `index` goes from `start` by `step` while ``value direction bound``: `trips` times."""

    index: int
    start: int
    step: int
    bound: int
    direction: str
    trips: int


def counter_of(loop: Instruction) -> Counter | None:
    """The counter of a `while`, or None where it has no simple one (or it would wrap round or never end)."""
    test = loop.condition.root
    if test.opcode != "compare":
        return None
    value, limit, direction = test.operands[0], test.operands[1], test.attrs["direction"]
    if value.opcode == "constant":
        value, limit, direction = limit, value, _SWAPPED[direction]
    index = _state_index(value)
    bound = _integer(limit)
    if index is None or bound is None or direction not in _HOLDS:
        return None
    init, after = loop.operands[0], loop.body.root
    if init.opcode != "tuple" or after.opcode != "tuple":
        return None
    start, step = _integer(init.operands[index]), _step(after.operands[index], index)
    if start is None or step is None:
        return None
    trips = _trips(start, step, bound, direction)
    if trips is None or not _fits(start + trips * step, value):
        return None
    return Counter(index, start, step, bound, direction, trips)


def _trips(start: int, step: int, bound: int, direction: str) -> int | None:
    if not _HOLDS[direction](start, bound):
        return 0
    distance = bound - start
    if direction == "NE":
        return distance // step if step and distance % step == 0 and distance // step > 0 else None
    if direction in ("LT", "LE"):
        distance += direction == "LE"
        return -(-distance // step) if step > 0 else None
    distance -= direction == "GE"
    return -(distance // -step) if step < 0 else None


def _fits(value: int, i: Instruction) -> bool:
    t = i.shape.element_type
    low, high = (-(1 << t.bits - 1), 1 << t.bits - 1) if t.is_signed else (0, 1 << t.bits)
    return low <= value < high


def _state_index(i: Instruction) -> int | None:
    if i.opcode != "get-tuple-element" or i.operands[0].opcode != "parameter":
        return None
    return i.attrs["index"]


def _step(i: Instruction, index: int) -> int | None:
    """c when `i` is the state's element plus or minus the constant c."""
    if i.opcode not in ("add", "subtract"):
        return None
    value, by = i.operands
    if i.opcode == "add" and value.opcode == "constant":
        value, by = by, value
    step = _integer(by)
    if step is None or _state_index(value) != index:
        return None
    return step if i.opcode == "add" else -step


def _integer(i: Instruction) -> int | None:
    if i.opcode != "constant" or i.shape.rank or not i.shape.element_type.is_integer:
        return None
    return int(i.attrs["literal"].array)
