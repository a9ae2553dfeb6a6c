"""Loops and branches with padded values: sizes go along as further parts of the tuples that are handed over."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.shape import Shape, scalar, tuple_
from heron.hlo.types import S32
from heron.passes.dynamic.padded import Padded, Place, dynamic_places, number, static
from heron.passes.expand.expander import home

#: pads a computation, given what makes its parameters' values
Inside = Callable[[Computation, Callable[[], dict[Instruction, Padded]]], Padded]


def padded_while(i: Instruction, init: Padded, inside: Inside) -> Padded:
    """The loop on (value, sizes...)."""
    places = dynamic_places(i.shape)
    state = _packed(init, places)
    condition, body = _own(i, i.condition), _own(i, i.body)
    condition.root = inside(condition, partial(_entered, condition, i.shape, places)).x
    body.root = _packed(inside(body, partial(_entered, body, i.shape, places)), places)
    loop = home(i).attach(i.clone([state], state.shape, condition=condition, body=body))
    return _unpacked(loop, i.shape, places)


def padded_conditional(i: Instruction, operands: list[Padded], inside: Inside) -> Padded:
    """Branches that give (value, sizes...)."""
    choice, *given = operands
    places = dynamic_places(i.shape)
    handed: list[Instruction] = []
    branches: list[Computation] = []
    for callee, value, old in zip(i.called, given, i.operands[1:], strict=True):
        there, branch = dynamic_places(old.shape), _own(i, callee)
        handed.append(_packed(value, there))
        branch.root = _packed(inside(branch, partial(_entered, branch, old.shape, there)), places)
        branches.append(branch)
    made = i.clone([choice.x, *handed], branches[0].root.shape, branch_computations=tuple(branches))
    return _unpacked(home(i).attach(made), i.shape, places)


def _own(i: Instruction, callee: Computation) -> Computation:
    """A copy for this caller alone: others may hand over other sizes."""
    module = home(i).module
    assert module is not None
    return module.add_computation(callee.clone())


def _packed(value: Padded, places: list[Place]) -> Instruction:
    """(value, sizes...)"""
    c = home(value.x)
    sizes = [value.sizes[p] if p in value.sizes else number(c, value.x.shape.at(p[0]).dims[p[1]]) for p in places]
    return c.add("tuple", [value.x, *sizes])


def _packed_shape(s: Shape, places: list[Place]) -> Shape:
    return tuple_([static(s), *(scalar(S32) for _ in places)])


def _unpacked(packed: Instruction, s: Shape, places: list[Place]) -> Padded:
    c = home(packed)
    value = c.add("get-tuple-element", [packed], static(s), index=0)
    return Padded(value, {p: c.add("get-tuple-element", [packed], index=n) for n, p in enumerate(places, 1)})


def _entered(callee: Computation, s: Shape, places: list[Place]) -> dict[Instruction, Padded]:
    """The only parameter of a computation as (value, sizes...), for the old one, which waits to be removed."""
    (old,) = callee.parameters
    packed = callee.add_parameter(0, _packed_shape(s, places), old.name)
    value = _unpacked(packed, s, places)
    if not places:
        old.replace_uses_with(value.x)
    return {old: value}
