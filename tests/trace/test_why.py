"""Questions about a compile, answered from its saved trace alone."""

from __future__ import annotations

import pytest

import heron
from heron.buffers.report import to_json
from heron.errors import HeronError
from heron.hlo.text import parse
from heron.trace import Trace, why

PROGRAM = """
HloModule asked

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

body {
  p = (s32[], f32[64,64]{1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64,64]{1,0} get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  square = f32[64,64]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  small = f32[64,64]{1,0} tanh(square)
  ROOT t = (s32[], f32[64,64]{1,0}) tuple(next, small)
}

condition {
  p = (s32[], f32[64,64]{1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(9)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[64,64]{1,0} parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[64,64]{1,0}) tuple(zero, x)
  loop = (s32[], f32[64,64]{1,0}) while(init), condition=condition, body=body
  y = f32[64,64]{1,0} get-tuple-element(loop), index=1
  size = f32[64,64]{1,0} abs(y)
  z = f32[] constant(0)
  total = f32[64]{0} reduce(size, z), dimensions={1}, to_apply=sum
  root = f32[64]{0} sqrt(total)
  other = f32[64,64]{1,0} dot(y, size), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT out = (f32[64]{0}, f32[64,64]{1,0}) tuple(root, other)
}
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    made = heron.compile(parse(PROGRAM), target="sm_90")
    made.trace.program, made.trace.buffers = made.stage("scheduled"), to_json(made.assignment)
    path = tmp_path_factory.mktemp("why") / "x.trace"
    made.trace.save(path)
    return Trace.load(path)


def test_fused_names_the_kernel_or_the_reason_against(trace: Trace) -> None:
    assert "in one kernel: " in why.fused(trace, "size", "total").text
    apart = why.fused(trace, "size", "%other")
    assert apart.text == "size and other are in different kernels: 'other' (custom-call) needs it in memory"
    assert apart.decisions and not apart.decisions[-1].ok
    assert "never considered" in why.fused(trace, "small", "total").text


def test_copies_and_buffers_and_layouts(trace: Trace) -> None:
    copies = [i.name for i in parse(trace.program).instructions() if i.opcode == "copy"]
    assert copies and all(why.copy(trace, c).text.startswith(f"{c} copies ") for c in copies)
    told = [d.reason for d in trace.decisions if d.rule == "copy-insertion"]
    assert any("belongs to the caller" in reason for reason in told)
    place = why.buffer(trace, "loop")
    assert place.text.startswith("loop{") and "lies in" in place.text
    assert any("the same place holds" in line for line in place.lines)
    assert why.layout(trace, copies[0]).text.endswith("nothing asked for another layout than the default")


def test_order_shows_the_chain_or_the_choice(trace: Trace) -> None:
    chain = why.order(trace, "other", "loop")
    assert chain.text == "loop runs before other: it must" and chain.lines[-1].startswith("other reads ")
    assert "have no order of their own" in why.order(trace, "square", "other").text


def test_about_tells_all_and_where_it_went(trace: Trace) -> None:
    told = why.about(trace, "size")
    assert "part of the kernel" in told.text and len(told.decisions) >= 1
    assert told.to_json()["decisions"][0]["subject"] == "size"


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda t: why.about(t, "sizes"), "CLI050"),
        (lambda t: why.copy(t, "other"), "CLI050"),
        (lambda t: why.buffer(t, "nothing"), "CLI050"),
        (lambda t: why.order(t, "other", "nothing"), "CLI050"),
        (lambda t: why.layout(Trace("empty"), "x"), "CLI051"),
        (lambda t: why.buffer(Trace("empty"), "x"), "CLI051"),
    ],
)
def test_bad_names_and_traces(trace: Trace, ask, code: str) -> None:  # noqa: ANN001
    with pytest.raises(HeronError) as error:
        ask(trace)
    assert error.value.code == code


NUMBERS = """HloModule numbers

test {
  s = (s32[], s32[], f32[8]{0}) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  most = s32[] constant(5)
  ROOT more = pred[] compare(n, most), direction=LT
}

step {
  s = (s32[], s32[], f32[8]{0}) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  k = s32[] get-tuple-element(s), index=1
  x = f32[8]{0} get-tuple-element(s), index=2
  y = f32[8]{0} sine(x)
  one = s32[] constant(1)
  m = s32[] add(n, one)
  l = s32[] multiply(k, m)
  ROOT t = (s32[], s32[], f32[8]{0}) tuple(m, l, y)
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  zero = s32[] constant(0)
  three = s32[] constant(3)
  s = (s32[], s32[], f32[8]{0}) tuple(zero, three, x)
  ROOT w = (s32[], s32[], f32[8]{0}) while(s), condition=test, body=step
}
"""


def test_copies_of_numbers_in_kernels_have_reasons() -> None:
    made = heron.compile(parse(NUMBERS), target="sm_90")
    made.trace.program = made.stage("scheduled")
    copied = [i for i in parse(made.trace.program).instructions() if i.opcode == "copy"]
    numbers = [i for i in copied if i.operands[0].opcode == "constant" and i.parent.name.startswith("fused")]
    assert numbers
    for i in copied:
        assert why.copy(made.trace, i.name).decisions, i
    assert "a constant cannot be written" in why.copy(made.trace, numbers[0].name).text
