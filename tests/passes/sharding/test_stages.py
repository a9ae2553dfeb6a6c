"""The stages sharded and partitioned of a compile."""

from __future__ import annotations

import pytest

from heron import targets
from heron.backends.compiler import Compilation
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework.shares import is_global
from heron.trace import Trace
from tests.passes.sharding.devices import partition, sharded

TEXT = """HloModule rows, num_partitions=8
ENTRY main {
  x = f32[10,4] parameter(0) @[{'x'}, {'y'}]@
  w = f32[4,6] parameter(1) @[{'y'}, {}]@
  d = f32[10,6] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[10,6] tanh(d)
}"""


def module() -> Module:
    return parse(sharded("mesh['x'=2,'y'=4]\n" + TEXT))


def compilation(source: Module, **options: object) -> Compilation:
    return Compilation(source, targets.get("cpu"), Options().replace(**options), Trace())


def test_stages_are_printed() -> None:
    c = compilation(module())
    assert "%tanh" in c.text("partitioned") and "f32[5,1]" in c.text("partitioned")
    assert "%r = f32[10,6]" in c.text("sharded") and "sharding=" in c.text("sharded")
    assert c.scheduled.parameter_shapes[0].dims == (5, 1)
    assert c.scheduled.spmd_output_sharding is not None


def test_reshards_are_decisions_in_the_trace() -> None:
    c = compilation(module())
    c.passes("partitioned")
    found = [d for d in c.trace.decisions if d.rule == "spmd-partitioner"]
    assert found and all("bytes" in d.reason and d.cost_after for d in found)


def test_values_are_checked_across_the_partitioner() -> None:
    compilation(module(), check="values").passes("partitioned")


def test_one_device_has_no_such_stage() -> None:
    with pytest.raises(HeronError, match="TGT003"):
        compilation(parse("HloModule m ENTRY e { ROOT x = f32[4] parameter(0) }")).text("partitioned")


def test_programs_of_one_device_are_not_partitioned_again() -> None:
    source = module()
    assert is_global(source)
    assert not is_global(partition(source))
    assert not is_global(parse(str(partition(source))))


def test_dynamic_dimensions_are_refused() -> None:
    text = "HloModule m, num_partitions=2\nENTRY e { ROOT x = f32[<=4] parameter(0) @[{'x'}]@ }"
    with pytest.raises(HeronError, match="SPMD006"):
        partition(parse(sharded("mesh['x'=2]\n" + text)))
