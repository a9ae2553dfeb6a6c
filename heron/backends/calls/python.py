"""Calls of the user's Python functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.calls.host import call
from heron.errors import HeronError
from heron.hlo.calls.lapack import options
from heron.hlo.calls.python import ON_BUFFERS
from heron.hlo.ir.instruction import Instruction
from heron.runtime.host.callbacks import BufferCallback, Callback, find
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def lower(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """A call of the function whose number the options have as ``index``. Raises GEN011 where they have none, RUN060."""
    number = options(i).get("index")
    if not isinstance(number, int):
        raise HeronError("GEN011", "a call of a Python function does not say which", where=str(i))
    filed = find(number)
    tokens = any(s.element_type.name == "token" for o in i.operands for _, s in o.shape.leaves())
    operands = sum(1 for o in i.operands for _, s in o.shape.leaves() if s.is_array)
    on_buffers = i.custom_call_target in ON_BUFFERS.targets
    routine = BufferCallback(filed, operands) if on_buffers else Callback(filed, operands, tokens)
    return call(lowering, i, routine, "python")
