"""Custom calls: functions of the user's in Python, handlers of XLA's FFI, and routines of linear algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.library import linalg
from heron.backends.library.host import call
from heron.errors import HeronError
from heron.hlo import custom_calls
from heron.hlo.instruction import Instruction
from heron.runtime.library.callbacks import Callback, find
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

#: targets JAX names for calls of Python functions
_CALLBACKS = frozenset({"xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback"})


def custom_call(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """By the name of its target. Raises GEN011 for a target not known."""
    target = i.custom_call_target
    if target in _CALLBACKS:
        return _callback(lowering, i)
    return linalg.custom_call(lowering, i)


def _callback(lowering: Lowering, i: Instruction) -> list[Thunk]:
    number = custom_calls.options(i).get("index")
    if not isinstance(number, int):
        raise HeronError("GEN011", "a call of a Python function does not say which", where=str(i))
    tokens = any(s.element_type.name == "token" for o in i.operands for _, s in o.shape.leaves())
    operands = sum(1 for o in i.operands for _, s in o.shape.leaves() if s.is_array)
    return call(lowering, i, Callback(find(number), operands, tokens), "python")
