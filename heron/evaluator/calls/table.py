"""The functions that compute custom calls, by target; `evaluates` registers them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from heron.hlo.calls.declaration import Call
from heron.hlo.calls.form import results_of
from heron.hlo.ir.instruction import Instruction

Function = Callable[..., Any]
_FUNCTIONS: dict[str, Function] = {}


def evaluates(*calls: Call | str, with_evaluator: bool = False) -> Callable[[Function], Function]:
    """Register a function for declared calls, or for a target that is not declared.

    It takes the instruction and the values of its operands, before them the evaluator where ``with_evaluator``.
    """

    def register(function: Function) -> Function:
        called = function if with_evaluator else lambda _, *given: function(*given)
        for call in calls:
            for target in call.spelled() if isinstance(call, Call) else (call,):
                _FUNCTIONS[target] = called
        return function

    return register


def find(target: str) -> Function | None:
    """The function of a target, which takes the evaluator, the instruction and the operands' values; or None."""
    return _FUNCTIONS.get(target)


def known() -> list[str]:
    """All targets that the evaluator computes."""
    return sorted(_FUNCTIONS)


def with_scratch(i: Instruction, results: Iterable[np.ndarray]) -> Any:
    """The value of a call: these results, and zeros for the scratch memory that it states after them."""
    found, shapes = list(results), results_of(i)
    found += [np.zeros(s.dims, s.element_type.dtype) for s in shapes[len(found) :]]
    return tuple(found) if i.shape.is_tuple else found[0]
