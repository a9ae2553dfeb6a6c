"""Shardings that are changed to send fewer bytes: values stay, fixed shardings stay, bytes fall."""

from __future__ import annotations

import pytest

from heron.analysis.sharding.program import ProgramShardings
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.passes.framework.context import PassContext
from heron.passes.sharding.auto_sharding import AutoSharding
from tests.passes.sharding.cases import FAMILIES, case
from tests.passes.sharding.devices import agree, inputs_of, sharded
from tests.passes.sharding.programs import wire_bytes

_DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
GATED = sharded(f"""mesh['x'=4]
HloModule gated, num_partitions=4

ENTRY main {{
  x = f32[16,32] parameter(0) @[{{'x'}}, {{}}]@
  a = f32[32,16] parameter(1) @[{{}}, {{'x'}}]@
  b = f32[32,16] parameter(2) @[{{}}, {{'x'}}]@
  c = f32[16,32] parameter(3) @[{{'x'}}, {{}}]@
  p = f32[16,16] dot(x, a), {_DOT} @[{{'x'}}, {{}}]@
  q = f32[16,16] dot(x, b), {_DOT} @[{{'x'}}, {{}}]@
  half = f32[] constant(2)
  w = f32[16,16] broadcast(half), dimensions={{}} @[{{'x'}}, {{}}]@
  s = f32[16,16] multiply(q, w) @[{{'x'}}, {{}}]@
  m = f32[16,16] multiply(p, s) @[{{'x'}}, {{}}]@
  ROOT r = f32[16,32] dot(m, c), {_DOT} @[{{'x'}}, {{}}]@
}}
""")


def run(module: Module) -> ProgramShardings:
    AutoSharding().run(module, PassContext())
    return ProgramShardings.read(module)


def sent(made: Module) -> int:
    """Bytes of the results of all collectives."""
    return sum(i.shape.byte_size for i in made.instructions() if "replica_groups" in i.op.attributes)


def test_one_gather_serves_two_products():
    before = agree(parse(GATED), inputs_of(parse(GATED)))
    module = parse(GATED)
    found = run(module)
    values = {i.name: i for i in module.entry.instructions}
    assert found.of(values["p"]).dims == found.of(values["q"]).dims == found.of(values["m"]).dims == ((), (0, 1))
    after = agree(module, inputs_of(module))
    assert sent(after) < sent(before)


def test_what_every_device_can_make_follows_its_user():
    module = parse(GATED)
    found = run(module)
    assert found.of(next(i for i in module.entry.instructions if i.name == "w")).dims == ((), (0, 1))


def test_fixed_shardings_stay():
    constraint = 'custom-call(q), custom_call_target="Sharding"'
    text = GATED.replace("multiply(q, w)", "multiply(k, w)").replace(
        "  half = ", f"  k = f32[16,16] {constraint}, sharding={{mesh['x'=4], [{{'x'}}, {{}}]}}\n  half = "
    )
    module = parse(text)
    before = {i.name: i.extras.get("sharding") for i in module.entry.instructions}
    run(module)
    after = {i.name: i.extras.get("sharding") for i in module.entry.instructions}
    assert all(after[name] == before[name] for name in ("x", "a", "b", "c", "k", "r"))
    agree(module, inputs_of(module))


def test_an_operand_is_gathered_in_its_narrower_type():
    module = parse(
        sharded(f"""mesh['x'=2]
HloModule narrow, num_partitions=2

ENTRY main {{
  a = s8[8,16] parameter(0) @[{{'x'}}, {{}}]@
  c = f32[8,16] convert(a) @[{{'x'}}, {{}}]@
  b = f32[16,6] parameter(1) @[{{}}, {{'x'}}]@
  d = f32[8,6] dot(c, b), {_DOT} @[{{'x'}}, {{}}]@
  ROOT n = f32[8,6] negate(d) @[{{'x'}}, {{}}]@
}}
""")
    )
    run(module)
    made = agree(module, inputs_of(module))
    assert {i.shape.element_type.name for i in made.instructions() if i.opcode == "all-gather"} == {"s8"}


def test_more_memory_is_not_taken():
    """Each device could compute the products of the whole batch and send nothing but the batch."""
    module = parse(
        sharded(f"""mesh['x'=8]
HloModule gradient, num_partitions=8

ENTRY main {{
  x = f32[64,4] parameter(0) @[{{'x'}}, {{}}]@
  w = f32[4,64] parameter(1) @[{{}}, {{}}]@
  d = f32[64,64] dot(x, w), {_DOT} @[{{'x'}}, {{}}]@
  t = f32[64,64] negate(d) @[{{'x'}}, {{}}]@
  ROOT g = f32[64,64] dot(t, t), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}} @[{{}}, {{}}]@
}}
""")
    )
    run(module)
    made = agree(module, inputs_of(module))
    assert [i.opcode for i in made.instructions() if "replica_groups" in i.op.attributes] == ["all-reduce"]


def test_a_sum_that_two_ops_need_is_scattered():
    """The squares need any split of the sum; the other user wants it along another axis, from a smaller part."""
    module = parse(
        sharded("""mesh['x'=4,'y'=2]
HloModule power, num_partitions=8

add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }

ENTRY main {
  a = f32[16,16] parameter(0) @[{'x'}, {'y'}]@
  x = f32[16] parameter(1) @[{'y'}]@
  d = f32[16] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} @[{'x'}]@
  m = f32[16] multiply(d, d) @[{'x'}]@
  zero = f32[] constant(0)
  s = f32[] reduce(m, zero), dimensions={0}, to_apply=add @[]@
  b = f32[16] broadcast(s), dimensions={} @[{'y'}]@
  ROOT n = f32[16] divide(d, b) @[{'y'}]@
}
""")
    )
    before = agree(module, inputs_of(module))
    run(module)
    after = agree(module, inputs_of(module))
    opcodes = [i.opcode for i in after.instructions() if "replica_groups" in i.op.attributes]
    assert "reduce-scatter" in opcodes and "reduce-scatter" not in [i.opcode for i in before.instructions()]
    assert wire_bytes(after)[0] < wire_bytes(before)[0]


def test_a_second_run_changes_nothing():
    module = parse(GATED)
    assert AutoSharding().run(module, PassContext())
    assert not AutoSharding().run(module, PassContext())


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - {"scatter"}))
def test_values_of_random_programs_stay(name: str):
    for seed in range(100, 104):
        _, text = case(seed, [name])
        module = parse(text)
        run(module)
        agree(module, inputs_of(module, seed))
