"""Loops and branches with padded values: sizes, and what checks found, go along as further parts of tuples."""

from __future__ import annotations

from collections.abc import Callable

from heron.analysis.dynamic_sizes import Place, dynamic_places
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, scalar, tuple_
from heron.hlo.ir.types import S32
from heron.passes.dynamic.model.padded import Numbers, Padded, static
from heron.passes.dynamic.model.report import LENGTH, Report, nothing
from heron.passes.rewriting.expander import home

#: what a computation gives: its root's value, and what its checks found, where it has any
Result = tuple[Padded, Report | None]
#: pads a computation, given what makes its parameters' values
Inside = Callable[[Computation, Callable[[Numbers], None]], Result]


def padded_while(i: Instruction, init: Padded, inside: Inside, watched: bool) -> Result:
    """The loop on (value, sizes..., what checks found)."""
    places = dynamic_places(i.shape)
    state = _packed(init, places, nothing(home(i)) if watched else None)
    entered: list[Report | None] = []

    def enter(numbers: Numbers) -> None:
        entered.append(_entered(numbers, places, watched))

    i.condition.root = inside(i.condition, enter)[0].x
    value, report = inside(i.body, enter)
    before = entered[-1]
    if before is not None:
        report = before if report is None else before.then(report)
    i.body.root = _packed(value, places, report)
    loop = home(i).attach(i.clone([state], state.shape))
    return _unpacked(loop, i, init.numbers, places, watched)


def padded_conditional(i: Instruction, operands: list[Padded], inside: Inside, watched: bool) -> Result:
    """Branches that give (value, sizes..., what checks found)."""
    choice, *given = operands
    places = dynamic_places(i.shape)
    handed: list[Instruction] = []
    for callee, value, old in zip(i.called, given, i.operands[1:], strict=True):
        there = dynamic_places(old.shape)
        handed.append(_packed(value, there))

        def enter(numbers: Numbers, there: list[Place] = there) -> None:
            _entered(numbers, there)

        result, report = inside(callee, enter)
        callee.root = _packed(result, places, (report or nothing(callee)) if watched else None)
    shape = i.called[0].root.shape
    made = home(i).attach(i.clone([choice.x, *handed], shape))
    return _unpacked(made, i, choice.numbers, places, watched)


def _packed(value: Padded, places: list[Place], report: Report | None = None) -> Instruction:
    """(value, sizes..., what checks found)"""
    c = home(value.x)
    return c.add("tuple", [value.x, *(value.number_at(p) for p in places), *(report or ())])


def _packed_shape(s: Shape, places: list[Place], watched: bool) -> Shape:
    return tuple_([static(s), *(scalar(S32) for _ in range(len(places) + LENGTH * watched))])


def _parts(packed: Instruction, count: int, start: int = 1) -> list[Instruction]:
    return [home(packed).add("get-tuple-element", [packed], index=n) for n in range(start, start + count)]


def _unpacked(packed: Instruction, i: Instruction, numbers: Numbers, places: list[Place], watched: bool) -> Result:
    """The original result of `i`, extracted from its replacement."""
    value = home(packed).add("get-tuple-element", [packed], static(i.shape), index=0)
    for place, size in zip(places, _parts(packed, len(places)), strict=True):
        numbers.bring(i, place, size)
    report = Report(*_parts(packed, LENGTH, 1 + len(places))) if watched else None
    return numbers.padded(value, i), report


def _entered(numbers: Numbers, places: list[Place], watched: bool = False) -> Report | None:
    """The only parameter of a computation as (value, sizes..., what checks found); the old one waits to be removed."""
    (old,) = numbers.c.parameters
    packed = numbers.c.add_parameter(0, _packed_shape(old.shape, places, watched), old.name)
    value, report = _unpacked(packed, old, numbers, places, watched)
    numbers.values[old] = value
    if not places:
        old.replace_uses_with(value.x)
    return report
