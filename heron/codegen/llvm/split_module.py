"""LLVM's two long steps, optimising and emitting, without llvmlite's lock, so that threads do them side by side.

llvmlite lets one thread into LLVM at a time. LLVM itself asks for less: modules of different contexts, each with a
target machine of its own, have nothing in common. So a module parsed into its own context may be worked on while other
threads do what they like; everything short (parsing, making and freeing things) still goes through the lock.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from heron.codegen.llvm.optimize import binding

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef, TargetMachine


def run(manager: Any, module: ModuleRef, builder: Any) -> None:
    """`manager.run(module, builder)`."""
    _function("LLVMPY_RunNewModulePassManager")(manager, module, builder)


def emit_object(machine: TargetMachine, module: ModuleRef) -> bytes:
    """`machine.emit_object(module)`."""
    ffi = binding().ffi
    with ffi.OutputString() as error:
        buffer = _function("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def _function(name: str) -> Any:
    """The library's function itself, not what llvmlite wraps around it to hold the lock."""
    return getattr(binding().ffi.lib, name)._cfn
