"""Loops keep their meaning when their state shrinks, constants sink into them and short ones dissolve."""

from __future__ import annotations

import numpy as np
import pytest

from heron.evaluator import Evaluator
from heron.evaluator.host import Host
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext

#: a counter, a value, a scale nobody changes, a value only it itself depends on, a value that is swapped with another
TEXT = """
HloModule m

body {
  s = (s32[], f32[2], f32[2], f32[2], f32[2], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  v = f32[2] get-tuple-element(s), index=1
  k = f32[2] get-tuple-element(s), index=2
  w = f32[2] multiply(v, k)
  u = f32[2] get-tuple-element(s), index=3
  unused = f32[2] add(u, w)
  a = f32[2] get-tuple-element(s), index=4
  b = f32[2] get-tuple-element(s), index=5
  ROOT t = (s32[], f32[2], f32[2], f32[2], f32[2], f32[2]) tuple(next, w, k, unused, b, a)
}

condition {
  s = (s32[], f32[2], f32[2], f32[2], f32[2], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(TRIPS)
  ROOT c = pred[] compare(n, limit), direction=LT
}

ENTRY main {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  zero = s32[] constant(0)
  half = f32[] constant(0.5)
  halves = f32[2] broadcast(half), dimensions={}
  init = (s32[], f32[2], f32[2], f32[2], f32[2], f32[2]) tuple(zero, x, halves, y, x, y)
  loop = (s32[], f32[2], f32[2], f32[2], f32[2], f32[2]) while(init), condition=condition, body=body
  w = f32[2] get-tuple-element(loop), index=1
  k = f32[2] get-tuple-element(loop), index=2
  b = f32[2] get-tuple-element(loop), index=INDEX
  ROOT r = (f32[2], f32[2], f32[2]) tuple(w, k, b)
}
"""


def simplified(text: str) -> Module:
    module = parse(text)
    verify(module)
    ctx = PassContext(Options(check="values"))
    for name in ("while-loop-constant-sinking", "while-loop-simplifier", "tuple-simplifier", "cse", "dce") * 2:
        ctx.run_pass(registry.get(name), module)
    verify(module)
    return module


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
@pytest.mark.parametrize("index", [1, 2, 3, 4, 5])
def test_state(trips: int, index: int) -> None:
    module = simplified(TEXT.replace("TRIPS", str(trips)).replace("INDEX", str(index)))
    loops = [i for i in module.instructions() if i.opcode == "while"]
    assert len(loops) == (trips > 1)
    if loops:
        # counter and value; 3 needs itself; 4 and 5 need each other; the scale is a constant inside
        assert len(loops[0].shape.tuple_shapes or ()) == {1: 2, 2: 2, 3: 3, 4: 4, 5: 4}[index]


def test_a_shared_body_is_not_changed_under_others() -> None:
    text = (
        TEXT.replace("TRIPS", "3")
        .replace("INDEX", "1")
        .replace(
            "ROOT r = (f32[2], f32[2], f32[2]) tuple(w, k, b)",
            "other = (s32[], f32[2], f32[2], f32[2], f32[2], f32[2]) while(init), condition=condition, body=body\n"
            "  u = f32[2] get-tuple-element(other), index=3\n"
            "  ROOT r = (f32[2], f32[2], f32[2]) tuple(w, k, u)",
        )
    )
    module = simplified(text)
    sizes = sorted(len(i.shape.tuple_shapes or ()) for i in module.instructions() if i.opcode == "while")
    assert sizes == [2, 3]


def test_a_state_used_as_a_whole_stays() -> None:
    text = (
        TEXT.replace("TRIPS", "3")
        .replace("INDEX", "1")
        .replace("ROOT r", "r")
        .replace("  loop = (s32[]", "  ROOT loop = (s32[]")
    )
    module = simplified(text)
    (loop,) = (i for i in module.instructions() if i.opcode == "while")
    assert len(loop.shape.tuple_shapes or ()) == 6


def test_a_loop_read_only_for_what_never_changes_goes() -> None:
    text = TEXT.replace("TRIPS", "3").replace("INDEX", "2")
    module = parse(text.replace("get-tuple-element(loop), index=1", "get-tuple-element(loop), index=2"))
    PassContext(Options(check="values")).run_pass(registry.get("while-loop-simplifier"), module)
    verify(module)
    assert not [i for i in module.instructions() if i.opcode == "while"]


COUNTERS = """
HloModule m

body {
  s = (s32[], u8[], s32[], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  small = u8[] get-tuple-element(s), index=1
  unit = u8[] constant(1)
  fewer = u8[] subtract(small, unit)
  far = s32[] get-tuple-element(s), index=2
  six = s32[] constant(-6)
  farther = s32[] add(far, six)
  v = f32[2] get-tuple-element(s), index=3
  limit = s32[] constant(LIMIT)
  test = pred[] compare(far, limit), direction=DIRECTION
  a = f32[] convert(far)
  b = f32[] convert(small)
  c = f32[] select(test, a, b)
  cs = f32[2] broadcast(c), dimensions={}
  w = f32[2] add(v, cs)
  ROOT t = (s32[], u8[], s32[], f32[2]) tuple(next, fewer, farther, w)
}

condition {
  s = (s32[], u8[], s32[], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  four = s32[] constant(4)
  ROOT c = pred[] compare(n, four), direction=LT
}

ENTRY main {
  x = f32[2] parameter(0)
  zero = s32[] constant(0)
  high = u8[] constant(2)
  start = s32[] constant(10)
  init = (s32[], u8[], s32[], f32[2]) tuple(zero, high, start, x)
  ROOT loop = (s32[], u8[], s32[], f32[2]) while(init), condition=condition, body=body
  READS
}
"""


@pytest.mark.parametrize(
    ("limit", "direction", "known"),
    [
        (-8, "GE", True),  # far is 10, 4, -2, -8
        (-8, "GT", None),
        (-9, "LE", False),
        (11, "LT", True),
        (11, "EQ", False),
        (4, "NE", None),
        (-100, "NE", True),
    ],
)
def test_counters(limit: int, direction: str, known: bool | None) -> None:
    """One counter in steps of another is computed from that; one of another type stays. Known tests are constants."""
    text = COUNTERS.replace("LIMIT", str(limit)).replace("DIRECTION", direction).replace("ROOT loop", "loop")
    reads = "\n".join(
        f"r{n} = {t} get-tuple-element(loop), index={n}" for n, t in enumerate(("s32[]", "u8[]", "s32[]"))
    )
    tail = "v = f32[2] get-tuple-element(loop), index=3\n ROOT r = (s32[], u8[], s32[], f32[2]) tuple(r0, r1, r2, v)"
    module = parse(text.replace("READS", f"{reads}\n{tail}"))
    PassContext(Options(check="values")).run_pass(registry.get("while-loop-simplifier"), module)
    (loop,) = (i for i in module.instructions() if i.opcode == "while")
    assert [str(s.bare) for s in loop.shape.tuple_shapes or ()] == ["s32[]", "u8[]", "f32[2]"]
    select = next(i for i in loop.body.instructions if i.opcode == "select")
    test = select.operands[0]
    assert (bool(test.attrs["literal"].array) if test.opcode == "constant" else None) is known


@pytest.mark.parametrize("effect", ["body", "condition"])
def test_a_loop_with_effects_stays(effect: str) -> None:
    """Nobody needs what it computes, but the host gets it. One that runs once may happen in place, where it can."""
    out = "k = token[] after-all() o = token[] outfeed(n, k), outfeed_shape=s32[]"
    text = f"""HloModule m
body {{ s = (s32[], f32[2]) parameter(0) n = s32[] get-tuple-element(s), index=0 one = s32[] constant(1)
  next = s32[] add(n, one) v = f32[2] get-tuple-element(s), index=1 w = f32[2] add(v, v)
  {out if effect == "body" else ""} ROOT t = (s32[], f32[2]) tuple(next, w) }}
condition {{ s = (s32[], f32[2]) parameter(0) n = s32[] get-tuple-element(s), index=0 limit = s32[] constant(3)
  {out if effect == "condition" else ""} ROOT c = pred[] compare(n, limit), direction=LT }}
ENTRY e {{ x = f32[2] parameter(0) zero = s32[] constant(0) init = (s32[], f32[2]) tuple(zero, x)
  loop = (s32[], f32[2]) while(init), condition=condition, body=body ROOT r = f32[2] get-tuple-element(loop), index=1 }}"""
    for trips, stays in ((3, True), (1, effect == "condition")):
        module = parse(text.replace("constant(3)", f"constant({trips})"))
        verify(module)
        sent = _sent(module)
        PassContext().run_pass(registry.get("while-loop-simplifier"), module)
        PassContext().run_pass(registry.get("dce"), module)
        verify(module)
        assert any(i.opcode == "while" for i in module.instructions()) == stays
        assert _sent(module) == sent and len(sent) >= trips


def _sent(module: Module) -> list[int]:
    host = Host()
    Evaluator(module, host=host).run(np.zeros(2, np.float32))
    return [int(np.ravel(value)[0]) for value in host.outfeed]
