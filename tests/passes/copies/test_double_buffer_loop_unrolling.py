"""Loops whose state goes to and fro between two buffers: how often rounds are done, and what is copied."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.passes.copies import double_buffer_loop_unrolling as unrolling
from heron.passes.copies.model.coalesce import Plan
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from tests.buffers.compiled import TWO_ROUNDS, assert_survives
from tests.passes.workloads import given

#: `known`: by the counter alone; else also by a value that is there when the program runs
TEXT = """HloModule m

body {
  p = (s32[], f32[6]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[6]{0} get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  half = f32[] constant(0.5)
  matrix = f32[6,6]{1,0} broadcast(half), dimensions={}
  n = f32[6]{0} dot(matrix, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[6]{0}) tuple(j, STATE)
}

cond {
  cp = (s32[], f32[6]{0}) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  cn = s32[] constant(TRIPS)
  lt = pred[] compare(ci, cn), direction=LT
  cv = f32[6]{0} get-tuple-element(cp), index=1
  first = f32[1]{0} slice(cv), slice={[0:1]}
  scalar = f32[] bitcast(first)
  most = f32[] constant(100)
  small = pred[] compare(scalar, most), direction=LT
  both = pred[] and(lt, small)
  ROOT again = pred[] bitcast(GOES)
}

ENTRY main {
  x = f32[6]{0} parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[6]{0}) tuple(zero, x)
  ROOT w = (s32[], f32[6]{0}) while(init), condition=cond, body=body
}
"""
INPUT = np.arange(6, dtype=np.float32)


#: a computation that nothing calls
UNUSED = "unused {\n  u = f32[] parameter(0)\n  ROOT v = f32[] negate(u)\n}\n\n"
#: a loop that rotates three values: two rounds in one copy as much
RING = """HloModule m

body {
  p = (s32[], f32[4]{0}, f32[4]{0}, f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = f32[4]{0} get-tuple-element(p), index=1
  b = f32[4]{0} get-tuple-element(p), index=2
  c = f32[4]{0} get-tuple-element(p), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[4]{0}, f32[4]{0}, f32[4]{0}) tuple(j, b, c, a)
}

cond {
  cp = (s32[], f32[4]{0}, f32[4]{0}, f32[4]{0}) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  cn = s32[] constant(6)
  ROOT lt = pred[] compare(ci, cn), direction=LT
}

ENTRY main {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  z = f32[4]{0} parameter(2)
  zero = s32[] constant(0)
  init = (s32[], f32[4]{0}, f32[4]{0}, f32[4]{0}) tuple(zero, x, y, z)
  ROOT w = (s32[], f32[4]{0}, f32[4]{0}, f32[4]{0}) while(init), condition=cond, body=body
}
"""


def compiled(trips: int, known: bool, state: str = "n", inputs: np.ndarray = INPUT) -> tuple[Module, PassContext]:
    text = TEXT.replace("TRIPS", str(trips)).replace("GOES", "lt" if known else "both").replace("STATE", state)
    if known:  # the counter's comparison is the condition itself
        text = text.replace("ROOT again = pred[] bitcast(lt)", "").replace("  lt = pred", "  ROOT lt = pred")
    module, _, ctx = assert_survives(text, TWO_ROUNDS, [inputs])
    return module, ctx


def copied(module: Module, name: str = "body") -> list[int]:
    """Bytes of each copy in the loop's body and the branches in it."""
    loop = next(i for i in module.instructions() if i.opcode == "while")
    inside = [loop.body, *(c for i in loop.body.instructions if i.opcode == "conditional" for c in i.called)]
    return sorted(i.shape.byte_size for c in inside for i in c.instructions if i.opcode == "copy")


@pytest.mark.parametrize("trips", [2, 3, 4, 7])
def test_known_counts(trips: int) -> None:
    module, _ = compiled(trips, known=True)
    assert copied(module) == []
    rounds = [i.parent for i in module.instructions() if i.opcode == "dot"]
    assert rounds.count(module.entry) == trips % 2 and len(rounds) == 2 + trips % 2


@pytest.mark.parametrize("trips", range(7))
@pytest.mark.parametrize("size", [0, 1, 20, 200])
def test_unknown_counts(trips: int, size: int) -> None:
    """It ends after an even or an odd number of rounds, by the counter or by the value."""
    module, _ = compiled(trips, known=False, inputs=INPUT + size)
    assert copied(module) == [24], "only where the loop ends after the first of two rounds"


@pytest.mark.parametrize("trips", [0, 1])
def test_too_few_rounds(trips: int) -> None:
    module, ctx = compiled(trips, known=True)
    assert copied(module) == [24]
    assert any(d.reason == f"runs {trips} times" for d in ctx.trace.decisions)


def test_what_is_updated_in_place_stays_one_round() -> None:
    module, ctx = compiled(4, known=True, state="v")
    assert copied(module) == [] and sum(i.opcode == "add" for i in module.instructions()) <= 2
    assert not any(d.rule == "double-buffer-loop-unrolling" for d in ctx.trace.decisions)


def test_a_ring_of_three_gains_nothing() -> None:
    """After two rounds the three parts of the state are still not where they were."""
    module, _, ctx = assert_survives(RING, TWO_ROUNDS)
    kept = [d for d in ctx.trace.decisions if d.rule == "double-buffer-loop-unrolling"]
    assert len(kept) == 1


@pytest.mark.parametrize("more", ["", UNUSED])
def test_a_change_is_reported_where_loops_stay(more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds are undone when they copy as much; computations that nothing used go all the same."""
    plain, planned = unrolling._copied_in, []

    def copied_in(plan: Plan) -> dict[Computation, int]:
        planned.append(plan)
        return plain(plan) if len(planned) == 1 else dict.fromkeys((f.at.parent for f, _ in plan.copied), 1 << 20)

    monkeypatch.setattr(unrolling, "_copied_in", copied_in)
    module, ctx = parse(RING.replace("body {", more + "body {", 1)), PassContext()
    before = str(module)
    changed = registry.get("double-buffer-loop-unrolling").run(module, ctx)
    assert len(planned) == 2 and not any(ctx.trace.decisions)
    assert changed == (str(module) != before)


@pytest.mark.parametrize("name", ["heat_while", "threefry"])
def test_what_was_unrolled_is_left_alone(name: str) -> None:
    module, _ = given(name)
    unroll = registry.get("double-buffer-loop-unrolling")
    assert PassContext().run_pass(unroll, module)
    assert not PassContext().run_pass(unroll, module)
