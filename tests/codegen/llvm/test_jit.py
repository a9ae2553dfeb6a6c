"""The JIT: external symbols, the object cache, errors with places, code that stays alive."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from pathlib import Path

import pytest

import heron
from heron.codegen.llvm.code_cache import CodeCache
from heron.codegen.llvm.jit import Jit, host, public_functions
from heron.codegen.llvm.optimize import binding
from heron.errors import HeronError
from heron.options import Options

DOUBLE = "define i32 @twice(i32 %x) {\n  %y = add i32 %x, %x\n  ret i32 %y\n}\n"


def call(address: int, *values: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int32] * len(values))(address)(*values)


def test_compile_link_call() -> None:
    jit = Jit(level=1)
    compiled = jit.add(DOUBLE)
    assert call(jit.address("twice"), 21) == 42
    assert compiled.timing.emit_s > 0 and not compiled.cached


def test_code_lives_as_long_as_its_jit() -> None:
    jit = Jit(level=1)
    jit.add(DOUBLE)
    gc.collect()
    assert call(jit.address("twice"), 4) == 8


def test_external_symbols_by_address() -> None:
    callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(lambda x: x + 100)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    jit = Jit(level=1, symbols={"outside": address})
    jit.add("declare i32 @outside(i32)\ndefine i32 @f(i32 %x) {\n  %y = call i32 @outside(i32 %x)\n  ret i32 %y\n}\n")
    assert call(jit.address("f"), 1) == 101


def test_objects_come_from_the_cache(tmp_path: Path) -> None:
    cache = CodeCache(tmp_path)
    Jit(level=1, cache=cache).add(DOUBLE)
    again = Jit(level=1, cache=cache)
    assert again.add(DOUBLE).cached and call(again.address("twice"), 3) == 6
    assert not Jit(level=2, cache=cache).compile(DOUBLE).cached
    assert not again.compile(DOUBLE, level=0).cached and again.compile(DOUBLE, level=0).cached


def test_text_views() -> None:
    jit = Jit()
    assert "shl i32" in jit.optimized(DOUBLE)
    assert "twice:" in jit.asm(DOUBLE)
    assert public_functions(DOUBLE + "define internal void @hidden() {\n  ret void\n}\n") == ["twice"]
    assert host().width in (128, 256, 512)


def test_errors() -> None:
    jit = Jit(level=1)
    with pytest.raises(HeronError) as caught:
        jit.add(DOUBLE.replace("add i32", "ad i32"))
    assert caught.value.code == "LLVM011" and "line 2: %y = ad i32 %x, %x" in str(caught.value)
    with pytest.raises(HeronError) as caught:
        jit.add(
            "declare void @no_such_function()\ndefine void @g() {\n  call void @no_such_function()\n  ret void\n}\n"
        )
    assert caught.value.code == "LLVM012" and "no_such_function" in str(caught.value)
    with pytest.raises(HeronError) as caught:
        jit.address("nothing")
    assert caught.value.code == "LLVM013"


def test_shaped_text_has_its_slots_in_registers_and_is_else_as_written() -> None:
    text = """define i64 @f(i64 %n) {
  %slot = alloca i64
  store i64 %n, ptr %slot
  %a = load i64, ptr %slot
  %b = add i64 %a, 1
  store i64 %b, ptr %slot
  %c = load i64, ptr %slot
  ret i64 %c
}"""
    plain, shaped = Jit(level=1), Jit(level=1, shaped=True)
    code = shaped.add(text, "f")
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.addresses["f"])(41) == 42
    assert plain.key(text) != shaped.key(text)


_MANY = """
from heron.codegen.llvm.jit import Jit

TEXT = '''define float @f(float %x) {
  %y = fadd float %x, SUMMAND
  ret float %y
}'''

def compile(count):
    # kilobytes of this process behind so many compiles
    for n in range(count):
        for jit in (Jit(), Jit(shaped=True)):
            jit.compile(TEXT.replace("SUMMAND", f"{n}.0"))
    with open("/proc/self/statm") as counts:
        return int(counts.read().split()[1]) * 4

before = compile(50)
print(compile(300) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc says how much memory a process has")
def test_a_compile_leaves_little_memory_behind() -> None:
    done = subprocess.run([sys.executable, "-c", _MANY], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 8000  # pass managers that stay are 16,000 and more


CHECKSUM = """HloModule m
f { a = f8e4m3[] parameter(0)  b = f8e4m3[] parameter(1)  ROOT c = f8e4m3[] atan2(a, b) }
ENTRY e {
  x = f8e4m3[256,65] parameter(0)
  y = f8e4m3[256,65] exponential(x)
  zero = f8e4m3[] constant(0)
  ROOT r = f8e4m3[65] reduce(y, zero), dimensions={0}, to_apply=f
}"""


@pytest.mark.parametrize(("cpu", "has"), [("znver3", True), ("znver2", False), ("haswell", False)])
def test_gathers_that_llvm_would_not_use(monkeypatch: pytest.MonkeyPatch, cpu: str, has: bool) -> None:
    monkeypatch.setattr(binding(), "get_host_cpu_name", lambda: cpu)
    assert host.__wrapped__().gathers.endswith("+fast-gather") == has


def test_no_loop_is_searched_for_a_checksum() -> None:
    """LLVM followed each path through the selects of this one, and did not end."""
    heron.compile(heron.parse(CHECKSUM), options=Options(cache=False, compile_timeout=60)).examine()
