"""Calls of the user's Python functions, which a program names by number."""

from __future__ import annotations

from heron.hlo.calls.declaration import Call
from heron.hlo.ir.instruction import Instruction

#: functions that take arrays
ON_ARRAYS = Call(
    "python",
    tuple(f"xla_ffi_{kind}python_{machine}_callback" for kind in ("", "partitioned_") for machine in ("cpu", "gpu")),
    cpu="python",
    gpu="python",
)
#: functions that take the program's own memory
ON_BUFFERS = Call("python_on_buffers", ("xla_buffer_python_cpu_callback",), family="python", cpu="python", gpu="python")
CALLS = (ON_ARRAYS, ON_BUFFERS)
_TARGETS = frozenset((*ON_ARRAYS.targets, *ON_BUFFERS.targets))


def calls_python(i: Instruction) -> bool:
    """Whether an instruction calls a Python function, by the number its options have as ``index``."""
    return i.opcode == "custom-call" and i.custom_call_target in _TARGETS


def is_partitioned(i: Instruction) -> bool:
    """Whether an instruction calls a Python function on every device, with that device's parts of the arrays."""
    return calls_python(i) and "_partitioned_" in i.custom_call_target
