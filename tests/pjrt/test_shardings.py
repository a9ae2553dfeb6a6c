"""Shardings between the client, the compiler and JAX."""

from __future__ import annotations

import pytest

from heron import HeronError
from heron.hlo.text import parse
from heron.pjrt import shardings
from heron.pjrt.compile_options import CompileOptions
from heron.pjrt.loaded import about
from tests.pjrt.under_jax import run

SPREAD = """HloModule m, entry_computation_layout={(f32[8,6]{0,1}, (s32[4]{0}, token[]))->(f32[8,6]{1,0}, s32[4]{0})}
ENTRY e {
  a = f32[8,6]{0,1} parameter(0), sharding={mesh['x'=2,'y'=2], [{'x'}, {?}]}
  b = (s32[4]{0}, token[]) parameter(1)
  n = s32[4]{0} get-tuple-element(b), index=0
  c = f32[8,6]{1,0} copy(a)
  ROOT t = (f32[8,6]{1,0}, s32[4]{0}) tuple(c, n)
}
"""
SPREAD_OPTIONS = CompileOptions(num_partitions=4, propagates_to_parameters=(True,), propagates_to_outputs=(False, True))


def test_what_the_compiler_is_told() -> None:
    source = parse(SPREAD)
    header = shardings.for_devices(source, SPREAD_OPTIONS).header
    assert header["num_partitions"] == 4 and header["replica_count"] == 1
    assert header["allow_spmd_sharding_propagation_to_parameters"] == (True, True, True)
    assert header["allow_spmd_sharding_propagation_to_output"] == (False, True)
    assert "num_partitions" not in source.header
    wrong = CompileOptions(num_partitions=4, propagates_to_outputs=(True, True, True))
    with pytest.raises(HeronError, match="PJRT006.*3 entries for 2 arrays"):
        shardings.for_devices(source, wrong)


def test_a_program_of_devices_that_do_not_share_work() -> None:
    text = "HloModule m, num_partitions=2\nENTRY e { ROOT a = f32[4] parameter(0), sharding={replicated} }"
    options = CompileOptions(num_partitions=2)
    source = parse(text)
    assert not shardings.works_together(source, options)
    assert shardings.for_one_device(source).num_partitions == 1
    with pytest.raises(HeronError, match="PJRT029"):
        shardings.works_together(source, CompileOptions(num_partitions=2, use_auto_spmd_partitioning=True))


def partitioned() -> tuple[object, ...]:
    module = parse(SPREAD)
    module.spmd_parameter_shardings = (
        "{mesh['x'=2,'y'=2], [{'x'}, {}]}",
        "{{mesh['x'=2,'y'=2], [{'y', 'x'}]}, {replicated}}",
    )
    module.spmd_output_sharding = "{{mesh['x'=2,'y'=2], [{}, {'y'}]}, {replicated}}"
    return about("", parse(SPREAD), module, 0.0, together=True), module


def test_what_the_compiler_chose() -> None:
    facts, _ = partitioned()
    assert facts.parameter_shardings == (  # type: ignore[attr-defined]
        "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
        "{devices=[4]<=[2,2]T(1,0)}",
        "{replicated}",
    )
    assert facts.output_shardings == (  # type: ignore[attr-defined]
        "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
        "{replicated}",
    )


def test_what_is_shown() -> None:
    """As XLA has it: tiles, on parameters alone; and the fields JAX reads where it does not ask for shardings."""
    from heron.hlo.proto import to_proto_with_config
    from heron.hlo.proto.schema import MESSAGES

    _, module = partitioned()
    copy = shardings.shown(module)  # type: ignore[arg-type]
    texts = [i.extras.get("sharding") for i in copy.instructions()]
    assert texts[0] == "{devices=[2,1,2]<=[4] last_tile_dim_replicate}" and texts[2:] == [None] * 3
    proto = MESSAGES["HloModuleProtoWithConfig"].FromString(to_proto_with_config(copy, 1, 4))
    assert proto.config.num_partitions == 4 and proto.config.use_spmd_partitioning
    assert len(proto.hlo_module.spmd_parameters_shardings) == 2
    assert list(proto.hlo_module.spmd_parameters_shardings[0].tile_assignment_dimensions) == [2, 1, 2]


CUSTOM = """
import numpy as np
import jax, jax.numpy as jnp
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from heron.analysis.sharding.custom import PARTITIONERS
from heron.frontends.stablehlo.importer import parse
from heron.hlo.sharding import parse as parse_sharding

mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
asked = []

@custom_partitioning
def product(a, b):
    return jnp.sin(a) @ b

def partition(mesh, arguments, result):
    asked.append([a.sharding.spec for a in arguments])
    local = lambda a, b: jax.lax.psum(jnp.sin(a) @ b, "y")
    return mesh, local, NamedSharding(mesh, P("x")), (NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P("y")))

product.def_partition(partition, sharding_rule="i k, k j -> i j")
placed = NamedSharding(mesh, P("x"))

def asking(lowered):
    calls = [i for i in parse(lowered.as_text(), "jax").instructions() if i.opcode == "custom-call"]
    [call] = [i for i in calls if i.custom_call_target in PARTITIONERS]
    return call

call = asking(jax.jit(product, out_shardings=placed).lower(jnp.ones((8, 8)), jnp.ones((8, 6))))
ours = PARTITIONERS[call.custom_call_target]
given = [parse_sharding("{devices=[2,4]<=[8]}"), parse_sharding("{mesh['x'=2,'y'=4], [{}, {'x'}]}")]
local = ours.partition(call, given, parse_sharding("{devices=[2,1,4]<=[8] last_tile_dim_replicate}"))
assert asked == [[P("x", "y"), P(None, "x")]], asked
assert [p.shape.dims for p in local.module.entry.parameters] == [(4, 2), (2, 6)]
assert [s.data_dims for s in local.operands] == [(2, 4), (4, 1)] and local.result.data_dims == (2, 1)
assert any(i.opcode == "all-reduce" for i in local.module.entry.instructions)
assert ours.infer(call, given) is None

seen = []
inspected = jax.jit(lambda a: jax.debug.inspect_array_sharding(a, callback=seen.append) or a * 2, in_shardings=placed)
lowered = inspected.lower(jnp.ones((8, 8)))
call = asking(lowered)
local = PARTITIONERS[call.custom_call_target].partition(call, given[1:], given[1])
assert seen[0].is_equivalent_to(NamedSharding(mesh, P(None, "x")), 2), seen
assert local.module.entry.root.shape.dims == (8, 4) and local.operands == (given[1],)
"""


def test_functions_that_partition_custom_calls() -> None:
    run(CUSTOM, HERON_DEVICES="8")


@pytest.mark.parametrize(("asked", "count"), [("", 3), ("2", 2)])
def test_as_many_devices_as_the_cpu(asked: str, count: int) -> None:
    flags = "--xla_force_host_platform_device_count=3"
    run(f"import jax\nassert len(jax.devices()) == {count}", XLA_FLAGS=flags, HERON_DEVICES=asked)
