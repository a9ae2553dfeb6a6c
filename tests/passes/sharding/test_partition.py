"""Programs partitioned by hand-written shardings, run on the evaluator's devices against the global program."""

import pytest

from heron.hlo.text import parse
from tests.passes.sharding.devices import agree, inputs_of, sharded

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
