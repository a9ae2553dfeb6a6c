"""Sizes that do not fit: found by the compile, by the program when it runs, or by nobody."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heron.compiling import compile
from heron.errors import HeronError
from heron.evaluator import Evaluator
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext

ADD = """HloModule m
ENTRY e { x = f32[<=8] parameter(0) y = f32[<=8] parameter(1) ROOT r = f32[<=8] add(x, y) }"""
SET = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[8] parameter(0) n = s32[] parameter(1) z = f32[] constant(0)
  d = f32[<=8] set-dimension-size(x, n), dimensions={0}
  ROOT r = f32[] reduce(d, z), dimensions={0}, to_apply=add }"""
#: the loop's third step sets a size of 9 when it starts with 6
LOOP = """HloModule m
more { s = (s32[], s32[], f32[8]) parameter(0) k = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3) ROOT c = pred[] compare(k, n), direction=LT }
step { s = (s32[], s32[], f32[8]) parameter(0) k = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1 x = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1) kk = s32[] add(k, one) nn = s32[] add(n, one)
  d = f32[<=8] set-dimension-size(x, nn), dimensions={0} e = f32[<=8] negate(d)
  eight = s32[] constant(8) w = f32[8] set-dimension-size(e, eight), dimensions={0}
  ROOT t = (s32[], s32[], f32[8]) tuple(kk, nn, w) }
ENTRY e { x = f32[8] parameter(0) n = s32[] parameter(1) k = s32[] constant(0)
  s = (s32[], s32[], f32[8]) tuple(k, n, x) l = (s32[], s32[], f32[8]) while(s), condition=more, body=step
  ROOT r = f32[8] get-tuple-element(l), index=2 }"""
BRANCH = """HloModule m
ok { x = f32[<=8] parameter(0) ROOT a = f32[<=8] negate(x) }
cut { x = f32[<=8] parameter(0) n = s32[] constant(9) m = s32[] get-dimension-size(x), dimensions={0}
  k = s32[] add(m, n) y = f32[8] constant({1,2,3,4,5,6,7,8}) ROOT d = f32[<=8] set-dimension-size(y, k), dimensions={0} }
ENTRY e { x = f32[<=8] parameter(0) p = pred[] parameter(1)
  ROOT r = f32[<=8] conditional(p, x, x), true_computation=ok, false_computation=cut }"""


def f32(*dims: int) -> np.ndarray:
    return np.ones(dims, np.float32)


def s32(n: int) -> np.ndarray:
    return np.array(n, np.int32)


def padded(text: str, **options: Any) -> Module:
    module = parse(text)
    PassContext(Options(**options)).run_pass(registry.get("dynamic-padder"), module)
    verify(module)
    return module


FAILING = [
    (ADD, (f32(3), f32(4)), "operands must have one size", "3 (%x[0]) is not 4 (%y[0])", "%r = f32[<=8]"),
    (SET, (f32(8), s32(9)), "must not exceed its bound", "9 (%n) is more than 8", "%d = f32[<=8]"),
    (SET, (f32(8), s32(-1)), "cannot be negative", "0 is more than -1 (%n)", "%d = f32[<=8]"),
    (LOOP, (f32(8), s32(6)), "must not exceed its bound", "9 (%nn) is more than 8", "%d = f32[<=8]"),
    (BRANCH, (f32(2), np.array(False)), "must not exceed", "11 (%k) is more than 8", "%d = f32[<=8]"),
]
FITTING = [
    (ADD, (f32(3), f32(3))),
    (SET, (f32(8), s32(8))),
    (SET, (f32(8), s32(0))),
    (LOOP, (f32(8), s32(5))),
    (BRANCH, (f32(2), np.array(True))),
]


@pytest.mark.parametrize(("text", "inputs", "what", "why", "where"), FAILING)
def test_the_program_looks(text: str, inputs: Any, what: str, why: str, where: str) -> None:
    with pytest.raises(HeronError):  # what it means
        Evaluator(parse(text)).run(*inputs)
    with pytest.raises(HeronError, match=what) as caught:
        Evaluator(padded(text)).run(*inputs)
    assert (caught.value.code, caught.value.why) == ("RUN004", why)
    assert where in str(caught.value.where)
    padded(text, shape_checks="ignore")


@pytest.mark.parametrize(("text", "inputs"), FITTING)
def test_sizes_that_fit_pass(text: str, inputs: Any) -> None:
    for mode in ("runtime", "ignore"):
        found = Evaluator(padded(text, shape_checks=mode)).run(*inputs)
        np.testing.assert_array_equal(found, Evaluator(parse(text)).run(*inputs), strict=True)


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_compiled_programs_look(target: str) -> None:
    for text in (ADD, SET, LOOP, BRANCH):
        executable = compile(parse(text), target)
        for inputs in (inputs for other, inputs in FITTING if other is text):
            np.testing.assert_array_equal(executable(*inputs), Evaluator(parse(text)).run(*inputs), strict=True)
        for inputs, why in ((inputs, why) for other, inputs, _, why, _ in FAILING if other is text):
            with pytest.raises(HeronError, match="RUN004") as caught:
                executable(*inputs)
            assert caught.value.why == why


@pytest.mark.parametrize("text", [ADD, SET, LOOP, BRANCH])
def test_the_compile_looks(text: str) -> None:
    with pytest.raises(HeronError, match="PASS021") as caught:
        padded(text, shape_checks="compile-time")
    assert caught.value.where and caught.value.hint


def test_what_follows_from_the_program_needs_no_look() -> None:
    text = """HloModule m
ENTRY e { x = f32[<=8,4] parameter(0) n = s32[] get-dimension-size(x), dimensions={0} y = f32[8,4] parameter(1)
  d = f32[<=8,4] set-dimension-size(y, n), dimensions={0} a = f32[<=8,4] add(x, d)
  v = f32[<=32] reshape(a) ROOT r = f32[<=8,4] reshape(v) }"""
    module = padded(text, shape_checks="compile-time")
    assert "CheckSizes" not in str(padded(text)) and "CheckSizes" not in str(module)
    for n in (0, 5, 8):
        inputs = f32(n, 4), f32(8, 4)
        np.testing.assert_array_equal(Evaluator(module).run(*inputs), Evaluator(parse(text)).run(*inputs), strict=True)
