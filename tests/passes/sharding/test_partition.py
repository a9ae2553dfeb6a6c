"""Programs partitioned by hand-written shardings, run on the evaluator's devices against the global program."""

import numpy as np
import pytest

from heron.errors import HeronError
from heron.hlo.text import parse
from tests.passes.sharding.devices import agree, inputs_of, partition, run, sharded

HEAD = "HloModule m, num_partitions=8\nENTRY main {\n"

PROGRAMS = {
    "dot": """
      x = f32[10,4] parameter(0) @[{'x'}, {'y'}]@
      w = f32[4,6] parameter(1) @[{'y'}, {}]@
      d = f32[10,6] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} @[{'x'}, {'y'}]@
      ROOT r = f32[10,6] copy(d) @[{'y'}, {}]@""",
    "contracted": """
      x = f32[10,7] parameter(0) @[{'x'}, {'y'}]@
      w = f32[7,6] parameter(1) @[{'y'}, {}]@
      ROOT d = f32[10,6] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} @[{'x'}, {}]@""",
    "iota": """
      a = s64[11] iota(), iota_dimension=0 @[{'y'}]@
      b = u8[3,300] iota(), iota_dimension=1 @[{}, {'y'}]@
      ROOT r = (s64[11], u8[3,300]) tuple(a, b), sharding={{mesh['x'=2,'y'=4], [{'y'}]}, {mesh['x'=2,'y'=4], [{}, {}]}}""",
    "constant": """
      a = s32[5] constant({1,2,3,4,5}) @[{'x'}]@
      ROOT r = s32[5] add(a, a) @[{'x'}]@""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name):
    module = parse(sharded("mesh['x'=2,'y'=4]\n" + HEAD + PROGRAMS[name] + "\n}"))
    agree(module, inputs_of(module))


REDUCE = """HloModule m, num_partitions=8
f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] {op}(a, b)
}}
ENTRY main {{
  x = f32[7,5] parameter(0) @[{{'x'}}, {{'y'}}]@
  i = f32[] parameter(1) @[]@
  s = f32[7] reduce(x, i), dimensions={{1}}, to_apply=f @[{{'x'}}]@
  ROOT t = f32[] reduce(s, i), dimensions={{0}}, to_apply=f @[]@
}}"""


@pytest.mark.parametrize("op", ["add", "multiply", "maximum"])
def test_reduce(op):
    module = parse(sharded("mesh['x'=2,'y'=4]\n" + REDUCE.format(op=op)))
    agree(module, inputs_of(module))


WHILE = """HloModule m, num_partitions=8
body {
  t = (s32[], f32[9,4]) parameter(0), sharding={{mesh['x'=2,'y'=4], []}, {mesh['x'=2,'y'=4], [{'x'}, {}]}}
  n = s32[] get-tuple-element(t), index=0 @[]@
  x = f32[9,4] get-tuple-element(t), index=1 @[{'x'}, {}]@
  one = s32[] constant(1) @[]@
  m = s32[] add(n, one) @[]@
  y = f32[9,4] add(x, x) @[{'x'}, {'y'}]@
  ROOT r = (s32[], f32[9,4]) tuple(m, y)
}
cond {
  t = (s32[], f32[9,4]) parameter(0), sharding={{mesh['x'=2,'y'=4], []}, {mesh['x'=2,'y'=4], [{'x'}, {}]}}
  n = s32[] get-tuple-element(t), index=0 @[]@
  end = s32[] constant(3) @[]@
  ROOT r = pred[] compare(n, end), direction=LT @[]@
}
ENTRY main {
  x = f32[9,4] parameter(0) @[{'y'}, {}]@
  z = s32[] constant(0) @[]@
  t = (s32[], f32[9,4]) tuple(z, x)
  w = (s32[], f32[9,4]) while(t), condition=cond, body=body, sharding={{mesh['x'=2,'y'=4], []}, {mesh['x'=2,'y'=4], [{'x'}, {}]}}
  ROOT r = f32[9,4] get-tuple-element(w), index=1 @[{}, {'x'}]@
}"""

CONDITIONAL = """HloModule m, num_partitions=8
a {
  x = f32[9,4] parameter(0) @[{'x'}, {}]@
  ROOT y = f32[9,4] add(x, x) @[{'x'}, {}]@
}
b {
  x = f32[9,4] parameter(0) @[{}, {'y'}]@
  ROOT y = f32[9,4] negate(x) @[{}, {'y'}]@
}
ENTRY main {
  x = f32[9,4] parameter(0) @[{'y'}, {}]@
  n = s32[] parameter(1) @[]@
  ROOT r = f32[9,4] conditional(n, x, x), branch_computations={a, b} @[{'x', 'y'}, {}]@
}"""

MANUAL = """HloModule m, num_partitions=8
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  x = f32[8,6] parameter(0) @[{'y'}, {}]@
  c = f32[8,6] copy(x) @[{'x', 'y'}, {}]@
  i = f32[4,6] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={mesh['x'=2,'y'=4], [{'y'}, {}], manual={'x'}}
  j = f32[4,6] add(i, i), sharding={mesh['x'=2,'y'=4], [{'y'}, {}], manual={'x'}}
  s = f32[4,6] all-reduce(j), to_apply=add, channel_id=3, replica_groups={{0,4},{1,5},{2,6},{3,7}}, use_global_device_ids=true,
    sharding={mesh['x'=2,'y'=4], [{'y'}, {}], manual={'x'}}
  ROOT r = f32[8,6] custom-call(s), custom_call_target="SPMDShardToFullShape" @[{'x'}, {'y'}]@
}"""


def test_loop():
    module = parse(sharded("mesh['x'=2,'y'=4]\n" + WHILE))
    agree(module, inputs_of(module))


@pytest.mark.parametrize("branch", [0, 1])
def test_branches(branch):
    module = parse(sharded("mesh['x'=2,'y'=4]\n" + CONDITIONAL))
    agree(module, [*inputs_of(module)[:1], np.asarray(branch, np.int32)])


def test_manual():
    module = parse(sharded("mesh['x'=2,'y'=4]\n" + MANUAL))
    (x,) = inputs_of(module)
    (got,) = run(module, [x])
    np.testing.assert_array_equal(got, np.concatenate([2 * (x[:4] + x[4:])] * 2))


ARGMAX = """HloModule m, num_partitions=8
f {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  more = pred[] compare(a, b), direction=GT
  same = pred[] compare(a, b), direction=EQ
  first = pred[] compare(i, j), direction=LT
  tie = pred[] and(same, first)
  left = pred[] or(more, tie)
  v = f32[] select(left, a, b)
  n = s32[] select(left, i, j)
  ROOT r = (f32[], s32[]) tuple(v, n)
}
ENTRY main {
  x = f32[3,13] parameter(0) @[{'x'}, {'y'}]@
  i = s32[3,13] iota(), iota_dimension=1 @[{'x'}, {'y'}]@
  low = f32[] constant(-inf)
  most = s32[] constant(2147483647)
  ROOT r = (f32[3], s32[3]) reduce(x, i, low, most), dimensions={1}, to_apply=f,
    sharding={{mesh['x'=2,'y'=4], [{'x'}]}, {mesh['x'=2,'y'=4], [{'x'}]}}
}"""


def test_argmax():
    module = parse(sharded("mesh['x'=2,'y'=4]\n" + ARGMAX))
    made = agree(module, inputs_of(module))
    gathers = [i for i in made.entry.instructions if i.opcode == "all-gather"]
    assert [g.shape.dims for g in gathers] == [(4, 2), (4, 2)]


def test_initial_values_that_are_not_neutral_count_once():
    text = ARGMAX.replace("constant(-inf)", "constant(2)").replace("constant(2147483647)", "constant(5)")
    module = parse(sharded("mesh['x'=2,'y'=4]\n" + text))
    agree(module, inputs_of(module))


ALIASED = """HloModule m, num_partitions=8, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, must-alias) }
ENTRY main {
  x = f32[8,4] parameter(0) @[{'y'}, {}]@
  y = f32[8,4] parameter(1) @[{'y'}, {}]@
  ROOT r = (f32[8,4], f32[8,4]) tuple(y, x), sharding={{mesh['x'=2,'y'=4], [{'y'}, {}]}, {mesh['x'=2,'y'=4], [{'x'}, {}]}}
}"""


def test_aliases_of_shares_of_one_size_stay():
    module = parse(sharded("mesh['x'=2,'y'=4]\n" + ALIASED))
    made = agree(module, inputs_of(module))
    assert [(a.output, a.parameter) for a in made.input_output_aliases] == [((0,), 0)]
    assert [d.parameter for d in made.buffer_donors] == [1]
    assert made.spmd_parameter_shardings is not None
    assert all("[{'y'}, {}]" in text for text in made.spmd_parameter_shardings)


def test_replicas_are_refused():
    text = "HloModule m, num_partitions=2, replica_count=2\nENTRY main { ROOT x = f32[8] parameter(0) @[{'x'}]@ }"
    with pytest.raises(HeronError, match="SPMD001"):
        partition(parse(sharded("mesh['x'=2]\n" + text)))


def test_transfers_to_the_host_are_refused():
    text = """HloModule m, num_partitions=2
    ENTRY main {
      t = token[] after-all()
      i = (f32[8], token[]) infeed(t)
      ROOT x = f32[8] get-tuple-element(i), index=0 @[{'x'}]@
    }"""
    with pytest.raises(HeronError, match="SPMD003"):
        partition(parse(sharded("mesh['x'=2]\n" + text)))
