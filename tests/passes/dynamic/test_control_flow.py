"""Loops within branches, bodies that several share, devices: sizes and checks go along."""

from __future__ import annotations

import numpy as np
import pytest

from heron.compiling import compile
from heron.errors import HeronError
from heron.evaluator import Evaluator, evaluate_devices
from heron.hlo.text import parse
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from tests.passes.dynamic.test_dynamic_padder import assert_same, flat, meant, padded

#: branches drop an element `k` times, or keep the whole; the loop's body is that of another loop too
NESTED = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
more { s = (s32[], f32[<=8]) parameter(0) k = s32[] get-tuple-element(s), index=0
  z = s32[] constant(0) ROOT c = pred[] compare(k, z), direction=GT }
drop { s = (s32[], f32[<=8]) parameter(0) k = s32[] get-tuple-element(s), index=0
  x = f32[<=8] get-tuple-element(s), index=1 one = s32[] constant(1) kk = s32[] subtract(k, one)
  n = s32[] get-dimension-size(x), dimensions={0} nn = s32[] subtract(n, one)
  y = f32[<=8] set-dimension-size(x, nn), dimensions={0} w = f32[<=8] add(y, y)
  ROOT t = (s32[], f32[<=8]) tuple(kk, w) }
dropping { s = (s32[], f32[<=8]) parameter(0)
  l = (s32[], f32[<=8]) while(s), condition=more, body=drop ROOT r = f32[<=8] get-tuple-element(l), index=1 }
keeping { s = (s32[], f32[<=8]) parameter(0) ROOT r = f32[<=8] get-tuple-element(s), index=1 }
ENTRY e { x = f32[<=8] parameter(0) k = s32[] parameter(1) p = pred[] parameter(2)
  s = (s32[], f32[<=8]) tuple(k, x)
  d = f32[<=8] conditional(p, s, s), true_computation=dropping, false_computation=keeping
  again = s32[] constant(1) s2 = (s32[], f32[<=8]) tuple(again, x)
  l = (s32[], f32[<=8]) while(s2), condition=more, body=drop e = f32[<=8] get-tuple-element(l), index=1
  both = f32[<=16] concatenate(d, e), dimensions={0} zero = f32[] constant(0)
  sum = f32[] reduce(both, zero), dimensions={0}, to_apply=add
  n = s32[] get-dimension-size(both), dimensions={0}
  ROOT t = (f32[<=16], f32[], s32[]) tuple(both, sum, n) }"""


@pytest.mark.parametrize("target", ["evaluated", "cpu", "sim:sm_90"])
def test_loops_in_branches(target: str) -> None:
    module = parse(NESTED)
    run = Evaluator(padded(module)).run if target == "evaluated" else compile(module, target)
    fitted = 0
    for n, k, p in ((8, 3, True), (8, 3, False), (2, 2, True), (2, 3, True), (0, 0, False), (1, 0, True)):
        inputs = np.arange(n, dtype=np.float32), np.array(k, np.int32), np.array(p)
        wanted = meant(module, inputs)
        if wanted is None:
            with pytest.raises(HeronError, match="RUN004") as caught:
                run(*inputs)
            assert caught.value.why.startswith("0 is more than -1 (%nn")
            continue
        fitted += 1
        for old, new in zip(wanted, flat(run(*inputs)), strict=True):
            np.testing.assert_allclose(new, old, rtol=1e-6, strict=True)
    assert fitted == 4


def test_state_that_is_not_dynamic_stays_as_it_is() -> None:
    module = parse(NESTED.replace("concatenate(d, e)", "concatenate(e, e)"))
    for n in (1, 8):
        assert_same(module, np.arange(n, dtype=np.float32), np.array(1, np.int32), np.array(False))


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_what_is_begun_has_sizes_of_the_run(target: str) -> None:
    module = parse("""HloModule m
within { p = f32[<=4] parameter(0)
  q = f32[<=4] negate(p)
  ROOT r = f32[<=8] concatenate(p, q), dimensions={0} }
begun { p = f32[<=4] parameter(0)
  ROOT q = f32[<=8] call(p), to_apply=within }
ENTRY e { x = f32[4] parameter(0)
  n = s32[] parameter(1)
  d = f32[<=4] set-dimension-size(x, n), dimensions={0}
  a = ((f32[<=4]), f32[<=8], u32[]) async-start(d), calls=begun
  u = ((f32[<=4]), f32[<=8], u32[]) async-update(a)
  k = f32[<=4] exponential(d)
  r = f32[<=8] async-done(u)
  ROOT t = (f32[<=8], f32[<=4]) tuple(r, k) }""")
    run = compile(module, target)
    for n in (0, 3, 4):
        inputs = np.arange(4, dtype=np.float32), np.array(n, np.int32)
        for old, new in zip(flat(Evaluator(module).run(*inputs)), flat(run(*inputs)), strict=True):
            np.testing.assert_allclose(new, old, rtol=1e-6, strict=True)


def test_devices_keep_their_sizes_where_they_exchange_nothing() -> None:
    module = parse("""HloModule m, replica_count=2
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[<=4,2] parameter(0)
  g = f32[<=4,4] all-gather(x), dimensions={1}, replica_groups={{0,1}}
  s = f32[<=4,1] reduce-scatter(x), dimensions={1}, replica_groups={{0,1}}, to_apply=add
  t = f32[<=4,2] all-to-all(x), dimensions={1}, replica_groups={{0,1}}
  r = (f32[<=4,2], f32[<=4,4]) all-reduce(x, g), replica_groups={{0,1}}, to_apply=add
  y = f32[<=4,2] get-tuple-element(r), index=0
  ROOT all = (f32[<=4,4], f32[<=4,1], f32[<=4,2], f32[<=4,2]) tuple(g, s, t, y) }""")
    fixed = module.clone()
    assert PassContext().run_pass(registry.get("dynamic-padder"), fixed)
    for n in (0, 3, 4):
        inputs = [[np.arange(2 * n, dtype=np.float32).reshape(n, 2) + k] for k in range(2)]
        for old, new in zip(evaluate_devices(module, inputs), evaluate_devices(fixed, inputs), strict=True):
            for a, b in zip(old, new, strict=True):
                np.testing.assert_array_equal(b, a, strict=True)


def test_what_devices_exchange_cannot_be_dynamic() -> None:
    module = parse("""HloModule m, replica_count=2
ENTRY e { x = f32[<=4,2] parameter(0)
  ROOT g = f32[<=8,2] all-gather(x), dimensions={0}, replica_groups={{0,1}} }""")
    with pytest.raises(HeronError, match="PASS020") as caught:
        PassContext().run_pass(registry.get("dynamic-padder"), module)
    assert caught.value.why == "the dimension along which devices exchange it is dynamic"
