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
from heron.codegen.llvm.declarations import declared
from heron.codegen.native import common_code
from heron.hlo.meaning.scipy_part import scipy_part
from heron.once import once

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter

_FUNCTION = "heron_blas_threads"
#: whether someone is at the other two (a lock), how many programs are in a routine, OpenBLAS's number before
_STATE = (ctypes.c_int32 * 3)()

_TEXT = f"""
{declared("i32 @sched_yield()")}

define void @{_FUNCTION}(ptr %state, ptr %get, ptr %set, i32 %step) nounwind {{
entry:
  %inside_at = getelementptr i32, ptr %state, i64 1
  %usual_at = getelementptr i32, ptr %state, i64 2
  br label %try

try:
  %exchange = cmpxchg ptr %state, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue {{ i32, i1 }} %exchange, 1
  br i1 %mine, label %look, label %wait

wait:
  call i32 @sched_yield()
  br label %try

look:
  %before = load i32, ptr %inside_at
  %after = add i32 %before, %step
  store i32 %after, ptr %inside_at
  %comes = icmp sgt i32 %step, 0
  br i1 %comes, label %come, label %go

come:
  %first = icmp eq i32 %before, 0
  br i1 %first, label %lower, label %done

lower:
  %now = call i32 %get()
  store i32 %now, ptr %usual_at
  call void %set(i32 1)
  br label %done

go:
  %last = icmp eq i32 %after, 0
  br i1 %last, label %raise, label %done

raise:
  %usual = load i32, ptr %usual_at
  call void %set(i32 %usual)
  br label %done

done:
  store atomic i32 0, ptr %state release, align 4
  ret void
}}
"""


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
    return common_code.address_of(_FUNCTION, lambda: _TEXT, cache=cache)


@once
def _functions() -> tuple[Any, Any] | None:
    """OpenBLAS's functions that give and set its number of threads; None for another library."""
    library = ctypes.CDLL(scipy_part("linalg.cython_blas").__file__)  # a name in it may be of a library it needs
    for prefix in ("scipy_", ""):
        with contextlib.suppress(AttributeError):
            return tuple(getattr(library, f"{prefix}openblas_{verb}_num_threads") for verb in ("get", "set"))
    return None


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _after_fork() -> None:
    """A forked child has one thread, which was in no routine."""
    if _STATE[1] and (functions := _functions()) is not None:
        functions[1](_STATE[2])
    ctypes.memset(_STATE, 0, ctypes.sizeof(_STATE))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
