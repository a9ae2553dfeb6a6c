"""Calls of compiled programs from Python without ctypes: a built-in function for each program.

The function is native code (`codegen/native/call_code.py`) that knows nothing of the program but its `Plan`. It refuses
arguments of another type, dtype or shape than planned, with gaps or on top of each other, and a call when memory is
short or another thread uses the scratch: it gives NotImplemented, having done nothing, and Python finds out what is
wrong.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from heron.records import dataclass
from heron.runtime import array_pool, compiled, numpy_api
from heron.runtime.collectives.turns import Turns
from heron.runtime.memory import HostMemory

#: allocations a program may have: their table lies on the stack
_MOST = 1 << 14

#: the native helper, and its one function
HELPER, CALL = "call", "heron_call"

#: gives a program's flat outputs for its flat arguments, or NotImplemented where it has refused them
Call = Callable[..., Any]


class Plan(ctypes.Structure):
    """A program as the native code sees it. ``busy``: 0 free, 1 scratch in use, -1 there is none. ``failed``: the
    address of a number that is not 0 after a run that failed, or null; the plan refuses that run and all later ones.
    """

    _fields_ = [
        ("program", ctypes.c_void_p),
        ("arguments", ctypes.c_int64),
        ("argument", ctypes.c_void_p),
        ("outputs", ctypes.c_int64),
        ("output", ctypes.c_void_p),
        ("allocations", ctypes.c_int64),
        ("table", ctypes.c_void_p),
        ("busy", ctypes.c_int64),
        ("failed", ctypes.c_void_p),
    ]


class Argument(ctypes.Structure):
    """An argument of a plan.

    ``allocation``: its place in the table. ``flags``: those the array must have. ``given``: the program overwrites it,
    so that no other argument may share its memory.
    """

    _fields_ = [
        ("dtype", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
        ("allocation", ctypes.c_int64),
        ("flags", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("given", ctypes.c_int64),
    ]


class Output(ctypes.Structure):
    """An output of a plan.

    ``same``: the earlier output that is the same array, or -1. ``origin``: the argument whose values it begins with, or
    -1. ``given``: it is that argument itself. ``handler``: the allocator for it, or null.
    """

    _fields_ = [
        ("dtype", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
        ("allocation", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("same", ctypes.c_int64),
        ("origin", ctypes.c_int64),
        ("given", ctypes.c_int64),
        ("handler", ctypes.c_void_p),
    ]


class _Method(ctypes.Structure):
    """Python's ``PyMethodDef``."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_METH_FASTCALL = 0x80

Arrays = Sequence[tuple[np.dtype, tuple[int, ...]]]


def load() -> int:
    """The address of the native code, compiled once in a process; 0 where arrays do not lie as it expects.

    It is loaded when a program is compiled, not at its first call: a process may fork while another of its threads
    calls programs, and the child could not wait for what that thread holds of LLVM.
    """
    found = compiled.functions(HELPER)
    return 0 if found is None else found[CALL]


def quick_call(program: int, memory: HostMemory, arguments: Arrays, donate: bool) -> Call | None:
    """The built-in function that calls the program at an address; None where a program cannot have one.

    It takes exact arrays of the planned types and shapes, C-contiguous and aligned; its scratch serves one call at a
    time. `memory` and the program must live as long as it does.

    Args:
        arguments: dtypes and dimensions of the flat arguments as they lie in memory.
        donate: arguments the program aliases with outputs are overwritten and are those outputs; else they are copied.
    """
    function = load()
    if not function or len(memory.allocations) > _MOST:
        return None
    planner = _Planner(memory, arguments, donate)
    if not planner.fits():
        return None
    plan = planner.plan(program)
    return _builtin(function, plan, planner.keep)


def quick_devices(memory: HostMemory, arguments: Arrays, turns: Turns) -> Call | None:
    """As `quick_call`, for all devices of a program, which take turns: it takes the arguments of the first device, then
    those of the others, and gives their outputs alike. None of them is donated."""
    function = load()
    devices, tables = len(turns.devices), table_words(memory)
    if not function or devices * tables > _MOST:
        return None
    outputs: list[Output] = []
    given: list[Argument] = []
    words: list[int] = []
    keep: list[Any] = [turns]
    for n, device in enumerate(turns.devices):
        planner = _Planner(memory, arguments, False, Begin(n * tables + 1, n * len(arguments), len(outputs)))
        if not planner.fits():
            return None
        given += [planner.argument(k) for k in range(len(arguments))]
        outputs += planner.outputs()
        words += [device, *planner.table_of(memory.borrow())]
        keep.append(planner.keep)
    planner = _Planner(memory, arguments, False)
    plan = planner.whole(turns.address, given, outputs, words)
    plan.busy, plan.failed = 0, turns.failed
    return _builtin(function, plan, [*keep, *planner.keep])


def table_words(memory: HostMemory) -> int:
    """The length of a device's table, which begins with the device."""
    return 1 + len(memory.allocations)


@dataclass(frozen=True, slots=True)
class Begin:
    """The places of a device's first allocation, argument and output among those of all."""

    allocation: int = 0
    argument: int = 0
    output: int = 0


class _Planner:
    """Makes the `Plan` of one program. ``keep``: everything the plan has addresses of."""

    def __init__(self, memory: HostMemory, arguments: Arrays, donate: bool, begin: Begin = Begin()) -> None:
        self.memory, self.arguments, self.donate, self.begin = memory, arguments, donate, begin
        self.keep: list[Any] = [memory]
        places = memory.places
        parameters = [a for a in memory.allocations if a.kind == "parameter"]
        #: the allocation of each argument; the argument whose values an overwritten allocation begins with
        self.allocation_of = {places[a.parameter, a.index]: a.number for a in parameters}
        self.begins = {a.number: places[a.parameter, a.index] for a in parameters if a.number in memory.overwritten}

    def fits(self) -> bool:
        """Whether the native code can do it: each argument has an allocation, and what is overwritten is an output."""
        results = {s.allocation for s in self.memory.output_slices}
        if not self.begins.keys() <= results or any(n not in self.allocation_of for n in range(len(self.arguments))):
            return False
        if not self.donate:
            return True
        # an argument in another shape is another array
        given = [(s, o) for s, o in zip(self.memory.output_slices, self.memory.outputs, strict=True)]
        return all(self.arguments[self.begins[s.allocation]] == o for s, o in given if s.allocation in self.begins)

    def plan(self, program: int) -> Plan:
        arguments = [self.argument(n) for n in range(len(self.arguments))]
        arenas = self.memory.borrow()  # for good: other calls at the same time have their own
        plan = self.whole(program, arguments, self.outputs(), self.table_of(arenas))
        plan.busy = 0 if arenas else -1
        return plan

    def whole(self, program: int, arguments: list[Argument], outputs: list[Output], table: list[int]) -> Plan:
        """The plan of these parts."""
        plan = Plan(
            program=program,
            arguments=len(arguments),
            argument=self.table(Argument, arguments),
            outputs=len(outputs),
            output=self.table(Output, outputs),
            allocations=len(table),
            table=self.words(table),
        )
        self.keep.append(plan)
        return plan

    def table_of(self, arenas: dict[int, np.ndarray]) -> list[int]:
        """The addresses of all allocations that do not come with a call."""
        self.keep.append(arenas)
        return [_base(self.memory, arenas, a.number) for a in self.memory.allocations]

    def argument(self, n: int) -> Argument:
        dtype, dims = self.arguments[n]
        number = self.allocation_of[n]
        given = self.donate and number in self.begins
        number += self.begin.allocation
        flags = numpy_api.C_CONTIGUOUS | numpy_api.ALIGNED | (numpy_api.WRITEABLE if given else 0)
        size = _bytes(dtype, dims)
        return Argument(self.object(dtype), len(dims), self.words(dims), number, flags, size, int(given))

    def outputs(self) -> list[Output]:
        found: list[Output] = []
        first: dict[int, int] = {}
        for n, (s, (dtype, dims)) in enumerate(zip(self.memory.output_slices, self.memory.outputs, strict=True)):
            number, size = s.allocation, _bytes(dtype, dims)
            origin, same = self.begins.get(number, -1), first.get(number, -1)
            handler = array_pool.handler() if size >= array_pool.LARGE else None
            found.append(
                Output(
                    dtype=self.object(dtype),
                    rank=len(dims),
                    dims=self.words(dims),
                    allocation=self.begin.allocation + number,
                    bytes=size,
                    same=same if same < 0 else self.begin.output + same,
                    origin=origin if origin < 0 else self.begin.argument + origin,
                    given=int(self.donate and origin >= 0),
                    handler=None if handler is None else self.object(handler),
                )
            )
            first.setdefault(number, n)
        return found

    def object(self, value: Any) -> int:
        """The address of a Python object."""
        self.keep.append(value)
        return id(value)

    def words(self, values: Sequence[int]) -> int:
        """The address of numbers of 64 bits."""
        return self.table(ctypes.c_int64, values)

    def table(self, kind: Any, values: Sequence[Any]) -> int:
        made = (kind * max(1, len(values)))(*values)
        self.keep.append(made)
        return ctypes.addressof(made)


@dataclass(frozen=True, slots=True)
class Entry:
    """A quick way as native code calls it, with Python's lock held: a C function of an object, the addresses of the
    arguments' arrays and their number, which gives what the `call` would. The call must live as long as it is used."""

    function: int
    object: int
    call: Call


def entry(call: Any) -> Entry | None:
    """The address at which native code calls a fast path; None for another function."""
    function = load()
    if not function or not isinstance(call, BuiltinFunctionType):
        return None
    return Entry(function, id(call.__self__), call)


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
