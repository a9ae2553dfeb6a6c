"""Elements of a loop's state that count: several become one, and comparisons they decide become constants."""

from __future__ import annotations

from heron.analysis.values.trip_count import counter_of, induction_step, trip_count
from heron.hlo.facts import is_additive
from heron.hlo.ir import literal
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import ElementType
from heron.passes.control_flow.model.loop_state import keep_elements, reads
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.rewriting.building import constant, scalar
from heron.passes.rewriting.tuples import part_of
from heron.records import dataclass

_HOLDS = {
    "LT": lambda low, high, by: high < by,
    "LE": lambda low, high, by: high <= by,
    "GT": lambda low, high, by: low > by,
    "GE": lambda low, high, by: low >= by,
    "NE": lambda low, high, by: not low <= by <= high,
    "EQ": lambda low, high, by: low == high == by,
}
_OPPOSITE = {"LT": "GE", "LE": "GT", "GT": "LE", "GE": "LT", "NE": "EQ", "EQ": "NE"}


@dataclass(frozen=True, slots=True)
class Induction:
    """Element `index` of a loop's state, an integer that is `start` at first and gets `step` added in each round."""

    index: int
    type: ElementType
    start: int
    step: int


def inductions(loop: Instruction) -> list[Induction]:
    """The elements that count from a constant by a constant."""
    init = loop.operands[0]
    if init.opcode != "tuple":
        return []
    found = []
    for n, start in enumerate(init.operands):
        if start.opcode != "constant" or not start.shape.is_scalar or not start.shape.element_type.is_integer:
            continue
        step = induction_step(loop, n)
        if step:
            found.append(Induction(n, start.shape.element_type, int(start.attrs["literal"].array), step))
    return found


# -- several counters ------------------------------------------------------------------------------------------------
def merge_counters(loop: Instruction, after: dict[int, list[Instruction]]) -> bool:
    """Carry one of several counters of a plain loop that is computed from one: b == (a - a0) * (db / da) + b0."""
    known = inductions(loop)
    if len(known) < 2:
        return False
    counter = counter_of(loop)
    known.sort(key=lambda k: (counter is None or k.index != counter.index, abs(k.step)))
    merged: dict[int, Induction] = {}  # the number of an element, and the counter it is computed from
    for n, k in enumerate(known):
        base = next((b for b in known[:n] if b.index not in merged and _follows(k, b)), None)
        if base is not None:
            merged[k.index] = base
    if not merged:
        return False
    own_computations(loop)
    by_index = {k.index: k for k in known}
    for whole in (loop, loop.body.parameters[0], loop.condition.parameters[0]):
        read = after if whole is loop else reads(whole) or {}
        for n, base in merged.items():
            for i in read.get(n, ()):
                if i.users or i.is_root:
                    i.replace_uses_with(_computed(by_index[n], base, part_of(whole, (base.index,))))
    keep_elements(loop, [n for n in range(len(loop.shape.tuple_shapes or ())) if n not in merged])
    return True


def _follows(k: Induction, base: Induction) -> bool:
    return k.type is base.type and k.step % base.step == 0


def _computed(k: Induction, base: Induction, value: Instruction) -> Instruction:
    c = value.parent
    assert c is not None
    factor = k.step // base.step
    if factor != 1:
        value = c.add("multiply", [value, _wrapped(c, k.type, factor)], like=value)
    offset = k.start - base.start * factor
    return c.add("add", [value, _wrapped(c, k.type, offset)], like=value) if offset else value


def _wrapped(c: Computation, t: ElementType, value: int) -> Instruction:
    value %= 1 << t.bits
    return scalar(c, t, value - (1 << t.bits) if t.is_signed and value >= 1 << t.bits - 1 else value)


# -- comparisons -----------------------------------------------------------------------------------------------------
def decide_comparisons(loop: Instruction) -> bool:
    """Make constants of comparisons in the body that come out alike in every round."""
    compares = [i for i in loop.body.instructions if i.opcode == "compare" and i.shape.is_scalar]
    if not compares:
        return False
    trips = trip_count(loop)
    if not trips:
        return False
    ranges = {k.index: (k.start, k.start + (trips - 1) * k.step) for k in inductions(loop)}
    state = loop.body.parameters[0]
    decided: dict[Instruction, bool] = {}
    for i in compares:
        left, right = (_range(o, state, ranges) for o in i.operands)
        value = None if left is None or right is None else _outcome(left, right, i.attrs["direction"])
        if value is not None:
            decided[i] = value
    if decided:
        own = own_computations(loop)
        for i, value in decided.items():
            known = constant(loop.body, literal.scalar(i.shape.element_type, value), like=i)
            loop.body.replace(own[i], known)
    return bool(decided)


def _outcome(left: tuple[int, int], right: tuple[int, int], direction: str) -> bool | None:
    """Whether a value between two bounds compares to a constant so, if that is always the same."""
    if right[0] != right[1]:
        if left[0] != left[1]:
            return None
        swapped = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}.get(direction, direction)
        return _outcome(right, left, swapped)
    low, high = sorted(left)
    if _HOLDS[direction](low, high, right[0]):
        return True
    return False if _HOLDS[_OPPOSITE[direction]](low, high, right[0]) else None


def _range(
    i: Instruction, state: Instruction, ranges: dict[int, tuple[int, int]], depth: int = 6
) -> tuple[int, int] | None:
    """The first and last value of an integer that is made of counters and constants so that it goes one way."""
    t = i.shape.element_type
    if not t.is_integer or not i.shape.is_scalar or not depth:
        return None
    found: tuple[int, int] | None = None
    if i.opcode == "constant":
        value = int(i.attrs["literal"].array)
        found = value, value
    elif i.opcode == "get-tuple-element" and i.operands[0] is state:
        found = ranges.get(i.attrs["index"])
    elif i.opcode in ("convert", "copy"):
        found = _range(i.operands[0], state, ranges, depth - 1)
    elif is_additive(i) or i.opcode == "multiply":
        a, b = (_range(o, state, ranges, depth - 1) for o in i.operands)
        found = None if a is None or b is None else _combined(i.opcode, a, b)
    low, high = (-(1 << t.bits - 1), 1 << t.bits - 1) if t.is_signed else (0, 1 << t.bits)
    return found if found is not None and all(low <= v < high for v in found) else None


def _combined(opcode: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int] | None:
    if opcode == "add":
        return a[0] + b[0], a[1] + b[1]
    if opcode == "subtract":
        return a[0] - b[0], a[1] - b[1]
    return (a[0] * b[0], a[1] * b[1]) if a[0] == a[1] or b[0] == b[1] else None
