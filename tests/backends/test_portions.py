"""A CPU program in several modules, compiled by several threads: the same code and the same values."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest

import heron
from heron import HeronError, Options, targets
from heron.backends.compiler import Compilation
from heron.backends.cpu import machine, portions
from heron.backends.cpu.compilers import Compilers
from heron.codegen.llvm.jit import Jit
from heron.runtime.cpu import pool
from heron.runtime.cpu.executable import CpuExecutable
from heron.trace import Trace

PROGRAM = """HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

body {
  s = (s32[], f32[300,7], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[300,7] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  limit = s32[] get-tuple-element(s), index=2
  y = f32[300,7] tanh(x)
  ROOT t = (s32[], f32[300,7], s32[]) tuple(next, y, limit)
}

condition {
  s = (s32[], f32[300,7], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  limit = s32[] get-tuple-element(s), index=2
  ROOT p = pred[] compare(i, limit), direction=LT
}

ENTRY e {
  x = f32[300,7] parameter(0)
  big = f32[1000,1000] parameter(1)
  limit = s32[] parameter(2)
  zero = s32[] constant(0)
  nil = f32[] constant(0)
  start = (s32[], f32[300,7], s32[]) tuple(zero, x, limit)
  end = (s32[], f32[300,7], s32[]) while(start), condition=condition, body=body
  y = f32[300,7] get-tuple-element(end), index=1
  columns = f32[7] reduce(y, nil), dimensions={0}, to_apply=add
  z = f32[7,300] transpose(y), dimensions={1,0}
  e = f32[1000,1000] exponential(big)
  ROOT t = (f32[7], f32[7,300], f32[1000,1000]) tuple(columns, z, e)
}
"""


def build(**options: int) -> CpuExecutable:
    made = heron.compile(heron.parse(PROGRAM), "cpu", Options(**options))
    assert isinstance(made, CpuExecutable)
    return made


def run(made: CpuExecutable) -> list[bytes]:
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((300, 7), (1000, 1000))]
    return [part.tobytes() for part in made(*arrays, np.int32(3))]


@pytest.fixture
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "_PORTION", 1)


def objects(monkeypatch: pytest.MonkeyPatch, processors: int) -> tuple[dict[str, bytes], CpuExecutable]:
    """The object code of every module of the program, compiled on that many processors."""
    found: dict[str, bytes] = {}
    compile_ = Jit.compile

    def record(self: Jit, text: str, name: str = "module", **options: Any) -> object:
        made = compile_(self, text, name, **options)
        found.update({name: made.code} if name.startswith("m") else {})  # the threads' own code is compiled once
        return made

    with monkeypatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)), raising=False)
        patch.setattr(Jit, "compile", record)
        return found, build(threads=2)


@pytest.mark.usefixtures("small_portions")
def test_code_does_not_depend_on_the_number_of_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    (one, a), (many, b) = (objects(monkeypatch, n) for n in (1, 8))
    assert len(one) == 4 and one == many
    assert run(a) == run(b)


def test_values_do_not_depend_on_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(build(threads=2))
    monkeypatch.setattr(portions, "_PORTION", 1)
    assert run(build(threads=2)) == run(build(threads=1)) == whole


@pytest.mark.usefixtures("small_portions")
def test_what_is_in_which_module() -> None:
    """The loop's counter is in the program, which calls every other kernel as a whole, or hands it to the pool."""
    text = build(threads=2).stage("llvm")
    entries = set(re.findall(r"(?m)^define void @((?!heron)\S+?)\(", text))
    shared = set(re.findall(r"(?m)^  store ptr @(\S+?),", text))
    assert shared and shared < entries and "ptr @heron_range_" in text
    assert entries == set(re.findall(r"(?m)^declare void @((?!heron|llvm)\S+?)\(", text))
    called = re.findall(
        r"(?m)call void @((?!heron)\S+?)\([^)]*\)$", text[text.index("define internal void @heron_loop") :]
    )
    assert called and not entries.intersection(called)


def test_a_kernel_that_one_thread_does_has_its_bounds_in_its_text() -> None:
    """LLVM need not find them where it is called, nor has it a function more to compile for each kernel."""
    root = "ROOT y = f32[13,77] transpose(x), dimensions={1,0}"
    text = f"HloModule m\n\nENTRY e {{\n  x = f32[77,13] parameter(0)\n  {root}\n}}\n"
    first, *lines = heron.compile(heron.parse(text), "cpu").stage("llvm").split("\n")
    kernel = lines[: lines.index("}")]
    assert first.startswith("define internal void @wrapped_transpose(") and "i64" not in first
    assert any(line.endswith(", 13") and "icmp slt" in line for line in kernel)


def test_portions_are_of_about_one_size_the_largest_first() -> None:
    """Two kernels are two portions: none waits for the other while a processor is idle."""
    lines = [f"  x{n} = f32[{n + 2},999] parameter({n})" for n in range(9)]
    for n in range(9):  # kernels of 1 to 9 functions each
        lines += [f"  y{n}_{k} = f32[{n + 2},999] tanh({f'y{n}_{k - 1}' if k else f'x{n}'})" for k in range(n + 1)]
    for count in (2, 9):
        shapes = ", ".join(f"f32[{n + 2},999]" for n in range(count))
        roots = ", ".join(f"y{n}_{n}" for n in range(count))
        body = [line for line in lines if int(line.strip()[1]) < count]
        text = "\n".join(["HloModule m", "", "ENTRY e {", *body, f"  ROOT t = ({shapes}) tuple({roots})", "}", ""])
        compilation = Compilation(heron.parse(text), targets.get("cpu"), Options(), Trace())
        uses = compilation.lowered.kernels
        here, apart = portions.portions(uses)
        sizes = [sum(portions._size(use) for use in portion.uses.values()) for portion in apart]
        largest = max(map(portions._size, uses.values()))
        assert not here.uses and len(apart) >= 2 and sizes == sorted(sizes, reverse=True)
        assert max(sizes) - min(sizes) <= largest


def test_a_program_of_one_kernel_is_one_module() -> None:
    text = "HloModule m\n\nENTRY e {\n  x = f32[1000,1000] parameter(0)\n  ROOT y = f32[1000,1000] tanh(x)\n}\n"
    llvm = heron.compile(heron.parse(text), "cpu").stage("llvm")
    assert "declare void @tanh" not in llvm


@pytest.mark.usefixtures("small_portions")
@pytest.mark.parametrize("processors", [1, 4])
def test_an_error_in_a_portion_is_the_compiles(monkeypatch: pytest.MonkeyPatch, processors: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)), raising=False)
    right = machine.CpuMachine._portion
    monkeypatch.setattr(machine.CpuMachine, "_portion", lambda self, *given: right(self, *given) + "nonsense\n")
    with pytest.raises(HeronError) as caught:
        build()
    assert caught.value.code == "LLVM011"


def test_compilers_end_with_their_block(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    with Compilers(2) as compilers:
        names = {compilers.submit(lambda: threading.current_thread().name).result() for _ in range(4)}
        assert all(name.startswith("heron-compile") for name in names)
    assert not any(t.name.startswith("heron-compile") for t in threading.enumerate())


@pytest.mark.parametrize("count", [1, pool.MOST_POINTERS - 1, pool.MOST_POINTERS])
def test_kernels_of_many_arrays_are_shared_among_threads(count: int) -> None:
    """The pool has functions that call kernels of some pointers, the result's among them; others have their own."""
    shape = "f32[100000]"
    given = [f"  p{n} = {shape} parameter({n})" for n in range(count)]
    sums = [f"  s{n} = {shape} subtract({f's{n - 1}' if n else 'p0'}, p{n})" for n in range(count)]
    text = "\n".join(["HloModule m", "ENTRY e {", *given, *sums, f"  ROOT y = {shape} negate(s{count - 1})", "}"])
    arrays = [np.arange(100000, dtype=np.float32) % (7 + n) for n in range(count)]
    program = heron.compile(heron.parse(text), options=Options(threads=2))
    assert ("ptr @heron_range_" in program.stage("llvm")) == (count < pool.MOST_POINTERS)
    wanted = arrays[0]
    for array in arrays:
        wanted = wanted - array
    np.testing.assert_array_equal(program(*arrays), -wanted)
