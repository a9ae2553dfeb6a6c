"""Calls that the evaluator's code computes, on the host, since no library here does. No other call goes there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.calls.host import call
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.runtime.host.evaluated import Evaluated
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def lower(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """A call of the evaluator on a program of this one instruction."""
    c = Computation("main")
    operands = [c.add_parameter(n, o.shape.bare) for n, o in enumerate(i.operands)]
    c.root = c.attach(i.clone(operands))
    c.root.attrs.pop("output_to_operand_aliasing", None)
    module = Module("call")
    module.add_computation(c, entry=True)
    routine = Evaluated(i.custom_call_target, str(module), sum(o.shape.is_array for o in i.operands))
    return call(lowering, i, routine, "evaluator")
