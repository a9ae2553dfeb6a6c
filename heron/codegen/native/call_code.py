"""Native code of `heron.runtime.cpu.call`: a C function that checks arguments, makes outputs and runs a program."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value, View
from heron.codegen.native import float_mode
from heron.codegen.native.common_code import for_good
from heron.runtime import numpy_api
from heron.runtime.cpu.call import CALL, Argument, Output, Plan
from heron.runtime.memory import ARGUMENT_ALIGNMENT

#: external globals: the type of arrays, and the value of a call that Python should do itself
_ARRAY, _REFUSAL = "heron_array_type", "heron_refusal"
#: functions of Python's stable interface the code calls, and of NumPy's
_PYTHON = {
    name: f"{result} @{name}({arguments})"
    for result, name, arguments in (
        ("ptr", "PyCapsule_GetPointer", "ptr, ptr"),
        ("ptr", "PyTuple_New", "i64"),
        ("i32", "PyTuple_SetItem", "ptr, i64, ptr"),
        ("ptr", "PyTuple_GetItem", "ptr, i64"),
        ("void", "Py_IncRef", "ptr"),
        ("void", "Py_DecRef", "ptr"),
        ("void", "PyErr_Clear", ""),
        ("ptr", "PyEval_SaveThread", ""),
        ("void", "PyEval_RestoreThread", "ptr"),
    )
}
_EMPTY = "ptr @heron_array_empty(i32, ptr, ptr, i32)"
_SET_HANDLER = "ptr @heron_set_handler(ptr)"


def make() -> Mapping[str, int] | None:
    """The address of the function; None where arrays do not lie as it expects."""
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64") or not numpy_api.known_layout():
        return None
    symbols = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _PYTHON}
    for name, place in (("heron_array_empty", numpy_api.EMPTY), ("heron_set_handler", numpy_api.SET_HANDLER)):
        symbols[name] = numpy_api.function(place) or 0
    if not all(symbols.values()):
        return None
    return for_good("call", text(), symbols | {_ARRAY: id(np.ndarray), _REFUSAL: id(NotImplemented)})


def text() -> str:
    """The code, and the functions of the floating-point mode that programs call."""
    module = Module()
    places = [module.variable(f"@{name} = external global i8") for name in (_ARRAY, _REFUSAL)]
    with module.function(f"ptr @{CALL}(ptr %self, ptr %values, i64 %count) nounwind") as f:
        _Writer(f, *places).write()
    float_mode.write(module, linkage="")
    return module.text()


class _Writer:
    """Writes the function. It gives back `refusal` with everything as it was, or the outputs.

    ``array_type``, ``refusal``: the globals at `numpy.ndarray` and NotImplemented.
    """

    def __init__(self, f: Function, array_type: str, refusal: str) -> None:
        self.f = f
        owner, self.values, self.count = f.arguments
        self.array_type, self.refusal = array_type, refusal
        self.plan = f.view(self.python("PyCapsule_GetPointer", owner, "null"), Plan)
        self.arguments, self.argument = self.plan["arguments"], self.plan["argument"]
        self.outputs, self.output = self.plan["outputs"], self.plan["output"]

    def python(self, name: str, *arguments: Any) -> Value:
        return self.f.call(_PYTHON[name], *arguments)

    def write(self) -> None:
        f = self.f
        with f.when(self.count.ne(self.arguments)):
            self.refuse()
        with f.loop(0, self.arguments) as n:
            self.check(n)
        with f.loop(0, self.arguments) as n:
            self.check_apart(n)
        self.has_scratch = self.plan["busy"].less(0)
        with f.unless(self.has_scratch), f.unless(f.swap("i64", self.plan.at("busy"), 0, 1, "acquire monotonic")):
            self.refuse()
        allocations = self.plan["allocations"]
        self.buffers = f.op(f"alloca ptr, i64 {allocations}, align 16", "ptr")
        f.copy(self.buffers, self.plan["table"], allocations * 8)
        self.result = self.python("PyTuple_New", self.outputs)
        with f.when(self.result.is_null()):
            self.fail()
        with f.loop(0, self.arguments) as n:
            self.place(f.view(self.argument, Argument, n)["allocation"], self.array(n)["data"])
        with f.loop(0, self.outputs) as n:
            f.call(_PYTHON["PyTuple_SetItem"], self.result, n, self.made(n))
        thread = self.python("PyEval_SaveThread")
        f.call(f"void {self.plan['program']}(ptr)", self.buffers)
        self.python("PyEval_RestoreThread", thread)
        failed = self.plan["failed"]
        with f.unless(failed.is_null()), f.when(f.load("i32", failed).ne(0)):  # it stays busy
            self.python("Py_DecRef", self.result)
            self.refuse()
        self.give_back()
        f.ret(self.result)

    # -- ways out ------------------------------------------------------------------------------------------------------
    def refuse(self) -> None:
        self.python("Py_IncRef", self.refusal)
        self.f.ret(self.refusal, "ptr")

    def fail(self) -> None:
        """Memory is short."""
        self.python("PyErr_Clear")
        self.give_back()
        self.refuse()

    def give_back(self) -> None:
        """Scratch is free for the next call."""
        with self.f.unless(self.has_scratch):
            self.f.store("i64", 0, self.plan.at("busy"), order="release")

    # -- arguments -----------------------------------------------------------------------------------------------------
    def value_at(self, n: str) -> Value:
        return self.f.load("ptr", self.f.at(self.values, n, "ptr"))

    def array(self, n: str) -> View:
        """Argument `n` as an array."""
        return self.f.view(self.value_at(n), numpy_api.Array)

    def check(self, n: Value) -> None:
        """Argument `n` is an array as planned."""
        f, wanted, given = self.f, self.f.view(self.argument, Argument, n), self.array(n)
        with f.when(given["type"].ne(self.array_type)):
            self.refuse()
        rank, flags = given["rank"].cast("sext", "i64"), given["flags"].cast("zext", "i64")
        same = given["dtype"].eq(wanted["dtype"]) & rank.eq(wanted["rank"])
        with f.unless(same & (flags & wanted["flags"]).eq(wanted["flags"])):
            self.refuse()
        with f.when((given["data"].cast("ptrtoint", "i64") & (ARGUMENT_ALIGNMENT - 1)).ne(0)):
            self.refuse()
        dims, wanted_dims = given["dims"], wanted["dims"]
        with f.loop(0, rank) as d:
            sizes = [f.load("i64", f.at(base, d, "i64")) for base in (dims, wanted_dims)]
            with f.when(sizes[0].ne(sizes[1])):
                self.refuse()

    def extent(self, n: Value) -> tuple[Value, Value]:
        """The first and last byte of the elements of argument `n`."""
        start = self.array(n)["data"].cast("ptrtoint", "i64")
        return start, start + self.f.view(self.argument, Argument, n)["bytes"]

    def check_apart(self, n: Value) -> None:
        """No other argument shares memory with argument `n`, if that is overwritten."""
        f = self.f
        with f.when(f.view(self.argument, Argument, n)["given"].ne(0)):
            start, end = self.extent(n)
            with f.loop(0, self.arguments) as other:
                first, last = self.extent(other)
                with f.when(start.below(last) & first.below(end) & n.ne(other)):
                    self.refuse()

    # -- outputs -------------------------------------------------------------------------------------------------------
    def place(self, allocation: Value, data: Value) -> None:
        self.f.store("ptr", data, self.f.at(self.buffers, allocation, "ptr"))

    def made(self, n: Value) -> Value:
        """Output `n`, with a reference to it: that of an earlier output, an argument, or a new array."""
        f, output, item = self.f, self.f.view(self.output, Output, n), self.f.variable("ptr")
        same = output["same"]
        shared, own = f.fork(~same.less(0))
        with shared:
            item.set(self.python("PyTuple_GetItem", self.result, same))
            self.python("Py_IncRef", item.get())
        with own:
            reused, fresh = f.fork(output["given"].ne(0))
            with reused:
                item.set(self.value_at(output["origin"]))
                self.python("Py_IncRef", item.get())
            with fresh:
                item.set(self.fresh(output))
        return item.get()

    def fresh(self, output: View) -> Value:
        """A new array in the table; it begins with an argument's values where the output does."""
        f = self.f
        new = self.empty(output)
        with f.when(new.is_null()):
            self.python("Py_DecRef", self.result)
            self.fail()
        data = f.view(new, numpy_api.Array)["data"]
        self.place(output["allocation"], data)
        origin = output["origin"]
        with f.unless(origin.less(0)):
            f.copy(data, self.array(origin)["data"], output["bytes"])
        return new

    def empty(self, output: View) -> Value:
        """A new array, from its allocator where it has one; null when memory is short."""
        f, found = self.f, self.f.variable("ptr")
        self.python("Py_IncRef", output["dtype"])
        facts = (output["rank"].cast("trunc", "i32"), output["dims"], output["dtype"], 0)
        handler = output["handler"]
        usual, special = f.fork(handler.is_null())
        with usual:
            found.set(f.call(_EMPTY, *facts))
        with special:
            before = f.call(_SET_HANDLER, handler)
            found.set(f.call(_EMPTY, *facts))
            now = f.call(_SET_HANDLER, before)
            self.python("Py_DecRef", before)
            self.python("Py_DecRef", now)
        return found.get()
