"""The pass sharding-remover."""

from __future__ import annotations

from heron.frontends.stablehlo.importer import parse as parse_stablehlo
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.context import PassContext
from heron.passes.sharding.sharding_remover import ShardingRemover

SHARDED = """module @m {
  sdy.mesh @mesh = <["x"=1]>
  func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<8xf32>) {
    sdy.sharding_group %a group_id=5 : tensor<8xf32>
    %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>
    %1 = sdy.propagation_barrier %0 allowed_direction=FORWARD : tensor<8xf32>
    %2:2 = sdy.manual_computation(%1, %a) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>]
        out_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<8xf32>, %c: tensor<8xf32>) {
      %3 = stablehlo.negate %b : tensor<8xf32>
      sdy.return %3, %c : tensor<8xf32>, tensor<8xf32>
    } : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    return %2#0, %2#1 : tensor<8xf32>, tensor<8xf32>
  }
}"""


def test_nothing_is_left_of_shardings():
    module = parse_stablehlo(SHARDED, verify=True)
    assert ShardingRemover().run(module, PassContext())
    verify(module)
    assert not ShardingRemover().run(module, PassContext())
    text = str(module)
    assert "sharding" not in text and "sdy.mesh" not in text
    assert not any(i.opcode == "custom-call" for i in module.instructions())


def test_a_program_for_several_devices_stays():
    module = parse(
        "HloModule m, num_partitions=2\n\nENTRY e {\n  ROOT a = f32[2] parameter(0), sharding={replicated}\n}"
    )
    assert not ShardingRemover().run(module, PassContext())


def test_borders_that_cut_stay():
    module = parse("""HloModule m

    ENTRY e {
      a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
      b = f32[4] custom-call(a), custom_call_target="SPMDFullToShardShape", sharding={manual}
      ROOT r = f32[4] negate(b), frontend_attributes={xla.sdy.sharding_rule="r", other="o"}
    }""")
    assert ShardingRemover().run(module, PassContext())
    assert "SPMDFullToShardShape" in str(module) and "sharding=" not in str(module)
    assert module.entry.root.extras["frontend_attributes"] == {"xla.sdy.sharding_rule": "r", "other": "o"}
