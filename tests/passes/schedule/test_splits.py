"""Kernels with several outputs, divided where a program holds most."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.buffers import assign
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.context import PassContext
from heron.passes.schedule.memory_scheduler import MemoryScheduler
from tests.buffers.compiled import run_passes

SIZE = 4096
X = np.random.default_rng(3).normal(size=SIZE).astype(np.float32)
#: a sum made of it takes long, and little memory
Y = np.ones(1 << 15, np.float32)


def program(body: str, rest: str, outputs: int = 2, result: str = "f32[]") -> str:
    """Outputs g0, g1, … of a kernel of `x`, and what makes `r` of them."""
    wide = f"f32[{SIZE}]"
    parts = ", ".join([wide] * outputs)
    taken = "\n".join(f"  g{n} = {wide} get-tuple-element(f), index={n}" for n in range(outputs))
    return f"""HloModule m
plus {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
long {{
  q = f32[32768] parameter(0)
  h = f32[32768] tanh(q)
  k = f32[32768] tanh(h)
  none = f32[] constant(0)
  ROOT j = f32[] reduce(k, none), dimensions={{0}}, to_apply=plus
}}
kernel {{
  p = {wide} parameter(0)
{body}
}}
ENTRY e {{
  x = {wide} parameter(0)
  zero = f32[] constant(0)
  y = f32[32768] parameter(1)
  d = f32[] fusion(y), kind=kInput, calls=long
  f = ({parts}) fusion(x), kind=kLoop, calls=kernel
{taken}
{rest}
  ROOT whole = ({result}, f32[]) tuple(r, d)
}}"""


TWO = """  n = f32[4096] negate(p)
  s = f32[4096] multiply(p, p)
  ROOT t = (f32[4096], f32[4096]) tuple(n, s)"""
#: each output takes part in a sum of its own
APART = """  v0 = f32[4096] reverse(g0), dimensions={0}
  r0 = f32[] reduce(v0, zero), dimensions={0}, to_apply=plus
  v1 = f32[4096] reverse(g1), dimensions={0}
  r1 = f32[] reduce(v1, zero), dimensions={0}, to_apply=plus
  r = f32[] add(r0, r1)"""


def temp(text: str, splits: float) -> tuple[int, Module, PassContext]:
    module, ctx = parse(text), PassContext()
    run_passes(module, ["copy-insertion"])
    ctx.run_pass(MemoryScheduler(splits=splits), module)
    verify(module)
    return assign(module).temp_bytes, module, ctx


def kernels(module: Module) -> int:
    return sum(i.opcode == "fusion" for c in module.computations for i in c.instructions)


def test_outputs_that_are_needed_one_after_the_other_are_computed_so() -> None:
    text = program(TWO, APART)
    whole, _, _ = temp(text, 0.0)
    less, module, ctx = temp(text, 0.5)
    assert less <= whole - 3 * SIZE and kernels(module) == 3
    assert np.array_equal(evaluate(module, X, Y)[0], evaluate(parse(text), X, Y)[0])
    assert any("two kernels hold" in d.reason and d.ok for d in ctx.trace.decisions)


def test_a_kernel_reads_what_the_other_one_made() -> None:
    body = """  n = f32[4096] exponential(p)
  s = f32[4096] multiply(n, n)
  ROOT t = (f32[4096], f32[4096]) tuple(n, s)"""
    text = program(body, APART)
    less, module, _ = temp(text, 0.5)
    assert less <= temp(text, 0.0)[0] - 3 * SIZE and kernels(module) == 3
    assert sum(i.opcode == "exponential" for c in module.computations for i in c.instructions) == 1
    assert np.array_equal(evaluate(module, X, Y)[0], evaluate(parse(text), X, Y)[0])


def test_what_one_op_gives_is_not_divided() -> None:
    """A reduction of two arrays at once is one part: neither result can be computed later."""
    text = f"""HloModule m
pair {{
  a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  s = f32[] add(a, c) m = f32[] maximum(b, d) ROOT t = (f32[], f32[]) tuple(s, m)
}}
kernel {{
  p = f32[{SIZE},3] parameter(0)
  n = f32[{SIZE},3] negate(p)
  none = f32[] constant(0)
  ROOT t = (f32[{SIZE}], f32[{SIZE}]) reduce(p, n, none, none), dimensions={{1}}, to_apply=pair
}}
ENTRY e {{
  x = f32[{SIZE},3] parameter(0)
  f = (f32[{SIZE}], f32[{SIZE}]) fusion(x), kind=kInput, calls=kernel
  g0 = f32[{SIZE}] get-tuple-element(f), index=0
  g1 = f32[{SIZE}] get-tuple-element(f), index=1
  r0 = f32[{SIZE}] reverse(g0), dimensions={{0}}
  r1 = f32[{SIZE}] reverse(g1), dimensions={{0}}
  ROOT whole = (f32[{SIZE}], f32[{SIZE}]) tuple(r0, r1)
}}"""
    _, module, _ = temp(text, 0.5)
    assert kernels(module) == 1


TWICE = """  e = f32[4096] tanh(p)
  n = f32[4096] negate(e)
  s = f32[4096] multiply(e, e)
  ROOT t = (f32[4096], f32[4096]) tuple(n, s)"""
#: both outputs are read by one kernel
TOGETHER = """  v = f32[4096] reverse(g0), dimensions={0}
  w = f32[4096] reverse(g1), dimensions={0}
  u = f32[4096] multiply(v, w)
  v0 = f32[4096] multiply(u, g0)
  r = f32[] reduce(v0, zero), dimensions={0}, to_apply=plus"""


@pytest.mark.parametrize(
    ("body", "rest", "splits", "refused"),
    [(TWO, APART, 1e-9, 1), (TWICE, APART, 0.5, 0), (TWO, TOGETHER, 0.5, 0)],
    ids=["much slower", "computed twice", "no gain"],
)
def test_kernels_stay_whole_where_that_costs_or_saves_nothing(
    body: str, rest: str, splits: float, refused: int
) -> None:
    text = program(body, rest)
    least, module, ctx = temp(text, splits)
    assert kernels(module) == 2 and least == temp(text, 0.0)[0]
    assert sum("two kernels would take" in d.reason for d in ctx.trace.decisions if not d.ok) == refused
    assert np.array_equal(evaluate(module, X, Y)[0], evaluate(parse(text), X, Y)[0])


def test_loops_keep_their_state_in_place() -> None:
    """A kernel reads state of a loop that the loop writes over: the order of its parts would be open."""
    text = """HloModule m
plus { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
kernel {
  p = f32[4096] parameter(0)
  n = f32[4096] negate(p)
  s = f32[4096] multiply(p, p)
  ROOT t = (f32[4096], f32[4096]) tuple(n, s)
}
body {
  p = (s32[], f32[4096], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4096] get-tuple-element(p), index=1
  sum = f32[] get-tuple-element(p), index=2
  zero = f32[] constant(0)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  f = (f32[4096], f32[4096]) fusion(x), kind=kLoop, calls=kernel
  g0 = f32[4096] get-tuple-element(f), index=0
  g1 = f32[4096] get-tuple-element(f), index=1
  v0 = f32[4096] reverse(g0), dimensions={0}
  v1 = f32[4096] reverse(g1), dimensions={0}
  r1 = f32[] reduce(v1, zero), dimensions={0}, to_apply=plus
  more = f32[] add(sum, r1)
  ROOT t = (s32[], f32[4096], f32[]) tuple(next, v0, more)
}
condition {
  p = (s32[], f32[4096], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(i, three), direction=LT
}
ENTRY e {
  x = f32[4096] parameter(0)
  zero = f32[] constant(0)
  none = s32[] constant(0)
  init = (s32[], f32[4096], f32[]) tuple(none, x, zero)
  w = (s32[], f32[4096], f32[]) while(init), condition=condition, body=body
  ROOT r = f32[] get-tuple-element(w), index=2
}"""
    _, module, _ = temp(text, 0.5)
    assert kernels(module) == 1
    assert np.array_equal(evaluate(module, X), evaluate(parse(text), X))


OPS = ["negate(a)", "abs(a)", "multiply(a, b)", "add(a, b)", "tanh(a)", "subtract(a, b)", "maximum(a, b)"]


@st.composite
def kernels_with_readers(draw: st.DrawFn) -> str:
    count = draw(st.integers(2, 8))
    names, body = ["p"], []
    for n in range(count):
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        op = draw(st.sampled_from(OPS)).replace("a)", f"{a})").replace("(a", f"({a}").replace("b)", f"{b})")
        body.append(f"  i{n} = f32[4096] {op}")
        names.append(f"i{n}")
    read = {name for line in body for name in names if f"({name}" in line or f" {name})" in line}
    ends = [name for name in names[1:] if name not in read]
    outputs = list(
        dict.fromkeys(ends + draw(st.lists(st.sampled_from(names[1:]), min_size=2, max_size=4, unique=True)))
    )
    body.append(f"  ROOT t = ({', '.join(['f32[4096]'] * len(outputs))}) tuple({', '.join(outputs)})")
    alive, rest, sums = [f"g{n}" for n in range(len(outputs))], [], []
    for n in range(draw(st.integers(1, 8))):
        a, b = draw(st.sampled_from(alive)), draw(st.sampled_from(alive))
        op = draw(st.sampled_from([f"reverse({a}), dimensions={{0}}", f"add({a}, {b})", f"multiply({a}, {b})"]))
        rest.append(f"  v{n} = f32[4096] {op}")
        alive.append(f"v{n}")
    for n, a in enumerate(draw(st.lists(st.sampled_from(alive), min_size=1, max_size=6, unique=True))):
        rest.append(f"  r{n} = f32[] reduce({a}, zero), dimensions={{0}}, to_apply=plus")
        sums.append(f"r{n}")
    sized = f"({', '.join(['f32[]'] * len(sums))})"
    rest.append(f"  r = {sized} tuple({', '.join(sums)})")
    return program("\n".join(body), "\n".join(rest), len(outputs), sized)


@settings(max_examples=50, deadline=None)
@given(kernels_with_readers())
def test_divided_kernels_compute_the_same_in_no_more_memory(text: str) -> None:
    before, whole, _ = temp(text, 0.0)
    after, module, _ = temp(text, 10.0)
    assert after <= before
    for a, b in zip(evaluate(module, X, Y), evaluate(whole, X, Y), strict=True):
        assert np.array_equal(a, b)
