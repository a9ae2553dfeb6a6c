"""Trip counts of while loops: in closed form if the condition counts an integer to a bound, else by running it.

Bounds, steps and starts may be constants or elements of the state that no round changes and that start as constants.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.calls.backend_config import hints, member, whole
from heron.hlo.facts import is_additive, is_given
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.types import ElementType
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.evaluator import Evaluator

_HOLDS = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "NE": operator.ne,
    "EQ": operator.eq,
}
_SWAPPED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE", "EQ": "EQ"}

#: rounds and instructions a loop without a closed form is run for
_MOST_ROUNDS = 128
_MOST_INSTRUCTIONS = 32
#: the member of a loop's backend_config that says how often it runs
_NOTED = "known_trip_count"


@dataclass(frozen=True, slots=True)
class Counter:
    """The loop state's element `index` goes from `start` by `step` while ``value direction bound``: `trips` times.

    It never wraps round: ``start + trips * step`` is a value of its type.
    """

    index: int
    start: int
    step: int
    bound: int
    direction: str
    trips: int


def counter_of(loop: Instruction) -> Counter | None:
    """The counter of a `while`, or None where it has no simple one (or it would wrap round or never end)."""
    test = loop.condition.root
    if test.opcode != "compare" or not test.operands[0].shape.element_type.is_integer:
        return None
    value, limit, direction = test.operands[0], test.operands[1], test.attrs["direction"]
    index, bound = _state_index(value), _known(limit, loop)
    if index is None or bound is None:
        index, bound, direction = _state_index(limit), _known(value, loop), _SWAPPED[direction]
    if index is None or bound is None:
        return None
    step = induction_step(loop, index)
    start = None if step is None else _initial(loop, index)
    if start is None or step is None:
        return None
    trips = _trips(start, step, bound, direction)
    if trips is None or not _fits(start + trips * step, test.operands[0].shape.element_type):
        return None
    return Counter(index, start, step, bound, direction, trips)


def trip_count(loop: Instruction, most: int = _MOST_ROUNDS) -> int | None:
    """The trip count of a `while`; None if it is unknown, or if finding it takes more than `most` iterations."""
    counter = counter_of(loop)
    return counter.trips if counter is not None else _by_running(loop, most)


def noted_trips(loop: Instruction) -> int | None:
    """The trip count of a `while` in its backend_config."""
    return whole(member(hints(loop), _NOTED).get("n"), 0, (1 << 63) - 1)


def induction_step(loop: Instruction, index: int) -> int | None:
    """c when each round adds the constant c to the integer element `index` of the state; of the smaller magnitude
    where the type has no sign, so that a u8 that gets 255 added counts down."""
    after = loop.body.root
    if after.opcode != "tuple":
        return None
    i = _behind_copies(after.operands[index])
    if not is_additive(i) or not i.shape.is_scalar or not i.shape.element_type.is_integer:
        return None
    value, by = i.operands
    if i.opcode == "add" and _state_index(value) != index:
        value, by = by, value
    step = _known(by, loop)
    if step is None or _state_index(value) != index:
        return None
    return signed(step if i.opcode == "add" else -step, i.shape.element_type)


def signed(value: int, t: ElementType) -> int:
    """`value` modulo the type's range, as the number of least magnitude."""
    size = 1 << t.bits
    value %= size
    return value - size if value >= size >> 1 else value


# -- closed forms ----------------------------------------------------------------------------------------------------
def _trips(start: int, step: int, bound: int, direction: str) -> int | None:
    if not _HOLDS[direction](start, bound):
        return 0
    distance = bound - start
    if direction == "EQ":
        return 1 if step else None
    if direction == "NE":
        return distance // step if step and distance % step == 0 and distance // step > 0 else None
    if direction in ("LT", "LE"):
        distance += direction == "LE"
        return -(-distance // step) if step > 0 else None
    distance -= direction == "GE"
    return -(distance // -step) if step < 0 else None


def _fits(value: int, t: ElementType) -> bool:
    low, high = (-(1 << t.bits - 1), 1 << t.bits - 1) if t.is_signed else (0, 1 << t.bits)
    return low <= value < high


def _behind_copies(i: Instruction) -> Instruction:
    while i.opcode == "copy":
        i = i.operands[0]
    return i


def _state_index(i: Instruction) -> int | None:
    """n when `i` is element n of the state of the loop it stands in."""
    i = _behind_copies(i)
    if i.opcode != "get-tuple-element" or i.operands[0].opcode != "parameter":
        return None
    return i.attrs["index"]


def _known(i: Instruction, loop: Instruction) -> int | None:
    """The integer that `i`, which stands in the loop's condition or body, is in every round."""
    i = _behind_copies(i)
    if i.opcode == "constant":
        return _integer(i)
    index, after = _state_index(i), loop.body.root
    if index is None or after.opcode != "tuple":
        return None
    handed_on = after.operands[index]
    if _state_index(handed_on) != index or _behind_copies(handed_on).operands[0] is not loop.body.parameters[0]:
        return None
    return _initial(loop, index)


def _initial(loop: Instruction, index: int) -> int | None:
    init = loop.operands[0]
    return _integer(_behind_copies(init.operands[index])) if init.opcode == "tuple" else None


def _integer(i: Instruction) -> int | None:
    if i.opcode != "constant" or i.shape.rank or not i.shape.element_type.is_integer:
        return None
    return int(i.attrs["literal"].array)


# -- by running ------------------------------------------------------------------------------------------------------
#: instructions in the order they are computed, and the elements of the state they read (-1: the state itself)
_Slice = tuple[list[Instruction], set[int]]


def _by_running(loop: Instruction, most: int) -> int | None:
    """Rounds of a loop whose condition depends on nothing but integers known at the start, by computing those."""
    condition: Computation = loop.condition
    tests = _slice(condition.root, condition.parameters[0])
    if tests is None:
        return None
    steps = _updates(loop, tests[1])
    if steps is None or len(tests[0]) + len(steps[0]) > _MOST_INSTRUCTIONS:
        return None
    values = _starting_values(loop, steps[1])
    if values is None:
        return None
    from heron.evaluator import Evaluator

    ev = Evaluator()
    for n in range(most + 1):
        if not _run(ev, tests[0], values)[condition.root]:
            return n
        known = _run(ev, steps[0], values)
        values = {element: known[_update(loop, element)] for element in values}
    return None


def _updates(loop: Instruction, elements: Iterable[int]) -> _Slice | None:
    """The instructions of the body behind the next values of these elements and of those they depend on."""
    body: Computation = loop.body
    if loop.shape.is_tuple and body.root.opcode != "tuple":
        return None
    needed = set(elements)
    work = list(needed)
    order: dict[Instruction, None] = {}
    while work:
        found = _slice(_update(loop, work.pop()), body.parameters[0])
        if found is None:
            return None
        order.update(dict.fromkeys(found[0]))
        work += found[1] - needed
        needed |= found[1]
    return list(order), needed


def _update(loop: Instruction, element: int) -> Instruction:
    root = loop.body.root
    return root if element < 0 else root.operands[element]


def _slice(root: Instruction, parameter: Instruction) -> _Slice | None:
    """All that `root` is computed from, where that is only integer scalars."""
    order: dict[Instruction, None] = {}
    elements: set[int] = set()
    work = [root]
    while work:
        i = work[-1]
        if i in order:
            work.pop()
            continue
        if not _is_plain(i) or len(order) > _MOST_INSTRUCTIONS:
            return None
        element = _element(i, parameter)
        waiting = [o for o in i.operands if o not in order] if element is None else []
        if waiting:
            work += waiting
            continue
        if element is not None:
            elements.add(element)
        order[i] = None
    return list(order), elements


def _is_plain(i: Instruction) -> bool:
    t = i.shape.element_type
    if not i.shape.is_scalar or not (t.is_integer or t.kind == "pred"):
        return False
    if i.op.is_elementwise:
        return Trait.RANDOM not in i.op.traits
    if i.opcode == "get-tuple-element":
        return i.operands[0].opcode == "parameter"
    return is_given(i)


def _element(i: Instruction, parameter: Instruction) -> int | None:
    if i is parameter:
        return -1
    if i.opcode == "get-tuple-element" and i.operands[0] is parameter:
        return i.attrs["index"]
    return None


def _starting_values(loop: Instruction, elements: Iterable[int]) -> dict[int, Any] | None:
    init = _behind_copies(loop.operands[0])
    values: dict[int, Any] = {}
    for n in elements:
        start = init if n < 0 else _behind_copies(init.operands[n]) if init.opcode == "tuple" else None
        if start is None or start.opcode != "constant":
            return None
        values[n] = start.attrs["literal"].array
    return values


def _run(ev: Evaluator, order: list[Instruction], values: dict[int, Any]) -> dict[Instruction, np.ndarray]:
    known: dict[Instruction, np.ndarray] = {}
    for i in order:
        if i.opcode == "constant":
            known[i] = i.attrs["literal"].array
        elif i.opcode == "parameter":
            known[i] = values[-1]
        elif i.opcode == "get-tuple-element":
            known[i] = values[i.attrs["index"]]
        else:
            known[i] = np.asarray(ev.run_instruction(i, [known[o] for o in i.operands]))
    return known
