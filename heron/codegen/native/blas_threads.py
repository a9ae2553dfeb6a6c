"""OpenBLAS works on the calling thread while a program is in one of its routines.

Its threads wait for each other by yielding the processor, many times in a factorisation: with anything else to do on a
core, one wait takes milliseconds, and a matrix of 256 rows 70 times as long as on one thread. Matrices of a batch are
shared by the program's own threads instead.

How many threads OpenBLAS has is one number for the process, which other code of the process goes on to use: it is put
back when the last of the programs that are in a routine leaves it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from heron.codegen.llvm.code_cache import CodeCache
from heron.codegen.llvm.text import Module
from heron.codegen.native import common_code
from heron.hlo.meaning.scipy_part import scipy_extension
from heron.once import once

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter

_FUNCTION = "heron_blas_threads"


class _State(ctypes.Structure):
    """``lock``: 1 while a thread is at the others. ``inside``: programs that are in a routine. ``usual``: OpenBLAS's
    number of threads before."""

    _fields_ = [("lock", ctypes.c_int32), ("inside", ctypes.c_int32), ("usual", ctypes.c_int32)]


_STATE = _State()


def _text() -> str:
    """A function that counts programs in (step 1) and out (-1); the first one in and the last one out set OpenBLAS's
    number of threads."""
    module = Module()
    with module.function(f"void @{_FUNCTION}(ptr %state, ptr %get, ptr %set, i32 %step) nounwind") as f:
        place, get, set_, step = f.arguments
        state = f.view(place, _State)
        with f.repeat() as each:
            with f.when(f.swap("i32", state.at("lock"), 0, 1, "acquire monotonic, align 4")):
                each.leave()
            f.call("i32 @sched_yield()")
        before = state["inside"]
        state["inside"] = after = before + step
        comes = ~step.less(1)
        with f.when(comes & before.eq(0)):
            state["usual"] = f.call(f"i32 {get}()")
            f.call(f"void {set_}(i32)", 1)
        with f.when(~comes & after.eq(0)):
            f.call(f"void {set_}(i32)", state["usual"])
        f.store("i32", 0, state.at("lock"), order="release")
    return module.text()


@contextlib.contextmanager
def one_blas_thread(w: ProgramWriter) -> Iterator[None]:
    """Run BLAS calls of the block inside on one thread, if the library allows setting that."""
    functions = _functions()
    if functions is None:
        yield
        return
    names = [f"{_FUNCTION}.{part}" for part in ("state", "get", "set")]
    addresses = (ctypes.addressof(_STATE), *(_address(f) for f in functions))
    for name, address in zip(names, addresses, strict=True):
        w.declared.variable(f"@{name} = external global i8")
        w.externals[name] = address
    w.declare(_FUNCTION, f"void @{_FUNCTION}(ptr, ptr, ptr, i32)", _make)
    pointers = ", ".join(f"ptr @{name}" for name in names)
    w.line(f"call void @{_FUNCTION}({pointers}, i32 1)")
    yield
    w.line(f"call void @{_FUNCTION}({pointers}, i32 -1)")


def _make(cache: CodeCache | None) -> int:
    return common_code.address_of(_FUNCTION, _text, cache=cache)


@once
def _functions() -> tuple[Any, Any] | None:
    """OpenBLAS's functions that give and set its number of threads; None for another library."""
    # a name in it may be of a library it needs
    library = ctypes.CDLL(scipy_extension("linalg", "cython_blas").__file__)
    for prefix in ("scipy_", ""):
        with contextlib.suppress(AttributeError):
            return tuple(getattr(library, f"{prefix}openblas_{verb}_num_threads") for verb in ("get", "set"))
    return None


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _after_fork() -> None:
    """A forked child has one thread, which was in no routine."""
    if _STATE.inside and (functions := _functions()) is not None:
        functions[1](_STATE.usual)
    ctypes.memset(ctypes.addressof(_STATE), 0, ctypes.sizeof(_STATE))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
