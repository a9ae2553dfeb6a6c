"""Loops that step from element to element of arrays: what they go on with stays in registers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import heron
from heron.compiling import compile
from heron.options import Options

# x[i] = max(x[i], x[i / 2]) and what was there goes on, until i is 0
CLIMB = """HloModule m

body {
  s = (s32[], s32[], s32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  best = s32[] get-tuple-element(s), index=1
  x = s32[64] get-tuple-element(s), index=2
  one = s32[] constant(1)
  up = s32[] shift-right-arithmetic(i, one)
  a = s32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}
  b = s32[1] dynamic-slice(x, up), dynamic_slice_sizes={1}
  m = s32[1] maximum(a, b)
  y = s32[64] dynamic-update-slice(x, m, i)
  v = s32[] reshape(m)
  next = s32[] maximum(best, v)
  ROOT t = (s32[], s32[], s32[64]) tuple(up, next, y)
}

condition {
  s = (s32[], s32[], s32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  zero = s32[] constant(0)
  ROOT c = pred[] compare(i, zero), direction=GT
}

ENTRY e {
  i = s32[] parameter(0)
  x = s32[64] parameter(1)
  least = s32[] constant(-99)
  s = (s32[], s32[], s32[64]) tuple(i, least, x)
  ROOT w = (s32[], s32[], s32[64]) while(s), condition=condition, body=body
}
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_of_one_element_are_no_calls(threads: int) -> None:
    exe = compile(heron.parse(CLIMB), "cpu", Options(threads=threads))
    loop = exe.stage("asm").partition("heron_loop1:")[2].partition("func_end")[0]
    assert loop and not re.search(r"^\s+(call|bl)", loop, re.MULTILINE)


@pytest.mark.parametrize("start", [0, 1, 37, 63, 80, -3])
def test_values(start: int) -> None:
    module = heron.parse(CLIMB)
    x = np.random.default_rng(start + 9).integers(-50, 50, 64, np.int32)
    exe = compile(module, "cpu")
    for _ in range(2):
        for found, wanted in zip(exe(np.int32(start), x), heron.evaluate(module, np.int32(start), x), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_arrays_that_a_loop_only_reads_are_not_written() -> None:
    """They may lie in memory that nobody can write."""
    text = CLIMB.replace("y = s32[64] dynamic-update-slice(x, m, i)", "y = s32[64] copy(x)")
    module = heron.parse(text)
    x = np.arange(64, dtype=np.int32)
    x.flags.writeable = False
    for found, wanted in zip(
        compile(module, "cpu")(np.int32(40), x), heron.evaluate(module, np.int32(40), x), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_functions_of_loops_take_memory_that_does_not_overlap() -> None:
    (line,) = re.findall(r"define internal void @heron_loop1\(.*", compile(heron.parse(CLIMB), "cpu").stage("llvm"))
    sizes = [int(n) for n in re.findall(r"ptr noalias writable dereferenceable\((\d+)\) %buffer\d+", line)]
    assert len(sizes) == line.count("%buffer") - 1 and max(sizes) >= 256


def test_a_loop_without_an_end_is_called() -> None:
    """LLVM leaves out a call of what changes nothing and never returns, and the program's own return behind it."""
    text = """HloModule m
body { s = (s64[]) parameter(0) n = s64[] get-tuple-element(s), index=0 one = s64[] constant(1)
  m = s64[] add(n, one) ROOT t = (s64[]) tuple(m) }
always { s = (s64[]) parameter(0) ROOT p = pred[] constant(true) }
ENTRY e { n = s64[] parameter(0) t = (s64[]) tuple(n) ROOT w = (s64[]) while(t), condition=always, body=body }"""
    program = compile(heron.parse(text), "cpu").stage("asm").partition("heron_program:")[2]
    assert re.search(r"^\s+(call|bl|b|jmp)\w*\s+heron_loop", program, re.MULTILINE)
