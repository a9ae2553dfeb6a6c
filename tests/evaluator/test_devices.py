"""Several devices: collectives against XLA:CPU, and what XLA:CPU does not run against tables made by hand."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from heron.errors import HeronError
from heron.evaluator import evaluate_devices
from heron.hlo.text import parse
from tests import xla_devices

HEAD = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
most {
  a2 = f32[] parameter(0)
  b2 = f32[] parameter(1)
  ROOT c2 = f32[] maximum(a2, b2)
}
ENTRY e {
  p = f32[8,3] parameter(0)
  q = s32[8] parameter(1)
"""

#: for R replicas of P partitions: lines ``name = shape op``; each is an output of one module
REPLICAS = """
r0 = f32[8,3] all-reduce(p), replica_groups={}, to_apply=sum
r1 = f32[8,3] all-reduce(p), replica_groups={{0,1,2,3},{7,6,5,4}}, to_apply=most
r2 = f32[64,3] all-gather(p), replica_groups={}, dimensions={0}
r3 = f32[8,12] all-gather(p), replica_groups={{0,2,4,6},{7,5,3,1}}, dimensions={1}
r4 = f32[1,3] reduce-scatter(p), replica_groups={}, dimensions={0}, to_apply=sum
r5 = f32[2,3] reduce-scatter(p), replica_groups={{3,2,1,0},{4,5,6,7}}, dimensions={0}, to_apply=sum
r6 = f32[8,3] all-to-all(p), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
r7 = s32[8] all-to-all(q), replica_groups={{0,3},{1,2},{4,7},{6,5}}, dimensions={0}
r8 = f32[8,3] collective-permute(p), source_target_pairs={{0,1},{1,2},{3,0},{7,7}}
id = u32[] replica-id()
pid = u32[] partition-id()
"""
PARTITIONS = """
r0 = f32[8,3] all-reduce(p), replica_groups={}, channel_id=1, to_apply=sum
r1 = f32[8,3] all-reduce(p), replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true, channel_id=2, to_apply=most
r2 = f32[16,3] all-gather(p), replica_groups=[4,2]<=[8], use_global_device_ids=true, channel_id=3, dimensions={0}
r4 = f32[4,3] reduce-scatter(p), replica_groups={{1,0},{2,3},{5,4},{7,6}}, use_global_device_ids=true, channel_id=4, dimensions={0}, to_apply=sum
r6 = f32[8,3] all-to-all(p), replica_groups={{1,0},{2,3},{5,4},{7,6}}, channel_id=5, dimensions={0}
r8 = f32[8,3] collective-permute(p), source_target_pairs={{0,1},{1,0},{3,4}}, channel_id=6
id = u32[] replica-id()
pid = u32[] partition-id()
"""
#: two replicas of four partitions
BOTH = """
r0 = f32[8,3] all-reduce(p), replica_groups={}, to_apply=sum
r1 = f32[8,3] all-reduce(p), replica_groups={{0},{1}}, channel_id=2, to_apply=sum
r2 = f32[8,3] all-reduce(p), replica_groups={{1,0}}, channel_id=3, to_apply=sum
r3 = f32[8,3] all-reduce(p), replica_groups={{0,7},{1,6},{2,5},{3,4}}, use_global_device_ids=true, channel_id=4, to_apply=sum
r4 = f32[16,3] all-gather(p), replica_groups={{1,0}}, dimensions={0}
r5 = f32[64,3] all-gather(p), replica_groups={{1,0}}, channel_id=5, dimensions={0}
r6 = f32[32,3] all-gather(p), replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true, channel_id=6, dimensions={0}
r7 = f32[1,3] reduce-scatter(p), replica_groups={{1,0}}, channel_id=7, dimensions={0}, to_apply=sum
r8 = f32[8,3] all-to-all(p), replica_groups={{3,1},{0,2}}, channel_id=8, dimensions={0}
r9 = f32[8,3] all-to-all(p), replica_groups={{1,0}}, dimensions={0}
r10 = f32[8,3] collective-permute(p), source_target_pairs={{0,1},{1,0},{3,2}}, channel_id=9
r11 = f32[8,3] collective-permute(p), source_target_pairs={{0,1}}
id = u32[] replica-id()
pid = u32[] partition-id()
"""


def module_text(lines: str) -> str:
    rows = [line.strip() for line in lines.strip().splitlines()]
    names = [row.split(" = ")[0] for row in rows]
    shapes = [row.split(" = ")[1].split(" ")[0] for row in rows]
    root = f"  ROOT all = ({', '.join(shapes)}) tuple({', '.join(names)})\n}}\n"
    return HEAD + "".join(f"  {row}\n" for row in rows) + root


def inputs(count: int) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(0)
    return [
        [rng.integers(-50, 50, (8, 3)).astype(np.float32), rng.integers(0, 99, 8).astype(np.int32)]
        for _ in range(count)
    ]


def test_collectives_do_what_xla_does() -> None:
    if importlib.util.find_spec("jax") is None:
        pytest.skip("needs jax")
    cases: list[xla_devices.Case] = [
        (module_text(REPLICAS), inputs(8), 8, 1),
        (module_text(PARTITIONS), inputs(8), 1, 8),
        (module_text(BOTH), inputs(8), 2, 4),
    ]
    for (text, given, replicas, partitions), wanted in zip(cases, xla_devices.run(cases), strict=True):
        got = evaluate_devices(parse(text), given, replicas, partitions)
        for device, (g, w) in enumerate(zip(got, wanted, strict=True)):
            for n, (a, b) in enumerate(zip(g, w, strict=True)):
                np.testing.assert_array_equal(a, b, f"{replicas}x{partitions}, device {device}, output {n}")


def run(
    entry: str, replicas: int, partitions: int, *arrays: np.ndarray, functions: str = ""
) -> list[list[list[float]]]:
    """Outputs by device, as lists; array n's row d is device d's parameter n."""
    sums = HEAD[: HEAD.index("ENTRY")]
    module = parse(f"{sums}{functions}ENTRY e {{\n{entry}\n}}\n")
    rows = [[np.asarray(a[d]) for a in arrays] for d in range(replicas * partitions)]
    return [[o.tolist() for o in outputs] for outputs in evaluate_devices(module, rows, replicas, partitions)]


VECTORS = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            """p = f32[2] parameter(0)
            ROOT r = f32[2] collective-broadcast(p), replica_groups={{2,0}}""",
            [[[5, 6]], [[0, 0]], [[5, 6]], [[0, 0]]],
        ),
        (
            """p = f32[2] parameter(0)
            s = f32[2] all-reduce-start(p), replica_groups={{0,1},{2,3}}, to_apply=sum
            ROOT r = f32[2] all-reduce-done(s)""",
            [[[4, 6]], [[4, 6]], [[12, 14]], [[12, 14]]],
        ),
        (
            """p = f32[2] parameter(0)
            s = (f32[2], f32[4]) all-gather-start(p), replica_groups={{1,0},{2,3}}, dimensions={0}
            ROOT r = f32[4] all-gather-done(s)""",
            [[[3, 4, 1, 2]], [[3, 4, 1, 2]], [[5, 6, 7, 8]], [[5, 6, 7, 8]]],
        ),
        (
            """p = f32[2] parameter(0)
            s = (f32[2], f32[2], u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,3},{3,1}}
            ROOT r = f32[2] collective-permute-done(s)""",
            [[[0, 0]], [[7, 8]], [[0, 0]], [[1, 2]]],
        ),
        (
            """p = f32[2] parameter(0)
            s = ((f32[2]), f32[1], u32[]) reduce-scatter-start(p), replica_groups={{0,3},{1,2}}, dimensions={0}, to_apply=sum
            ROOT r = f32[1] reduce-scatter-done(s)""",
            [[[8]], [[8]], [[10]], [[10]]],
        ),
        (
            """p = f32[2] parameter(0)
            n = f32[2] negate(p)
            a = (f32[2], f32[2]) all-to-all(p, n), replica_groups={{0,1},{3,2}}
            x = f32[2] get-tuple-element(a), index=0
            y = f32[2] get-tuple-element(a), index=1
            ROOT r = (f32[2], f32[2]) tuple(x, y)""",
            [[[1, 2], [3, 4]], [[-1, -2], [-3, -4]], [[-7, -8], [-5, -6]], [[7, 8], [5, 6]]],
        ),
        (
            """p = f32[2] parameter(0)
            n = f32[2] negate(p)
            a = (f32[2], f32[2]) all-reduce(p, n), replica_groups={{0,3},{1,2}}, to_apply=most
            ROOT r = f32[2] get-tuple-element(a), index=1""",
            [[[-1, -2]], [[-3, -4]], [[-3, -4]], [[-1, -2]]],
        ),
        (
            """p = f32[2] parameter(0)
            ROOT r = f32[2] custom-call(p), custom_call_target="annotate_device_placement",
              custom_call_has_side_effect=true""",
            [[[1, 2]], [[3, 4]], [[5, 6]], [[7, 8]]],
        ),
    ],
    ids="broadcast all-reduce-start all-gather-start permute-start reduce-scatter-start tuples several marker".split(),
)
def test_on_four_replicas(entry: str, expected: list[list[list[float]]]) -> None:
    assert run(entry, 4, 1, VECTORS) == expected


RAGGED = """  x = f32[4] parameter(0)
  out = f32[6] parameter(1)
  starts = s32[2] parameter(2)
  sizes = s32[2] parameter(3)
  to = s32[2] parameter(4)
  got = s32[2] parameter(5)
  ROOT r = f32[6] ragged-all-to-all(x, out, starts, sizes, to, got), replica_groups={{0,1}}
"""


def test_ragged_all_to_all() -> None:
    x = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
    out = np.array([[-1] * 6, [-2] * 6], np.float32)
    starts, sizes = np.array([[0, 1], [0, 3]], np.int32), np.array([[1, 3], [3, 1]], np.int32)
    to, got = np.array([[0, 0], [2, 5]], np.int32), np.array([[1, 3], [3, 1]], np.int32)
    assert run(RAGGED, 2, 1, x, out, starts, sizes, to, got) == [[[1, -1, 5, 6, 7, -1]], [[2, 3, 4, -2, -2, 8]]]
    with pytest.raises(HeronError, match="EVAL008.*rows 4 to 7"):
        run(RAGGED, 2, 1, x, out, starts + 3, sizes, to, got)


IN_PLACE = """  a = f32[4] parameter(0)
  b = f32[4] negate(a)
  z = s32[] constant(0)
  two = s32[] constant(2)
  id = u32[] replica-id()
  me = s32[] convert(id)
  i = (s32[]) tuple(two)
  j = (s32[]) tuple(me)
"""
ROWS = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], np.float32)


def test_permuting_slices_of_buffers() -> None:
    one = "  ROOT r = f32[4] collective-permute(a, b, i, j), source_target_pairs={{0,1},{1,2}}, slice_sizes={{2}}"
    assert run(IN_PLACE + one, 3, 1, ROWS) == [[[-1, -2, -3, -4]], [[-5, 3, 4, -8]], [[-9, -10, 7, 8]]]
    several = """  ii = ((s32[]), (s32[])) tuple(i, j)
  jj = ((s32[]), (s32[])) tuple(j, i)
  s = (f32[4], f32[4], u32[]) collective-permute-start(a, b, ii, jj), source_target_pairs={{0,1},{2,1},{0,2},{1,2}}, slice_sizes={{1},{2}}
  ROOT d = f32[4] collective-permute-done(s)"""
    assert run(IN_PLACE + several, 3, 1, ROWS) == [[[-1, -2, -3, -4]], [[-5, 3, 11, -8]], [[-9, -10, 7, 2]]]
    both = """  ab = (f32[4], f32[4]) tuple(a, b)
  ii = ((s32[]), (s32[])) tuple(i, j)
  c = (f32[4], f32[4]) collective-permute(ab, ab, ii, ii), source_target_pairs={{2,0}}, slice_sizes={{1},{2}}
  ROOT r = f32[4] get-tuple-element(c), index=1"""
    assert run(IN_PLACE + both, 3, 1, ROWS) == [[[-11, -12, -3, -4]], [[-5, -6, -7, -8]], [[-9, -10, -11, -12]]]

    with pytest.raises(HeronError, match=r"EVAL008.*\[5\] do not fit"):
        run(IN_PLACE + one.replace("{{2}}", "{{5}}"), 3, 1, ROWS)
    with pytest.raises(HeronError, match="EVAL004.*has 1 slices"):
        run(IN_PLACE + one.replace("{1,2}", "{0,2}"), 3, 1, ROWS)


PIPELINE = """  p = f32[2] parameter(0)
  tok = token[] after-all()
  r = (f32[2], u32[], token[]) recv(tok), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"}
  s = (f32[2], u32[], token[]) send(p, tok), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"}
  sd = token[] send-done(s), channel_id=1
  rd = (f32[2], token[]) recv-done(r), channel_id=1
  ROOT v = f32[2] get-tuple-element(rd), index=0
"""


@pytest.mark.parametrize(("replicas", "partitions"), [(3, 1), (1, 3)])
def test_send_and_recv_between_devices(replicas: int, partitions: int) -> None:
    assert run(PIPELINE, replicas, partitions, VECTORS) == [[[0, 0]], [[1, 2]], [[3, 4]]]


RECEIVER = """receiver {
  t = token[] parameter(0)
  ROOT r = (f32[2], u32[], token[]) recv(t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"}
}
"""


def test_what_an_async_start_receives_is_there_when_it_is_done() -> None:
    text = """  p = f32[2] parameter(0)
  tok = token[] after-all()
  begun = ((token[]), (f32[2], u32[], token[]), u32[]) async-start(tok), calls=receiver
  s = (f32[2], u32[], token[]) send(p, tok), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"}
  sd = token[] send-done(s), channel_id=1
  came = (f32[2], u32[], token[]) async-done(begun), control-predecessors={s}
  ROOT v = f32[2] get-tuple-element(came), index=0
"""
    assert run(text, 1, 3, VECTORS, functions=RECEIVER) == [[[0, 0]], [[1, 2]], [[3, 4]]]


BRANCHES = """talk {
  t = token[] parameter(0)
  one = f32[] constant(7)
  s = (f32[], u32[], token[]) send(one, t), channel_id=4
  sd = token[] send-done(s), channel_id=4
  ROOT a = f32[] constant(0)
}
listen {
  t2 = token[] parameter(0)
  r = (f32[], u32[], token[]) recv(t2), channel_id=4
  rd = (f32[], token[]) recv-done(r), channel_id=4
  ROOT b = f32[] get-tuple-element(rd), index=0
}
meet {
  t3 = token[] parameter(0)
  two = f32[] constant(1)
  ROOT meeting = f32[] all-reduce(two), replica_groups={}, to_apply=sum
}
"""
BRANCH = """  n = u32[] replica-id()
  i = s32[] convert(n)
  tok = token[] after-all()
  ROOT c = f32[] conditional(i, tok, tok), branch_computations={A, B}
"""


def test_devices_may_go_different_ways() -> None:
    text = BRANCH.replace("A, B", "listen, talk")
    assert run(text, 2, 1, functions=BRANCHES) == [[7], [0]]
    with pytest.raises(HeronError, match="a second device sends on channel 4"):
        run(text, 3, 1, functions=BRANCHES)


def test_who_waits_for_ever_is_said() -> None:
    with pytest.raises(HeronError) as caught:
        run(BRANCH.replace("A, B", "meet, talk"), 2, 1, functions=BRANCHES)
    assert caught.value.code == "EVAL006" and "all-reduce" in str(caught.value.where)
    assert "replica 0, partition 0 waits at all-reduce 'meeting'" in str(caught.value)
    assert "1 ended without coming there" in str(caught.value)
    with pytest.raises(HeronError, match="the device waits forever"):
        run(BRANCH.replace("A, B", "listen, talk"), 1, 1, functions=BRANCHES)


@pytest.mark.parametrize(
    ("entry", "replicas", "code", "says"),
    [
        ("ROOT r = f32[2] all-reduce(p), replica_groups={{0,2}}, to_apply=sum", 2, "EVAL004", "names replica 2"),
        ("ROOT r = f32[2] all-reduce(p), replica_groups={{0}}, to_apply=sum", 2, "EVAL004", "is in no group"),
        ("ROOT r = f32[6] all-gather(p), replica_groups={}, dimensions={0}", 2, "EVAL004", r"this group gives \[4\]"),
        ("ROOT r = f32[2] collective-permute(p), source_target_pairs={{0,5}}", 2, "EVAL004", "names replica 5"),
        ("ROOT r = f32[2] all-to-all(p), replica_groups={}, dimensions={0}", 3, "EVAL004", "3 does not divide 2"),
        ("ROOT r = f32[2] all-reduce(p), replica_groups=[1,3]<=[2], to_apply=sum", 2, "HLO030", "does not divide"),
        ("ROOT r = f32[2] all-reduce(p), replica_groups={}, to_apply=sum", 5000, "EVAL005", "1 to 4096 devices"),
    ],
)
def test_what_cannot_be_is_refused(entry: str, replicas: int, code: str, says: str) -> None:
    vectors = np.ones((replicas, 2), np.float32)
    with pytest.raises(HeronError, match=says) as caught:
        run("  p = f32[2] parameter(0)\n  " + entry, replicas, 1, vectors)
    assert caught.value.code == code


def test_the_module_says_how_many_devices() -> None:
    text = """HloModule m, replica_count=2, num_partitions=3
ENTRY e {
  r = u32[] replica-id()
  p = u32[] partition-id()
  ROOT t = (u32[], u32[]) tuple(r, p)
}
"""
    found = [[int(o) for o in outputs] for outputs in evaluate_devices(parse(text), [[]])]
    assert found == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    with pytest.raises(HeronError, match="inputs for 2 devices"):
        evaluate_devices(parse(text), [[], []])
