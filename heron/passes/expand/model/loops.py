"""Loops that expansions consist of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.ir.types import S32
from heron.passes.rewriting.building import scalar as constant

State = list[Instruction]
Step = Callable[[Instruction, State], State]
#: whether to go on, in the condition's computation: of the values that change
Test = Callable[[State], Instruction]


def counted(c: Computation, name: str, count: int, step: Step, state: Sequence[Instruction]) -> State:
    """``state`` after ``step(k, state)`` for k = 0, 1, …; one step alone is no loop."""
    if count == 0:
        return list(state)
    if count == 1:
        return step(constant(c, S32, 0), list(state))
    return repeated(c, name, count, step, state, None)


def repeated(
    c: Computation, name: str, most: int, step: Step, state: Sequence[Instruction], go_on: Test | None
) -> State:
    """``state`` after steps as long as `go_on` says so, at most `most`."""
    module = c.module
    assert module is not None
    start = [constant(c, S32, 0), *state]
    shape = tuple_([x.shape for x in start])
    body, k, inner = _entered(module, f"{name}_step", shape)
    body.root = body.add("tuple", [k + 1, *step(k, inner)], shape)
    condition, k, inner = _entered(module, f"{name}_condition", shape)
    condition.root = k.lt(constant(condition, S32, most))
    if go_on is not None:
        condition.root = condition.root & go_on(inner)
    loop = c.add("while", [c.add("tuple", start, shape)], shape, name, condition=condition, body=body)
    return [c.add("get-tuple-element", [loop], x.shape, index=n) for n, x in enumerate(start) if n]


def _entered(module: Module, name: str, shape: Shape) -> tuple[Computation, Instruction, State]:
    c = Computation(name)
    given = c.add_parameter(0, shape)
    c.root = given
    module.add_computation(c)
    k, *state = [c.add("get-tuple-element", [given], s, index=n) for n, s in enumerate(shape.tuple_shapes or ())]
    return c, k, state
