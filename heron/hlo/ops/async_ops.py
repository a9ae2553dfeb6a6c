"""Asynchronous running of another computation.

XLA's text writes an async-start whose computation wraps a single op as ``OPCODE-start(...)`` with that op's
attributes (likewise ``-update`` and ``-done``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.facts import begun_by
from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape, scalar, tuple_
from heron.hlo.ir.types import U32
from heron.hlo.ops.rules import attr, need_signature, stated

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

ATTRIBUTES = {
    "async_execution_thread": Attr(AttrKind.STRING, "main"),
    "calls": Attr(AttrKind.COMPUTATION),
}


@op("async-start")
class AsyncStart(Op):
    """Begins to run `calls`; the value is ((operands), result, context).

    Shape: a tuple: the tuple of the operands' shapes, the computation's result, and contexts where stated.
    """

    operands = ("operands*",)
    attributes = {
        "async_execution_thread": ATTRIBUTES["async_execution_thread"],
        "output_to_operand_aliasing": Attr(AttrKind.ALIASING, ()),
        "calls": ATTRIBUTES["calls"],
    }
    traits = {Trait.ASYNC, Trait.CONTROL_FLOW}
    done = "async-done"

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        body = attr(i, "calls")
        need_signature(i, "calls", body, operands)
        want = tuple_((tuple_(operands), body.root.shape, scalar(U32)))
        if stated(i) is None:
            return want
        parts = i.shape.tuple_shapes
        if parts is None or len(parts) < 2 or tuple_(parts[:2]).bare is not tuple_((want.at((0,)), want.at((1,)))).bare:
            reject(i, "the result must be ((operands), result, context)", f"it is {i.shape}, {want} expected")
        return i.shape

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: Any) -> tuple[Any, ...]:
        return operands, ev.call(i.calls, *operands), np.zeros((), np.uint32)


@op("async-update")
class AsyncUpdate(Op):
    """A point at which the work goes on; the value is the operand.

    Shape: the operand's.
    """

    operands = ("started",)
    attributes = ATTRIBUTES
    traits = {Trait.FREE, Trait.ASYNC}

    def shape(self, i: Instruction, started: Shape) -> Shape:
        need_started(i, started)
        return started

    def evaluate(self, ev: Evaluation, i: Instruction, started: Any) -> Any:
        return started


@op("async-done")
class AsyncDone(Op):
    """The result of the work, when it is finished; what it began to receive has arrived.

    Shape: the second element of the operand's.
    """

    operands = ("started",)
    attributes = ATTRIBUTES
    traits = {Trait.FREE, Trait.ASYNC}

    def shape(self, i: Instruction, started: Shape) -> Shape:
        return need_started(i, started)[1]

    def evaluate(self, ev: Evaluation, i: Instruction, started: tuple[Any, ...]) -> Any:
        return _arrived(ev, i, begun_by(i).root, started[1])


def _arrived(ev: Evaluation, i: Instruction, made: Instruction, value: Any) -> Any:
    """The value of `made`, with the data of every receive that it is or holds."""
    if made.opcode == "recv":
        data, ticket, token = value
        return ev.finish_receive(i, ticket, data), ticket, token
    if made.opcode == "tuple":
        return tuple(_arrived(ev, i, o, v) for o, v in zip(made.operands, value, strict=True))
    return value


def need_started(i: Instruction, started: Shape) -> tuple[Shape, ...]:
    """The parts of ((operands), result, …); rejects anything else."""
    parts = started.tuple_shapes
    if parts is None or len(parts) < 2:
        reject(i, "operand 0 must be what the -start op returns", f"it is {started}")
    return parts
