"""Calls inlined or kept, equal computations joined, code dead across calls removed."""

from __future__ import annotations

import pytest

from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext


def run(text: str, name: str, **options: object) -> Module:
    module = parse(text)
    verify(module)
    PassContext(Options(check="values")).run_pass(registry.get(name, **options), module)
    verify(module)
    assert not registry.get(name, **options).run(module, PassContext())
    return module


def count(module: Module, opcode: str) -> int:
    return sum(i.opcode == opcode for i in module.instructions())


CALLS = """HloModule m
once { p = f32[2] parameter(0) ROOT e = f32[2] exponential(p) }
twice { p = f32[2] parameter(0) ROOT e = f32[2] negate(p) }
norm { p = f32[2] parameter(0) ROOT e = f32[2] tanh(p) }
ENTRY e { x = f32[2] parameter(0) a = f32[2] call(x), to_apply=once b = f32[2] call(a), to_apply=twice
  c = f32[2] call(b), to_apply=norm, is_composite=true, frontend_attributes={composite.name="my.norm"}
  ROOT d = f32[2] call(c), to_apply=twice }"""


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, 0),
        ({"single_call_site": True}, 2),
        ({"composites": ("my.norm",)}, 1),
        ({"composites": ("other",)}, 0),
        ({"single_call_site": True, "composites": ("my.norm",)}, 3),
    ],
)
def test_which_calls_are_inlined(options: dict[str, object], left: int) -> None:
    assert count(run(CALLS, "call-inliner", **options), "call") == left


# -- equal computations ----------------------------------------------------------------------------------------------
EQUAL = """HloModule m
add1 { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
add2 { x = f32[] parameter(0) y = f32[] parameter(1) ROOT t = f32[] add(x, y) }
sum1 { p = f32[8] parameter(0) z = f32[] constant(0) ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add1 }
sum2 { p = f32[8] parameter(0) z = f32[] constant(0) ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add2 }
sum3 { p = f32[8] parameter(0) z = f32[] constant(1) ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add2 }
body1 { p = f32[8] parameter(0) ROOT n = f32[8] negate(p) }
body2 { p = f32[8] parameter(0) ROOT n = f32[8] negate(p)SHARDING }
ENTRY e { x = f32[8] parameter(0) a = f32[] call(x), to_apply=sum1 b = f32[] call(x), to_apply=sum2
  c = f32[] call(x), to_apply=sum3 f = f32[8] fusion(x), kind=kLoop, calls=body1
  g = f32[8] KIND(f), CALLS=body2 h = f32[8] call(f), to_apply=body2
  ROOT r = (f32[], f32[], f32[], f32[8], f32[8]) tuple(a, b, c, g, h) }"""


@pytest.mark.parametrize("name", ["computation-deduplicator", "subcomputation-unification"])
def test_equal_computations_become_one(name: str) -> None:
    """Those they call first; a different constant is a difference, and a fusion's body stays its own."""
    module = run(EQUAL.replace("SHARDING", "").replace("KIND", "call").replace("CALLS", "to_apply"), name)
    assert sorted(c.name for c in module.computations) == ["add1", "body1", "body2", "e", "sum1", "sum3"]


# -- dead code -------------------------------------------------------------------------------------------------------
DEAD = """HloModule m
step { v = f32[2] parameter(0) w = f32[2] parameter(1) a = f32[2] add(v, w) b = f32[2] multiply(w, w)
  ROOT t = (f32[2], f32[2]) tuple(a, b) }
body { s = (s32[], (f32[2], f32[2])) parameter(0) n = s32[] get-tuple-element(s), index=0 one = s32[] constant(1)
  next = s32[] add(n, one) p = (f32[2], f32[2]) get-tuple-element(s), index=1
  v = f32[2] get-tuple-element(p), index=0 w = f32[2] get-tuple-element(p), index=1
  c = (f32[2], f32[2]) call(v, w), to_apply=step
  ROOT t = (s32[], (f32[2], f32[2])) tuple(next, c) }
until { s = (s32[], (f32[2], f32[2])) parameter(0) n = s32[] get-tuple-element(s), index=0 k = s32[] constant(3)
  ROOT c = pred[] compare(n, k), direction=LT }
ENTRY e { x = f32[2] parameter(0) y = f32[2] parameter(1) zero = s32[] constant(0) p = (f32[2], f32[2]) tuple(x, y)
  init = (s32[], (f32[2], f32[2])) tuple(zero, p)
  loop = (s32[], (f32[2], f32[2])) while(init), condition=until, body=body
  pair = (f32[2], f32[2]) get-tuple-element(loop), index=1
  n = s32[] get-tuple-element(loop), index=0
  used = f32[2] get-tuple-element(pair), index=INDEX
  ROOT r = WHAT }"""


def test_what_goes_round_for_nothing_is_only_handed_on() -> None:
    """Nobody needs the pair, though a call computes it from itself in each round."""
    module = run(DEAD.replace("INDEX", "0").replace("WHAT", "s32[] negate(n)"), "module-dce")
    assert count(module, "call") == 0 and count(module, "while") == 1


@pytest.mark.parametrize("index", [0, 1])
def test_what_is_needed_in_part_stays(index: int) -> None:
    module = run(DEAD.replace("INDEX", str(index)).replace("WHAT", "f32[2] negate(used)"), "module-dce")
    assert count(module, "call") == 1


def test_a_loop_nobody_needs_still_ends() -> None:
    """It stays as part of a tuple no part of which is read, so its counter must go on counting."""
    text = DEAD.replace("INDEX", "0").replace("n = s32[] get-tuple-element(loop), index=0\n", "")
    text = text.replace(
        "ROOT r = WHAT",
        "both = ((s32[], (f32[2], f32[2])), f32[2]) tuple(loop, x) ROOT r = f32[2] get-tuple-element(both), index=1",
    )
    module = run(text, "module-dce")
    assert count(module, "add") >= 1


def test_a_call_for_a_parameter_nobody_reads() -> None:
    """It is gone before its turn comes, where passes left users before what they use."""
    module = parse("""HloModule m
first { p = f32[2] parameter(0) ROOT e = f32[2] exponential(p) }
second { p = f32[2] parameter(0) q = f32[2] parameter(1) ROOT n = f32[2] negate(q) }
ENTRY e { x = f32[2] parameter(0) a = f32[2] call(x), to_apply=first ROOT c = f32[2] call(a, x), to_apply=second }""")
    module.entry.reorder(module.entry.instructions[::-1])
    assert registry.get("call-inliner").run(module, PassContext())
    assert sorted(i.opcode for i in module.entry.instructions) == ["negate", "parameter"]


def test_the_last_call_takes_the_body_and_others_copy_it() -> None:
    """Also where a copied body calls something: that has one more caller then."""
    module = parse("""HloModule m
deep { p = f32[2] parameter(0) ROOT t = f32[2] tanh(p) }
kept { p = f32[2] parameter(0) ROOT s = f32[2] sine(p) }
body { p = f32[2] parameter(0) k = f32[2] call(p), to_apply=kept, frontend_attributes={inlineable="false"}
  d = f32[2] call(k), to_apply=deep ROOT e = f32[2] exponential(d) }
same { p = f32[2] parameter(0) ROOT q = f32[2] copy(p) }
ENTRY e { x = f32[2] parameter(0) a = f32[2] call(x), to_apply=body b = f32[2] call(a), to_apply=body
  c = f32[2] call(b), to_apply=kept ROOT r = f32[2] call(c), to_apply=same }""")
    bodies = {c.name: list(c.instructions) for c in module.computations}
    ctx = PassContext(Options(check="values"))
    ctx.run_pass(registry.get("call-inliner"), module)
    verify(module)
    assert [c.name for c in module.computations] == ["kept", "e"]
    inside = module.entry.instructions
    assert bodies["body"][-1] in inside and bodies["deep"][-1] in inside and bodies["same"][-1] in inside
    opcodes = sorted(i.opcode for i in inside)
    assert opcodes == ["call", "call", "copy", "exponential", "exponential", "parameter", "sine", "tanh", "tanh"]


def test_a_body_that_is_its_parameter_moves_to_the_argument() -> None:
    module = parse("""HloModule m
same { p = f32[2] parameter(0) ROOT q = f32[2] parameter(1) }
ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(x) ROOT r = f32[2] call(x, y), to_apply=same }""")
    assert registry.get("call-inliner").run(module, PassContext())
    verify(module)
    assert module.entry.root.opcode == "negate" and len(module.computations) == 1
