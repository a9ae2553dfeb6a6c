"""The pass sharding-importer: every form of sharding in, axes of one mesh out, the same values on every device."""

from __future__ import annotations

import re

import numpy as np
import pytest

from heron.errors import HeronError
from heron.evaluator import evaluate_devices
from heron.frontends.stablehlo.importer import parse as parse_stablehlo
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.context import PassContext
from heron.passes.sharding.sharding_importer import ShardingImporter

XY = """sdy.mesh @mesh = <["x"=2, "y"=2]>"""


def _stablehlo(body: str, meshes: str = XY, devices: int = 4) -> Module:
    text = f"module @m attributes {{mhlo.num_partitions = {devices} : i32}} {{\n{meshes}\n{body}\n}}"
    return parse_stablehlo(text, verify=True)


def _imported(module: Module) -> Module:
    """The imported module; a second run changes nothing."""
    ShardingImporter().run(module, PassContext())
    verify(module)
    text = str(module)
    assert not ShardingImporter().run(module, PassContext()) and str(module) == text
    assert "xla.sdy.sharding" not in text and "xla.sdy.meshes" not in text
    return module


def _same_values(module: Module) -> Module:
    """The imported module, which gives what the module gave."""
    devices = max(module.num_partitions, 1)
    draw = np.random.default_rng(0)
    arrays = [draw.integers(-8, 8, p.shape.dims).astype(p.shape.element_type.dtype) for p in module.entry.parameters]
    before = evaluate_devices(module.clone(), [arrays] * devices)
    made = _imported(module)
    after = evaluate_devices(made, [arrays] * devices)
    for one, other in zip(before, after, strict=True):
        for x, y in zip(one, other, strict=True):
            np.testing.assert_array_equal(x, y)
    return made


def _calls(module: Module, target: str) -> list[Instruction]:
    return [i for i in module.entry.post_order() if i.opcode == "custom-call" and i.custom_call_target == target]


def _texts(calls: list[Instruction]) -> list[str]:
    return [re.sub(r"mesh\[.*?\], ", "", str(i.extras["sharding"])) for i in calls]


# -- Shardy ----------------------------------------------------------------------------------------------------------
def test_parameters_constraints_and_results():
    module = _same_values(
        _stablehlo("""
      func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}, %b: tensor<8x4xf32>)
          -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}p1, {}], replicated={"x"}>}, tensor<8x4xf32>) {
        %0 = stablehlo.add %a, %b : tensor<8x4xf32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{"x", "y"}, {?}p2]> : tensor<8x4xf32>
        %2 = sdy.propagation_barrier %1 allowed_direction=FORWARD : tensor<8x4xf32>
        return %2, %1 : tensor<8x4xf32>, tensor<8x4xf32>
      }""")
    )
    a, b = module.entry.parameters
    assert a.extras["sharding"] == "{mesh['x'=2,'y'=2], [{'x'}, {?}]}" and "sharding" not in b.extras
    assert _texts(_calls(module, "Sharding")) == ["{[{'x', 'y'}, {?}p2]}"]
    (barrier,) = _calls(module, "xla.sdy.PropagationBarrier")
    assert barrier.extras["frontend_attributes"] == {"xla.sdy.allowed_direction": "FORWARD"}
    assert _texts([module.entry.root]) == ["{{[{'y'}p1, {}], replicated={'x'}}, {[{?}, {?}]}}"]


def test_several_meshes_become_one():
    meshes = """sdy.mesh @a = <["x"=2, "one"=1, "y"=2]>
      sdy.mesh @b = <["z"=4]>
      sdy.mesh @c = <["q"=2, "r"=2], device_ids=[0, 2, 1, 3]>
      sdy.mesh @d = <[], device_ids=[1]>"""
    module = _same_values(
        _stablehlo(
            """
      func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x", "one"}]>},
          %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@b, [{"z":(2)2}]>}) -> tensor<8xf32> {
        %0 = stablehlo.add %a, %b : tensor<8xf32>
        %1 = sdy.sharding_constraint %0 <@c, [{"q", "r"}]> : tensor<8xf32>
        %2 = sdy.sharding_constraint %1 <@d, []> : tensor<8xf32>
        return %2 : tensor<8xf32>
      }""".replace("<@d, []>", "<@d, [{}]>"),
            meshes,
        )
    )
    mesh = "mesh['z'=4]"
    assert module.entry.parameters[0].extras["sharding"] == f"{{{mesh}, [{{'z':(1)2}}]}}"
    assert module.entry.parameters[1].extras["sharding"] == f"{{{mesh}, [{{'z':(2)2}}]}}"
    assert _texts(_calls(module, "Sharding")) == ["{[{'z':(2)2, 'z':(1)2}]}", "{[{}]}"]


def test_sharding_groups():
    module = _same_values(
        _stablehlo("""
      func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
        sdy.sharding_group %a group_id=5 : tensor<8xf32>
        sdy.sharding_group %b group_id=5 : tensor<8xf32>
        %0 = stablehlo.add %a, %b : tensor<8xf32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}]> : tensor<8xf32>
        return %1 : tensor<8xf32>
      }""")
    )
    assert _texts(_calls(module, "Sharding")[:2]) == ["{[{?}] shard_as 5}"] * 2


NESTED = """
  func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", ?}, {"y", ?}]>]
        out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x"} (%b: tensor<4x4xf32>) {
      %1 = sdy.manual_computation(%b) in_shardings=[<@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>]
          manual_axes={"y"} (%c: tensor<4x2xf32>) {
        %2 = stablehlo.constant dense<2.0> : tensor<f32>
        %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
        %4 = stablehlo.multiply %c, %3 : tensor<4x2xf32>
        %5 = "stablehlo.all_reduce"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
            replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %s = stablehlo.add %x, %y : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
        sdy.return %5 : tensor<4x2xf32>
      } : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %6 = stablehlo.add %1, %b : tensor<4x4xf32>
      sdy.return %6 : tensor<4x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }"""


def test_nested_manual_computations():
    module = _imported(_stablehlo(NESTED))
    a = np.arange(32, dtype=np.float32).reshape(8, 4)
    summed = (a[:4] + a[4:]) * 2
    for (result,) in evaluate_devices(module, [[a]] * 4):  # on every device, whatever its place
        np.testing.assert_array_equal(result, np.concatenate([summed, summed]) + a)
    enter, leave = _calls(module, "SPMDFullToShardShape"), _calls(module, "SPMDShardToFullShape")
    assert _texts(enter) == ["{[{?}, {'y', ?}], manual={'x'}}", "{[{}, {}], manual={'x', 'y'}}"]
    assert _texts(leave) == ["{[{}, {'y'}], manual={'x'}}", "{[{'x'}, {'y'}]}"]
    inside = [i for i in module.entry.instructions if i.opcode in ("broadcast", "multiply", "all-reduce", "constant")]
    assert {t.removeprefix("{[{?}, {?}], ") for t in _texts(inside)} == {"manual={'x', 'y'}}", "{manual}"}
    assert not any(i.opcode == "call" for i in module.instructions())


def test_a_loop_in_a_manual_computation_and_outside():
    """A body that is called from inside and from outside is two bodies."""
    module = _imported(
        parse("""HloModule m, num_partitions=2

    body {
      p = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(p), index=0
      one = s32[] constant(1)
      m = s32[] add(n, one)
      x = f32[4] get-tuple-element(p), index=1
      y = f32[4] negate(x)
      ROOT t = (s32[], f32[4]) tuple(m, y)
    }

    cond {
      p = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(p), index=0
      three = s32[] constant(3)
      ROOT r = pred[] compare(n, three), direction=LT
    }

    ENTRY e {
      a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
      b = f32[4] parameter(1), sharding={replicated}
      zero = s32[] constant(0)
      l = f32[4] custom-call(a), custom_call_target="SPMDFullToShardShape", sharding={manual}
      t = (s32[], f32[4]) tuple(zero, l)
      w = (s32[], f32[4]) while(t), condition=cond, body=body
      u = (s32[], f32[4]) tuple(zero, b)
      v = (s32[], f32[4]) while(u), condition=cond, body=body
      wx = f32[4] get-tuple-element(w), index=1
      s = f32[4] custom-call(wx), custom_call_target="Sharding", sharding={manual}
      g = f32[8] custom-call(s), custom_call_target="SPMDShardToFullShape", sharding={devices=[2]<=[2]}
      vx = f32[4] get-tuple-element(v), index=1
      ROOT r = (f32[8], f32[4]) tuple(g, vx)
    }""")
    )
    a, b = np.arange(8, dtype=np.float32), np.arange(4, dtype=np.float32)
    for x, y in evaluate_devices(module, [[a, b]] * 2):
        np.testing.assert_array_equal(x, -a)
        np.testing.assert_array_equal(y, -b)
    bodies = {i.attrs["body"] for i in module.instructions() if i.opcode == "while"}
    marked = {all("manual" in str(i.extras.get("sharding")) for i in c.instructions) for c in bodies}
    assert len(bodies) == 2 and marked == {True, False}
    zeros = [i for i in module.entry.instructions if i.opcode == "constant"]
    assert len(zeros) == 2  # one of them for the loop inside


def test_shardings_of_all_parameters_and_results_in_the_header():
    module = _imported(
        parse("""HloModule m, num_partitions=4, frontend_attributes={
        xla.sdy.meshes={mesh = #sdy.mesh<["x"=4]>},
        xla.sdy.tuple_args_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"x\\"}]>, <@mesh, [{?}]>]>",
        xla.sdy.tuple_results_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"x\\"}]>]>"}

    ENTRY e {
      p = (f32[4], f32[4]) parameter(0)
      a = f32[4] get-tuple-element(p), index=0
      b = f32[4] get-tuple-element(p), index=1
      ROOT r = f32[4] add(a, b)
    }""")
    )
    assert _texts([module.entry.parameters[0]]) == ["{{[{'x'}]}, {[{?}]}}"]
    assert _texts([module.entry.root]) == ["{[{'x'}]}"] and "frontend_attributes" not in module.header


# -- GSPMD -----------------------------------------------------------------------------------------------------------
def test_unspecified_dimensions_and_groups():
    module = _same_values(
        parse("""HloModule m, num_partitions=8

    ENTRY e {
      a = f32[8,8] parameter(0)
      b = f32[8,8] custom-call(a), custom_call_target="Sharding", sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate},
        backend_config="unspecified_dims=[1]"
      c = f32[8,8] custom-call(b), custom_call_target="Sharding", sharding={unknown shard_as 3}
      ROOT r = f32[8,8] negate(c), sharding={devices=[2,4]<=[4,2]T(1,0)}
    }""")
    )
    assert _texts(_calls(module, "Sharding")) == ["{[{'axis_0'}, {?}]}", "{[{?}, {?}] shard_as 3}"]
    assert _texts([module.entry.root]) == ["{[{'axis_1'}, {'axis_0'}]}"]


def test_an_effect_on_one_device_keeps_its_place():
    module = _imported(
        parse("""HloModule m, num_partitions=2

    ENTRY e {
      a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
      b = f32[8] custom-call(a), custom_call_target="f", custom_call_has_side_effect=true, sharding={maximal device=1}
      ROOT r = f32[8] add(a, b)
    }""")
    )
    assert [i.extras["sharding"] for i in _calls(module, "f")] == ["{maximal device=1}"]


def test_what_the_partitioner_may_not_choose_is_whole():
    module = parse("""HloModule m, num_partitions=2

    ENTRY e {
      a = f32[8] parameter(0)
      b = f32[8] parameter(1)
      s = f32[8] custom-call(a), custom_call_target="Sharding", sharding={devices=[2]<=[2]}
      c = f32[8] add(s, b)
      ROOT r = (f32[8], f32[8]) tuple(c, c)
    }""")
    module.header["allow_spmd_sharding_propagation_to_parameters"] = (False, True)
    module.header["allow_spmd_sharding_propagation_to_output"] = (False, True)
    made = _imported(module)
    a, b = made.entry.parameters
    assert _texts([a]) == ["{[{}]}"] and "sharding" not in b.extras
    assert _texts([made.entry.root]) == ["{{[{}]}, {[{?}]}}"]


@pytest.mark.parametrize(
    ("flags", "whole"),
    [
        ("{true}", ""),
        ("{false,false}", "abcd"),
        ("{true,true,true,true,true,true,true}", ""),
        ("{true,false,true}", "b"),
        ("{false,true,true,false}", "ad"),
    ],
)
def test_flags_are_for_all_for_each_parameter_or_for_each_leaf(flags: str, whole: str):
    module = parse(f"""HloModule m, num_partitions=2, allow_spmd_sharding_propagation_to_parameters={flags}

    ENTRY e {{
      a = f32[8] parameter(0)
      b = f32[8] parameter(1)
      p = (f32[8], f32[8]) parameter(2)
      c = f32[8] get-tuple-element(p), index=0
      d = f32[8] get-tuple-element(p), index=1
      s = f32[8] custom-call(a), custom_call_target="Sharding", sharding={{devices=[2]<=[2]}}
      x = f32[8] add(s, b)
      y = f32[8] add(c, d)
      ROOT r = f32[8] add(x, y)
    }}""")
    given = [(p, 1 if p.shape.is_array else 2) for p in _imported(module).entry.parameters]
    parts = [re.findall(r"\[{\??}\]", str(p.extras["sharding"])) if p.extras else ["[{?}]"] * n for p, n in given]
    assert "".join(name for name, part in zip("abcd", sum(parts, []), strict=True) if part == "[{}]") == whole


def test_a_result_that_is_a_parameter_gets_a_root_of_its_own():
    module = _imported(
        parse("""HloModule m, num_partitions=2

    ENTRY e {
      a = f32[8] parameter(0), sharding={replicated}
      b = f32[8] custom-call(a), custom_call_target="xla.sdy.FuncResultSharding",
        frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<mesh<[\\"x\\"=2]>, [{\\"x\\"}]>]>"}
      t = (f32[8]) tuple(b)
      ROOT r = f32[8] get-tuple-element(t), index=0
    }""")
    )
    assert module.entry.root.opcode == "copy" and _texts([module.entry.root]) == ["{[{'x'}]}"]


def test_a_constraint_that_no_axes_express_is_left_out():
    ctx = PassContext()
    module = parse("""HloModule m, num_partitions=12

    ENTRY e {
      a = f32[12,12] parameter(0), sharding={devices=[3,4]<=[12]}
      b = f32[12,12] custom-call(a), custom_call_target="Sharding", sharding={devices=[4,3]<=[12]}
      ROOT r = f32[12,12] negate(b)
    }""")
    ShardingImporter().run(module, ctx)
    assert _texts(_calls(module, "Sharding")) == ["{[{?}, {?}]}"]
    (decision,) = ctx.trace.decisions
    assert not decision.ok and "no axes" in decision.reason


def _error(text: str) -> HeronError:
    with pytest.raises(HeronError) as error:
        ShardingImporter().run(parse(text), PassContext())
    return error.value


def test_refused():
    both = _error("""HloModule m, num_partitions=12

    ENTRY e {
      a = f32[12,12] parameter(0)
      b = f32[12,12] custom-call(a), custom_call_target="Sharding", sharding={devices=[3,4]<=[12]}
      c = f32[4,3] custom-call(b), custom_call_target="SPMDFullToShardShape", sharding={manual}
      d = f32[12,12] custom-call(c), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,3]<=[12]}
      ROOT r = f32[12,12] negate(d)
    }""")
    assert both.code == "HLO032" and "12 devices" in both.what
    text = """HloModule m, num_partitions=2

    ENTRY e {
      a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
      b = f32[3] custom-call(a), custom_call_target="SPMDFullToShardShape", sharding={manual}
      ROOT r = f32[3] negate(b)
    }"""
    border = _error(text)
    assert border.code == "SPMD004" and "[4]" in str(border.why) and "SPMDFullToShardShape" in str(border)
    free = _error(text.replace(", sharding={devices=[2]<=[2]}", ""))
    assert free.code == "SPMD004" and "'a'" in free.what
    few = _error(text.replace("num_partitions=2", "num_partitions=4"))
    assert few.code == "HLO027"
    many = _error("""HloModule m, num_partitions=2

    ENTRY e {
      a = f32[8] parameter(0), sharding={devices=[4]<=[4]}
      ROOT r = f32[8] negate(a)
    }""")
    assert many.code == "HLO027" and "a mesh of 4 devices in a program for 2" in many.what
    flags = _error("""HloModule m, num_partitions=2, allow_spmd_sharding_propagation_to_output={true,false,true}

    ENTRY e {
      a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
      ROOT r = (f32[8], f32[8]) tuple(a, a)
    }""")
    assert flags.code == "HLO027" and flags.why == "3 flags, 2 parts with 2 arrays"


def test_a_program_that_is_manual_as_a_whole_stays():
    module = _imported(
        parse("""HloModule m, num_partitions=4

    ENTRY e {
      a = f32[8] parameter(0), sharding={devices=[1,2,2]<=[4] last_tile_dims={replicated, manual}}
      b = f32[8] negate(a)
      ROOT r = (f32[8], f32[8]) tuple(b, a), sharding={{manual}, {manual}}
    }""")
    )
    assert all("manual" in str(i.extras["sharding"]) for i in module.entry.instructions)


def test_parts_of_what_has_an_effect():
    module = _imported(
        parse("""HloModule m, num_partitions=2

    ENTRY e {
      t = token[] after-all()
      i = (f32[8], token[]) infeed(t), sharding={{devices=[2]<=[2]}, {maximal device=0}}
      a = f32[8] get-tuple-element(i), index=0
      o = token[] outfeed(a, t), outfeed_shape=f32[8], sharding={devices=[2]<=[2]}
      ROOT r = f32[8] negate(a)
    }""")
    )
    texts = {i.opcode: i.extras.get("sharding") for i in module.entry.instructions}
    assert texts["infeed"] == "{{mesh['axis_0'=2], [{'axis_0'}]}, {mesh['axis_0'=2], replicated}}"
    assert texts["outfeed"] is None


def test_a_callback_on_one_device():
    """Shardy gives the sharding of a call without results as that of one value."""
    module = _imported(
        _stablehlo(
            """
      func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        stablehlo.custom_call @f(%a) {has_side_effect = true,
          sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<8xf32>) -> ()
        %0 = stablehlo.custom_call @f(%a) {has_side_effect = true,
          sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<8xf32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>
      }""",
            f"{XY}\n sdy.mesh @one = <[], device_ids=[2]>",
        )
    )
    assert [i.extras["sharding"] for i in _calls(module, "f")] == ["{maximal device=2}"] * 2


def test_an_op_with_several_results():
    module = _same_values(
        _stablehlo("""
      func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
        %0:2 = "stablehlo.sort"(%a, %b) <{dimension = 0 : i64, is_stable = true}> ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>, %u: tensor<f32>, %v: tensor<f32>):
          %c = stablehlo.compare LT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{"y"}]>]>}
          : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
        return %0#1 : tensor<8xf32>
      }""")
    )
    texts = {i.opcode: _texts([i]) for i in module.entry.instructions if "sharding" in i.extras}
    assert texts == {"sort": ["{{[{'x'}]}, {[{'y'}]}}"]}


def test_a_constant_that_enters_a_manual_computation_is_outside():
    module = _imported(
        _stablehlo(
            """
      func.func @main() -> tensor<8xf32> {
        %c = stablehlo.constant dense<1.0> : tensor<8xf32>
        %0 = sdy.manual_computation(%c) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
            manual_axes={"x", "y"} (%a: tensor<4xf32>) {
          stablehlo.custom_call @f(%a) {has_side_effect = true,
            sdy.sharding = #sdy.sharding_per_value<[<@empty, []>]>} : (tensor<4xf32>) -> ()
          %1 = stablehlo.negate %a : tensor<4xf32>
          sdy.return %1 : tensor<4xf32>
        } : (tensor<8xf32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>
      }""",
            f"{XY}\n sdy.mesh @empty = <[]>",
        )
    )
    constant = next(i for i in module.entry.instructions if i.opcode == "constant")
    assert "sharding" not in constant.extras
    assert _texts(_calls(module, "Sharding")) == ["{[{'x'}]}"]


def test_a_result_behind_an_equal_constraint_has_a_root_of_its_own():
    module = _same_values(
        _stablehlo("""
      func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
        %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>
        return %0 : tensor<8xf32>
      }""")
    )
    assert module.entry.root.opcode == "copy" and _texts([module.entry.root]) == ["{[{'x'}]}"]
    assert module.entry.root.operands[0].opcode == "custom-call"


def test_a_manual_computation_without_operands():
    """What JAX makes of axis_index under GSPMD."""
    module = _same_values(
        parse("""HloModule m, num_partitions=2

    body {
      p = u32[] partition-id()
      ROOT b = u32[4] broadcast(p), dimensions={}
    }

    ENTRY e {
      c = u32[4] call(), to_apply=body
      s = u32[4] custom-call(c), custom_call_target="Sharding", sharding={manual}
      ROOT g = u32[8] custom-call(s), custom_call_target="SPMDShardToFullShape", sharding={devices=[2]<=[2]}
    }""")
    )
    (index,) = [i for i in module.entry.instructions if i.opcode == "partition-id"]
    assert _texts([index]) == ["{manual}"]


def test_barriers_of_gspmd_stop_what_they_say() -> None:
    """Nothing passes from the operand of one, and nothing to the operand of the other."""
    module = parse("""HloModule m, num_partitions=2
ENTRY e {
  a = f32[8] parameter(0)
  f = f32[8] custom-call(a), custom_call_target="ShardBarrierFrom", custom_call_has_side_effect=true
  t = f32[8] custom-call(f), custom_call_target="ShardBarrierTo", custom_call_has_side_effect=true
  ROOT n = f32[8] negate(t), sharding={devices=[2]0,1}
}""")
    barriers = _calls(_imported(module), "xla.sdy.PropagationBarrier")
    allowed = {i.name: i.extras["frontend_attributes"]["xla.sdy.allowed_direction"] for i in barriers}
    assert allowed == {"f": "BACKWARD", "t": "FORWARD"}


def test_a_mesh_of_another_number_of_devices_is_refused_where_it_stands() -> None:
    module = parse("""HloModule m, num_partitions=8
    ENTRY e {
      p = f32[8,8] parameter(0), sharding={devices=[8,1]<=[8]}
      ROOT n = f32[8,8] negate(p), sharding={devices=[2,2]<=[4]}
    }""")
    with pytest.raises(HeronError, match="a mesh of 4 devices in a program for 8") as error:
        PassContext().run_pass(ShardingImporter(), module)
    assert "%n = f32[8,8]" in str(error.value) and "--devices" in str(error.value)
