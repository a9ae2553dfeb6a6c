"""The host's side: infeed, outfeed, transfers over channels; and scan against XLA:CPU."""

from __future__ import annotations

import numpy as np
import pytest

from heron.errors import HeronError
from heron.evaluator import Evaluator, evaluate, flatten
from heron.evaluator.host import Host
from heron.hlo.text import parse
from tests import xla_cpu

FEEDS = """HloModule m
ENTRY e {
  tok = token[] after-all()
  in = ((f32[2], s32[]), token[]) infeed(tok)
  data = (f32[2], s32[]) get-tuple-element(in), index=0
  t1 = token[] get-tuple-element(in), index=1
  out = token[] outfeed(data, t1), outfeed_shape=(f32[2], s32[])
  again = (f32[2], token[]) infeed(out)
  x = f32[2] get-tuple-element(again), index=0
  s = (f32[2], u32[], token[]) send(x, out), channel_id=3, is_host_transfer=true
  sd = token[] send-done(s), channel_id=3, is_host_transfer=true
  r = (f32[2], u32[], token[]) recv(sd), channel_id=4, is_host_transfer=true
  rd = (f32[2], token[]) recv-done(r), channel_id=4, is_host_transfer=true
  y = f32[2] get-tuple-element(rd), index=0
  ROOT z = f32[2] add(x, y)
}
"""
A, B, C = (np.array(v, np.float32) for v in ([1, 2], [3, 4], [10, 20]))


def test_feeds_and_transfers() -> None:
    host = Host(infeed=[[A, np.array(5, np.int32)], B], received={4: [C]})
    (z,) = flatten(Evaluator(parse(FEEDS), host=host).run())
    assert z.tolist() == [13, 24]
    assert [v.tolist() for v in host.outfeed[0]] == [[1, 2], 5] and host.sent[3][0].tolist() == [3, 4]


@pytest.mark.parametrize(
    ("host", "code", "says"),
    [
        (Host(), "EVAL007", "the infeed has nothing to give"),
        (Host(infeed=[A]), "EVAL002", "takes 2 inputs, the host gives 1"),
        (Host(infeed=[[A, A]]), "EVAL003", r"from the host is float32\[2\]"),
        (Host(infeed=[[A, np.array(5, np.int32)], B]), "EVAL007", "channel 4 from the host has nothing"),
    ],
)
def test_a_host_that_gives_the_wrong_thing(host: Host, code: str, says: str) -> None:
    with pytest.raises(HeronError, match=says) as caught:
        Evaluator(parse(FEEDS), host=host).run()
    assert caught.value.code == code and caught.value.where


SCANS = """HloModule m
row {
  x = f32[2] parameter(0)
  c = f32[2] parameter(1)
  s = f32[2] add(x, c)
  d = f32[2] multiply(s, s)
  ROOT t = (f32[2], f32[2]) tuple(d, s)
}
column {
  x2 = f32[4] parameter(0)
  n2 = s32[4] parameter(1)
  c2 = f32[4] parameter(2)
  k2 = s32[] parameter(3)
  one = s32[] constant(1)
  k3 = s32[] add(k2, one)
  w2 = f32[4] subtract(x2, c2)
  kb = s32[4] broadcast(k2), dimensions={}
  m2 = s32[4] multiply(n2, kb)
  ROOT t2 = (s32[4], f32[4], s32[]) tuple(m2, w2, k3)
}
last {
  x4 = f32[4] parameter(0)
  c4 = f32[4] parameter(1)
  ROOT m4 = (f32[4]) tuple(x4)
}
ENTRY e {
  p = f32[4,2] parameter(0)
  n = s32[4,2] parameter(1)
  z = f32[2] parameter(2)
  z4 = f32[4] parameter(3)
  k = s32[] parameter(4)
  a = (f32[4,2], f32[2]) scan(p, z), dimensions={0}, num_carries=1, is_associative=false, to_apply=row
  b = (f32[4,2], f32[2]) scan(p, z), dimensions={0}, num_carries=1, is_reverse=true, is_associative=true, to_apply=row
  c = (s32[4,2], f32[4], s32[]) scan(p, n, z4, k), dimensions={1}, num_carries=2, is_reverse=true, is_associative=false, to_apply=column
  d = (f32[4]) scan(p, z4), dimensions={1}, num_carries=1, is_associative=false, to_apply=last
  a0 = f32[4,2] get-tuple-element(a), index=0
  a1 = f32[2] get-tuple-element(a), index=1
  b0 = f32[4,2] get-tuple-element(b), index=0
  b1 = f32[2] get-tuple-element(b), index=1
  c0 = s32[4,2] get-tuple-element(c), index=0
  c1 = f32[4] get-tuple-element(c), index=1
  c2x = s32[] get-tuple-element(c), index=2
  d0 = f32[4] get-tuple-element(d), index=0
  ROOT r = (f32[4,2], f32[2], f32[4,2], f32[2], s32[4,2], /*index=5*/f32[4], s32[], f32[4]) tuple(a0, a1, b0, b1, c0, c1, c2x, d0)
}
"""


def test_scan_agrees_with_xla() -> None:
    rng = np.random.default_rng(1)
    p, n = rng.integers(-9, 9, (4, 2)).astype(np.float32), rng.integers(-9, 9, (4, 2)).astype(np.int32)
    inputs = p, n, np.ones(2, np.float32), np.arange(4, dtype=np.float32), np.array(3, np.int32)
    got = evaluate(parse(SCANS), *inputs)
    for g, w in zip(got, xla_cpu.run(SCANS, *inputs), strict=True):
        np.testing.assert_array_equal(g, w)
