"""What goes into a loop that only reads slices, and what must stay before it."""

from __future__ import annotations

import pytest

from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.passes.control_flow.while_loop_fusible_sinking import WhileLoopFusibleSinking
from heron.passes.framework.checks import difference, random_inputs
from heron.passes.framework.context import PassContext

TEXT = """HloModule m

body {
  s = (s32[], f32[8]{0}, f32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  v = f32[8]{0} get-tuple-element(s), index=1
  a = f32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(n, one)
  d = f32[1]{0} dynamic-slice(v, n), dynamic_slice_sizes={1}
  r = f32[] reshape(d)
  b = f32[] add(a, r)
  ROOT t = (s32[], f32[8]{0}, f32[]) tuple(next, v, b)
}

condition {
  s = (s32[], f32[8]{0}, f32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  eight = s32[] constant(8)
  ROOT c = pred[] compare(n, eight), direction=LT
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  z = f32[] parameter(1)
  zero = s32[] constant(0)
  two = f32[] constant(2)
  twos = f32[8]{0} broadcast(two), dimensions={}
  y = f32[8]{0} subtract(twos, x)
  w = f32[8]{0} sign(y)
  init = (s32[], f32[8]{0}, f32[]) tuple(zero, w, z)
  loop = (s32[], f32[8]{0}, f32[]) while(init), condition=condition, body=body
  ROOT r = f32[] get-tuple-element(loop), index=2
}
"""


def sunk(text: str) -> tuple[Module, bool]:
    source, module = parse(text), parse(text)
    changed = WhileLoopFusibleSinking().run(module, PassContext())
    inputs = random_inputs(source)
    for old, new in zip(evaluate(source, *inputs), evaluate(module, *inputs), strict=True):
        assert difference(old, new) is None
    return module, changed


def test_a_chain_goes_in() -> None:
    module, changed = sunk(TEXT)
    loop = next(i for i in module.entry.instructions if i.opcode == "while")
    assert changed and loop.operands[0].operands[1].opcode == "parameter"
    inside = [i.opcode for i in loop.body.post_order()]
    assert inside.index("dynamic-slice") < inside.index("subtract") < inside.index("sign") < inside.index("reshape")
    assert not any(i.opcode == "sign" for i in module.entry.instructions)


REFUSALS = {
    "too many rounds": ("constant(8)", "constant(9)"),
    "more of it is read": (
        "d = f32[1]{0} dynamic-slice(v, n), dynamic_slice_sizes={1}\n",
        "p = f32[2]{0} dynamic-slice(v, n), dynamic_slice_sizes={2}\n  d = f32[1]{0} slice(p), slice={[1:2]}\n",
    ),
    "read as a whole": (
        "r = f32[] reshape(d)",
        "k = f32[8]{0} negate(v)\n  e = f32[1]{0} slice(k), slice={[2:3]}\n  r = f32[] reshape(e)",
    ),
    "others take it": (
        "ROOT r = f32[] get-tuple-element(loop), index=2",
        "q = f32[] get-tuple-element(loop), index=2\n  ROOT r = (f32[], f32[8]{0}) tuple(q, w)",
    ),
    "the loop's own result is read": (
        "ROOT r = f32[] get-tuple-element(loop), index=2",
        "ROOT r = f32[8]{0} get-tuple-element(loop), index=1",
    ),
    "the whole state is read": (
        "ROOT r = f32[] get-tuple-element(loop), index=2",
        "ROOT r = (s32[], f32[8]{0}, f32[]) opt-barrier(loop)",
    ),
    "two arrays": ("sign(y)", "multiply(y, x)"),
    "changed in the loop": ("tuple(next, v, b)", "tuple(next, d8, b)"),
    "nothing elementwise": ("sign(y)", "reverse(y), dimensions={0}"),
    "dear, and one element at a time": ("sign(y)", "tanh(y)"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_stays(what: str) -> None:
    old, new = REFUSALS[what]
    text = TEXT.replace(old, new)
    assert text != TEXT
    if "d8" in new:
        text = text.replace("  r = f32[] reshape(d)", "  d8 = f32[8]{0} negate(v)\n  r = f32[] reshape(d)")
    assert not sunk(text)[1]
