"""The writer of LLVM text: control flow, fields of structures, atomics, and declarations that stand once."""

from __future__ import annotations

import ctypes
import doctest
import importlib

import pytest

from heron.codegen.llvm.jit import Jit
from heron.codegen.llvm.text import Function, Module


class Pair(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("total", ctypes.c_int64), ("items", ctypes.c_int64 * 4)]


def compiled(module: Module, name: str, *kinds: object, shaped: bool = True) -> object:
    jit = Jit(level=0, shaped=shaped)
    jit.add(module.text())
    made = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(jit.address(name))
    made.keep = jit  # type: ignore[attr-defined]
    return made


def test_the_example_runs() -> None:
    assert doctest.testmod(importlib.import_module("heron.codegen.llvm.text")).failed == 0


@pytest.mark.parametrize("shaped", [False, True])
def test_loops_leave_and_begin_again(shaped: bool) -> None:
    """The sum of odd numbers until one is 9."""
    module = Module()
    with module.function("i64 @odd_sum(ptr %numbers)") as f:
        n, total = f.variable("i64", 0), f.variable("i64", 0)
        with f.repeat() as each:
            number = f.load("i64", f.at(f.arguments[0], n.get(), "i64"))
            n.set(n.get() + 1)
            with f.when((number & 1).eq(0)):
                each.again()
            with f.when(number.eq(9)):
                each.leave()
            total.set(total.get() + number)
        f.ret(total.get())
    numbers = (ctypes.c_int64 * 6)(1, 2, 3, 5, 9, 7)
    assert compiled(module, "odd_sum", ctypes.c_void_p, shaped=shaped)(ctypes.addressof(numbers)) == 9  # type: ignore[operator]


def test_forks_and_fields() -> None:
    module = Module()
    with module.function("i64 @put(ptr %pair, i64 %value)") as f:
        place, value = f.arguments
        pair = f.view(place, Pair)
        small, large = f.fork(value.less(10))
        with small:
            pair["items", 1] = value * 2
        with large:
            pair["items", 2] = value
            pair["total"] = pair["total"] + value
        pair["count"] = pair["count"] + 1
        f.ret(pair["count"].cast("sext", "i64"))
    pair = Pair(count=4, total=1)
    put = compiled(module, "put", ctypes.c_void_p, ctypes.c_int64)
    assert put(ctypes.addressof(pair), 3) == 5 and put(ctypes.addressof(pair), 30) == 6  # type: ignore[operator]
    assert (pair.total, list(pair.items)) == (31, [0, 6, 30, 0])


def test_each_function_is_declared_once_and_not_where_it_is_defined() -> None:
    module = Module()
    for name in ("a", "b"):
        with module.function(f"internal i64 @{name}(i64 %n)") as f:
            f.call("void @free(ptr)", f.call("ptr @malloc(i64)", f.arguments[0]))
            f.ret(f.call("i64 @b(i64)", 1) if name == "a" else f.least(f.arguments[0], 3))
    text = module.text()
    assert text.count("declare ptr @malloc(i64)") == text.count("declare void @free(ptr)") == 1
    assert "declare i64 @b" not in text and "declare i64 @llvm" not in text
    Jit(level=0).compile(text)


def test_atomics_and_variadic_calls_name_their_types() -> None:
    f = Function()
    f.change("add", "i32", "%word", 1, "seq_cst")
    f.store("i64", 0, "%word", order="release")
    f.call("i64 @syscall(i64, ...)", 202, f.load("i32", "%word", order="acquire"), "ptr null")
    assert [line.strip().partition(" = ")[2] or line.strip() for line in f.lines] == [
        "atomicrmw add ptr %word, i32 1 seq_cst",
        "store atomic i64 0, ptr %word release, align 8",
        "load atomic i32, ptr %word acquire, align 4",
        "call i64 (i64, ...) @syscall(i64 202, i32 %v2, ptr null)",
    ]


def test_nothing_is_written_behind_a_return() -> None:
    f = Function()
    f.ret(0)
    with pytest.raises(AssertionError, match="nothing gets here"):
        f.line("ret i64 1")
