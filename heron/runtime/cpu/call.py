"""The quick way from Python into a compiled program: one built-in function for each, made by `call_code.py`."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.once import once
from heron.runtime import array_pool, numpy_api
from heron.runtime.cpu import call_code
from heron.runtime.memory import HostMemory

if TYPE_CHECKING:
    from heron.codegen.llvm.jit import Jit

#: allocations a program may have: their table lies on the stack
_MOST = 1 << 14

#: gives a program's flat outputs for its flat arguments, or NotImplemented where it has refused them
Call = Callable[..., Any]


class _Method(ctypes.Structure):
    """Python's ``PyMethodDef``."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_METH_FASTCALL = 0x80


@once
def load() -> Jit | None:
    """The native code, loaded once; None where arrays are not what it knows.

    Whoever compiles a program loads it, not the first call: a process may fork while another of its threads calls
    programs, and the child could not wait for what that thread holds of LLVM.
    """
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64") or not numpy_api.known_layout():
        return None
    from heron.codegen.llvm.jit import Jit

    symbols = {name: _address(getattr(ctypes.pythonapi, name)) for name in call_code.PYTHON}
    for name, place in ((call_code.EMPTY, numpy_api.EMPTY), (call_code.SET_HANDLER, numpy_api.SET_HANDLER)):
        symbols[name] = numpy_api.function(place) or 0
    if not all(symbols.values()):
        return None
    jit = Jit(level=0, symbols=symbols)  # straight code: the optimiser takes longer than it saves
    jit.add(call_code.text(id(np.ndarray), id(NotImplemented)), "call")
    return jit


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def quick_call(
    program: int, memory: HostMemory, arguments: Sequence[tuple[np.dtype, tuple[int, ...]]], donate: bool
) -> Call | None:
    """The quick way into the program at an address; None where there is none for it.

    It takes exact arrays of the planned types and shapes, C-contiguous and aligned; its scratch serves one call at a
    time. `memory` and the program must live as long as it does.

    Args:
        arguments: dtypes and dimensions of the flat arguments as they lie in memory.
        donate: arguments the program aliases with outputs are overwritten and are those outputs; else they are copied.
    """
    code = load()
    if code is None or len(memory.allocations) > _MOST:
        return None
    keep: list[Any] = []

    def words(values: Sequence[int]) -> Any:
        made = (ctypes.c_int64 * max(1, len(values)))(*values)
        keep.append(made)
        return made

    def dtype(value: np.dtype) -> int:
        keep.append(value)
        return id(value)

    def dims(values: tuple[int, ...]) -> int:
        return ctypes.addressof(words(values))

    argument_words: list[int] = []
    places = memory.places
    begins = {a.number: places[a.parameter, a.index] for a in memory.allocations if a.number in memory.overwritten}
    results = {s.allocation for s in memory.output_slices}
    if not begins.keys() <= results:
        return None  # overwritten, but no output: needs a copy nobody gets
    by_place = {places[a.parameter, a.index]: a.number for a in memory.allocations if a.kind == "parameter"}
    for n, (kind, sizes) in enumerate(arguments):
        if n not in by_place:
            return None
        number = by_place[n]
        needed = numpy_api.C_CONTIGUOUS | numpy_api.ALIGNED
        given = donate and number in begins
        if given:
            needed |= numpy_api.WRITEABLE
        argument_words += [dtype(kind), len(sizes), dims(sizes), number, needed, _bytes(kind, sizes), int(given)]
    output_words: list[int] = []
    first: dict[int, int] = {}
    for n, (s, (kind, sizes)) in enumerate(zip(memory.output_slices, memory.outputs, strict=True)):
        number = s.allocation
        size = _bytes(kind, sizes)
        origin = begins.get(number, -1)
        reuse = donate and origin >= 0
        if reuse and arguments[origin] != (kind, sizes):
            return None  # the argument in another shape is another array
        handler = array_pool.handler() if size >= array_pool.LARGE else None
        keep.append(handler)
        output_words += [dtype(kind), len(sizes), dims(sizes), number, size, first.get(number, -1), origin, int(reuse)]
        output_words.append(0 if handler is None else id(handler))
        first.setdefault(number, n)
    arenas = memory.borrow()  # for good: other calls at the same time have their own
    keep += [memory, arenas]
    table = words([_base(memory, arenas, a.number) for a in memory.allocations])
    plan = words(
        [
            program,
            len(arguments),
            ctypes.addressof(words(argument_words)),
            len(memory.outputs),
            ctypes.addressof(words(output_words)),
            len(memory.allocations),
            ctypes.addressof(table),
            0 if arenas else -1,
        ]
    )
    return _builtin(code.address(call_code.CALL), plan, keep)


@dataclass(frozen=True, slots=True)
class Entry:
    """A quick way as native code calls it, with Python's lock held: a C function of an object, the addresses of the
    arguments' arrays and their number, which gives what the `call` would. The call must live as long as it is used."""

    function: int
    object: int
    call: Call


def entry(call: Any) -> Entry | None:
    """How native code calls a quick way; None for another function."""
    code = load()
    if code is None or not isinstance(call, BuiltinFunctionType):
        return None
    return Entry(code.address(call_code.CALL), id(call.__self__), call)


def _bytes(kind: np.dtype, sizes: tuple[int, ...]) -> int:
    """Bytes of a whole array."""
    return prod(sizes) * kind.itemsize


def _base(memory: HostMemory, arenas: dict[int, np.ndarray], number: int) -> int:
    """The address of a constant or of scratch; 0 for what each call brings along."""
    found = memory.constants.get(number, arenas.get(number))
    return 0 if found is None else found.ctypes.data


def _builtin(function: int, plan: Any, keep: list[Any]) -> Call:
    """A built-in function that hands the plan to native code; `keep` lives as long as it does."""
    method = _Method(b"run", function, _METH_FASTCALL, None)
    keep.append(method)
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    # what it is a method of, and the module it says it is from, are all a built-in function keeps alive
    return new(ctypes.addressof(method), capsule(ctypes.addressof(plan), None, None), keep)
