"""Native code between C and Python: takes Python's lock, calls a slot's Python function, keeps a pending exception.

C++ may call from any thread, with or without Python's lock, while an exception is being raised, and after Python has
ended. ``heron_enter`` refuses when Python is going (`ending.py`).
"""

from __future__ import annotations

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value

#: functions of Python's that native code calls
PYTHON = {
    name: f"{result} @{name}({arguments})"
    for result, name, arguments in (
        ("void", "Py_IncRef", "ptr"),
        ("void", "Py_DecRef", "ptr"),
        ("void", "PyErr_Clear", ""),
        ("i32", "PyErr_ExceptionMatches", "ptr"),
        ("void", "PyErr_Fetch", "ptr, ptr, ptr"),
        ("void", "PyErr_Restore", "ptr, ptr, ptr"),
        ("void", "PyErr_SetInterrupt", ""),
        ("i32", "PyGILState_Ensure", ""),
        ("void", "PyGILState_Release", "i32"),
        ("ptr", "PyLong_AsVoidPtr", "ptr"),
        ("ptr", "PyLong_FromVoidPtr", "ptr"),
        ("ptr", "PyObject_CallOneArg", "ptr, ptr"),
        ("ptr", "PyTuple_GetItem", "ptr, i64"),
    )
}
ENTER, LEAVE = "i32 @heron_enter(ptr)", "void @heron_leave(i32, ptr)"
ASK, CALL = "ptr @heron_ask(ptr, ptr)", "ptr @heron_call(ptr, ptr)"
#: a pending exception: its type, value and traceback
SAVED = "[3 x ptr]"


def write(module: Module) -> None:
    """The functions, and the words `ending.py` looks at: the only thread that may still come in once Python begins to
    end, and how many threads are inside."""
    module.variable("@heron_last = global i64 0")
    module.variable("@heron_inside = global i64 0")
    module.variable("@heron_interrupt = external global i8")
    for name, variable in (("heron_ending", "@heron_last"), ("heron_counting", "@heron_inside")):
        with module.function(f"ptr @{name}()") as f:
            f.ret(variable, "ptr")
    _write_enter(module)
    with module.function("internal void @heron_leave(i32 %lock, ptr %saved) noinline") as f:
        lock, saved = f.arguments
        f.call(PYTHON["PyErr_Restore"], *(f.load("ptr", place) for place in _places(f, saved)))
        f.call(PYTHON["PyGILState_Release"], lock)
        f.change("sub", "i64", "@heron_inside", 1, "seq_cst")
    _write_ask(module)
    with module.function("ptr @heron_call(ptr %function, ptr %args) noinline") as f:
        function, args = f.arguments
        saved = f.slot(SAVED)
        lock = f.call(ENTER, saved)
        with f.when(lock.less(0)):
            f.ret("null", "ptr")
        error = f.call(ASK, function, args)
        f.call(LEAVE, lock, saved)
        f.ret(error)


def _places(f: Function, saved: Value) -> list[Value]:
    return [f.at(saved, n, "ptr") for n in range(3)]


def _write_enter(module: Module) -> None:
    """Take Python's lock and put a pending exception aside: the lock's state, or -1 when Python is going."""
    with module.function("internal i32 @heron_enter(ptr %saved) noinline") as f:
        own = f.call("i64 @pthread_self()")
        f.change("add", "i64", "@heron_inside", 1, "seq_cst")
        last = f.load("i64", "@heron_last", order="seq_cst")
        is_ending = f.call("i32 @heron_is_ending()")
        with f.when((last.eq(0) | last.eq(own)) & is_ending.eq(0)):
            lock = f.call(PYTHON["PyGILState_Ensure"])
            f.call(PYTHON["PyErr_Fetch"], *_places(f, f.arguments[0]))
            f.ret(lock)
        f.change("sub", "i64", "@heron_inside", 1, "seq_cst")
        f.ret(-1, "i32")


def _write_ask(module: Module) -> None:
    """The error that a slot's Python function gives; the caller has the lock.

    The function gives 0 or the address of an error, as a negative number where it was Ctrl-C: Python is told again
    when it is back, whatever C++ makes of the error. An exception can only be a Ctrl-C before the function's own
    ``try``: nothing was done yet, and it is called once more.
    """
    with module.function("internal ptr @heron_ask(ptr %function, ptr %args) noinline") as f:
        function, args = f.arguments
        again = f.variable("i1", "false")
        with f.repeat() as each:
            number = f.call(PYTHON["PyLong_FromVoidPtr"], args)
            result = f.call(PYTHON["PyObject_CallOneArg"], function, number)
            f.call(PYTHON["Py_DecRef"], number)
            with f.when(result.is_null()):
                is_interrupt = f.call(PYTHON["PyErr_ExceptionMatches"], "@heron_interrupt").ne(0)
                f.call(PYTHON["PyErr_Clear"])
                with f.when(is_interrupt & ~again.get()):
                    again.set("true")
                    each.again()
                _interrupt(f, again.get())
                f.ret("null", "ptr")
            bits = f.call(PYTHON["PyLong_AsVoidPtr"], result).cast("ptrtoint", "i64")
            f.call(PYTHON["Py_DecRef"], result)
            was_stopped = bits.less(0)
            _interrupt(f, again.get() | was_stopped)
            f.ret(f.select(was_stopped, 0 - bits, bits, "i64").cast("inttoptr", "ptr"))


def _interrupt(f: Function, condition: Value) -> None:
    with f.when(condition):
        f.call(PYTHON["PyErr_SetInterrupt"])
