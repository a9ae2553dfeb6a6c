"""Custom calls: functions of the user's in Python, handlers of XLA's FFI, and routines of linear algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.library import linalg
from heron.backends.library.host import call
from heron.errors import HeronError
from heron.hlo import custom_calls
from heron.hlo.ffi_attributes import read_attributes
from heron.hlo.instruction import Instruction
from heron.runtime.library import ffi
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
    if target == custom_calls.PIVOTS and lowering.target.kind == "gpu":
        return lowering.alone(i)
    if linalg.knows(target) or (address := ffi.find(target)) is None:
        return linalg.custom_call(lowering, i)
    return _handler(lowering, i, address)


def _handler(lowering: Lowering, i: Instruction, address: int) -> list[Thunk]:
    """A handler sees arrays as they lie in memory, in the layouts the call asks for."""
    leaves = [s for o in (*i.operands, i) for _, s in o.shape.leaves() if s.is_array]
    operands = sum(1 for o in i.operands for _, s in o.shape.leaves() if s.is_array)
    attributes = read_attributes(str(i.extras.get("backend_config", "")))
    numbers = [s.element_type.proto_id for s in leaves]
    return call(lowering, i, ffi.Handler(i.custom_call_target, address, numbers, operands, attributes), "ffi")


def _callback(lowering: Lowering, i: Instruction) -> list[Thunk]:
    number = custom_calls.options(i).get("index")
    if not isinstance(number, int):
        raise HeronError("GEN011", "a call of a Python function does not say which", where=str(i))
    tokens = any(s.element_type.name == "token" for o in i.operands for _, s in o.shape.leaves())
    operands = sum(1 for o in i.operands for _, s in o.shape.leaves() if s.is_array)
    return call(lowering, i, Callback(find(number), operands, tokens), "python")
