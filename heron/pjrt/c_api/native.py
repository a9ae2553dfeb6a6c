"""The native side of the C interface: entry points of slots, compiled once in a process.

An entry point tries the slot's fast path (`fast_paths.py`), if it has one, and then calls the slot's Python function
through `gate.py` with the address of the arguments. Getters (`getters.py`) and small slots (`small_slots.py`) need no
Python at all.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

from heron.codegen.llvm.jit import Jit, public_functions
from heron.codegen.llvm.text import Module
from heron.once import once
from heron.pjrt.c_api import abi, fast_paths, gate, getters, small_slots
from heron.runtime import numpy_api

#: the Python functions behind the entry points
_FUNCTIONS = "@heron_slot_functions"


@once
def code() -> dict[str, int]:
    """Addresses of the native functions by name; they live as long as the process."""
    python = ctypes.pythonapi
    symbols = {name: ctypes.cast(getattr(python, name), ctypes.c_void_p).value or 0 for name in gate.PYTHON}
    is_ending = getattr(python, "Py_IsFinalizing", None) or python._Py_IsFinalizing
    symbols["heron_is_ending"] = ctypes.cast(is_ending, ctypes.c_void_p).value or 0
    symbols["heron_interrupt"] = id(KeyboardInterrupt)
    symbols[fast_paths.EMPTY] = numpy_api.function(numpy_api.EMPTY) or 0
    symbols["pthread_self"] = ctypes.cast(ctypes.CDLL(None).pthread_self, ctypes.c_void_p).value or 0
    quick, plain = Jit(level=1, symbols=symbols), Jit(level=0)
    texts = _quick_text(), _plain_text()
    exports = [name for text in texts for name in public_functions(text)]
    linked = quick.link(quick.compile(texts[0], "pjrt"), exports, [plain.compile(texts[1], "pjrt_plain")])
    for lasting in (quick, linked):
        python.Py_IncRef(ctypes.py_object(lasting))
    return dict(linked.addresses)


def entry(name: str) -> int:
    """Address of the native function of that slot."""
    return code()[name]


def bind(functions: dict[str, Callable[[int], int]], names: Iterable[str]) -> None:
    """Say which Python function is behind each entry point; they live as long as the process."""
    table = (ctypes.c_void_p * len(functions)).from_address(_table())
    for n, name in enumerate(names):
        function = functions[name]
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(function))
        table[n] = id(function)


def _table() -> int:
    get = ctypes.CFUNCTYPE(ctypes.c_void_p)(code()["heron_functions"])
    return get() or 0


def slots() -> tuple[str, ...]:
    """Slots Python functions are behind, in their order in the native table."""
    known = {*getters.GETTERS, *small_slots.NAMES}
    of_extensions = [n for names in abi.EXTENSIONS.values() for n in names]
    return tuple(n for n in (*abi.functions(), *of_extensions) if n not in known)


def _quick_text() -> str:
    """The functions that a call of a program goes through, which LLVM optimises."""
    module, names = Module(), slots()
    module.variable(f"{_FUNCTIONS} = global [{len(names)} x ptr] zeroinitializer")
    with module.function("ptr @heron_functions()") as f:
        f.ret(_FUNCTIONS, "ptr")
    gate.write(module)
    fast_paths.write_shared(module)
    for n, name in enumerate(names):
        if fast_paths.has_path(name):
            fast_paths.write(module, name)
            _write_entry(module, name, n, has_path=True)
    return module.text()


def _plain_text() -> str:
    """The other functions, as they are written: to optimise 140 of a few lines took longer than all their calls."""
    module, names = Module(), slots()
    module.variable(f"{_FUNCTIONS} = external global [{len(names)} x ptr]")
    small_slots.write(module)
    getters.write(module)
    for n, name in enumerate(names):
        if not fast_paths.has_path(name):
            _write_entry(module, name, n, has_path=False)
    return module.text()


def _write_entry(module: Module, name: str, n: int, *, has_path: bool) -> None:
    with module.function(f"ptr @{name}(ptr %args)") as f:
        args = f.arguments[0]
        function = f.load("ptr", f.at(_FUNCTIONS, n, "ptr"))
        if has_path:
            with f.when(f.call(f"i1 @{name}.fast(ptr, ptr)", args, function)):
                f.ret("null", "ptr")
        f.ret(f.call(gate.CALL, function, args))


def call_c(result: Any, address: int, *args: tuple[Any, Any]) -> Any:
    """Call C code at an address with (ctypes kind, value) pairs, without Python's lock."""
    return ctypes.CFUNCTYPE(result, *[k for k, _ in args])(address)(*[v for _, v in args])
