"""The pass sharding-propagation: constraints, the header's flags, decisions."""

from __future__ import annotations

import pytest

from heron.analysis.sharding.program import ProgramShardings
from heron.hlo.sharding import parse as parse_sharding
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.devices import sharded
from heron.passes.framework.context import PassContext
from heron.passes.sharding.sharding_propagation import ShardingPropagation

MESH = "mesh['x'=2,'y'=4]"
CALL = "custom-call({}), custom_call_target=\"Sharding\", sharding={{mesh['x'=2,'y'=4], [{}]}}"


def run(text: str) -> tuple[dict[str, str], PassContext]:
    """Each value's dimensions by name, after the pass."""
    module = parse(text)
    context = PassContext()
    assert context.run_pass(ShardingPropagation(), module)
    verify(module)
    again = str(module)
    assert not ShardingPropagation().run(module, PassContext()) and str(module) == again
    shardings = ProgramShardings.read(module)
    found = {}
    for i in module.instructions():
        for index, _ in i.shape.leaves():
            dims = shardings.of(i, index).dims
            found[i.name + "".join(f".{n}" for n in index)] = ", ".join(shardings.mesh.text(d) for d in dims)
    found["operands"] = {i.name: [o.name for o in i.operands] for i in module.instructions()}
    return found, context


def test_a_closed_constraint_holds_for_its_operand():
    s, _ = run(f"""HloModule m, num_partitions=8
ENTRY e {{
  a = f32[8,8] parameter(0)
  n = f32[8,8] negate(a)
  c = f32[8,8] {CALL.format("n", "{'x'}, {}")}
  b = f32[8,8] parameter(1), sharding={{{MESH}, [{{'y'}}, {{}}]}}
  o = f32[8,8] {CALL.format("b", "{'x'}, {}")}
  ROOT t = (f32[8,8], f32[8,8]) tuple(c, o)
}}""")
    assert s["n"] == s["c"] == s["o"] == "'x', " and s["b"] == "'y', "


def test_a_constraint_on_a_parameter_gives_it_even_shares_only():
    """What a constraint says of a parameter tells nothing of how it arrives: axes that do not divide it are left out."""
    s, _ = run(f"""HloModule m, num_partitions=8
ENTRY e {{
  a = f32[7,8] parameter(0)
  c = f32[7,8] {CALL.format("a", "{'x'}, {'y'}")}
  b = f32[7,8] parameter(1), sharding={{{MESH}, [{{'x'}}, {{}}]}}
  ROOT t = (f32[7,8], f32[7,8]) tuple(c, b)
}}""")
    assert s["a"] == ", 'y'" and s["c"] == "'x', 'y'" and s["b"] == "'x', "


def test_constraints_that_disagree_leave_their_operand_free():
    s, _ = run(f"""HloModule m, num_partitions=8
ENTRY e {{
  a = f32[8,8] parameter(0), sharding={{{MESH}, [{{}}, {{'y', ?}}]}}
  n = f32[8,8] negate(a)
  c = f32[8,8] {CALL.format("n", "{'x'}, {}")}
  d = f32[8,8] {CALL.format("n", "{'y'}, {}")}
  ROOT t = (f32[8,8], f32[8,8]) tuple(c, d)
}}""")
    assert s["n"] == "'x', 'y'" and s["d"] == "'y', "


def test_later_users_take_the_end_of_a_chain():
    s, _ = run(f"""HloModule m, num_partitions=8
ENTRY e {{
  a = f32[8,8] parameter(0)
  n = f32[8,8] negate(a)
  early = f32[8,8] tanh(n)
  c = f32[8,8] {CALL.format("n", "{'x'}, {}")}
  d = f32[8,8] {CALL.format("c", "{'y'}, {}")}
  late = f32[8,8] exponential(n)
  ROOT t = (f32[8,8], f32[8,8], f32[8,8]) tuple(early, d, late)
}}""")
    assert s["operands"]["early"] == ["n"] and s["operands"]["late"] == ["d"]
    assert s["late"] == "'y', " and s["n"] == s["early"] == "'x', "


def test_what_a_loop_carries_is_constrained_behind_it():
    s, _ = run(f"""HloModule m, num_partitions=8
body {{
  p = (f32[8,8]) parameter(0)
  v = f32[8,8] get-tuple-element(p), index=0
  c = f32[8,8] {CALL.format("v", "{'x'}, {}")}
  w = f32[8,8] add(c, v)
  ROOT t = (f32[8,8]) tuple(w)
}}
cond {{
  q = (f32[8,8]) parameter(0)
  ROOT go = pred[] constant(false)
}}
ENTRY e {{
  a = f32[8,8] parameter(0), sharding={{{MESH}, [{{'y'}}, {{}}]}}
  init = (f32[8,8]) tuple(a)
  ROOT loop = (f32[8,8]) while(init), condition=cond, body=body
}}""")
    assert s["operands"]["w"] == ["c", "c"]
    assert s["a"] == "'y', " and s["v"] == s["loop.0"] == s["t.0"] == s["w"] == "'x', "


def test_a_constraint_in_a_branch_moves_out_with_the_value():
    s, _ = run(f"""HloModule m, num_partitions=8
yes {{
  p = f32[8,8] parameter(0)
  c = f32[8,8] {CALL.format("p", "{'x'}, {}")}
  ROOT n = f32[8,8] negate(c)
}}
no {{
  q = f32[8,8] parameter(0)
  ROOT m = f32[8,8] tanh(q)
}}
ENTRY e {{
  which = pred[] parameter(0)
  a = f32[8,8] parameter(1), sharding={{{MESH}, [{{'y'}}, {{}}]}}
  o = f32[8,8] opt-barrier(a)
  ROOT r = f32[8,8] conditional(which, o, o), true_computation=yes, false_computation=no
}}""")
    assert s["p"] == s["q"] == s["m"] == s["r"] == "'x', " and s["o"] == "'y', "


def test_a_result_is_cut_to_what_divides_behind_a_constraint():
    s, _ = run(f"""HloModule m, num_partitions=8
ENTRY e {{
  a = f32[2] parameter(0)
  ROOT c = f32[2] {CALL.format("a", "{'x', 'y'}")}
}}""")
    (copy,) = [name for name, operands in s["operands"].items() if operands == ["c"]]
    assert s["c"] == "'x', 'y'" and s[copy] == "'x'"


def test_the_header_says_what_may_be_chosen():
    text = f"""HloModule m, num_partitions=8, FLAGS
ENTRY e {{
  a = f32[8,8] parameter(0), sharding={{{MESH}, [{{'x'}}, {{}}]}}
  b = f32[8,8] parameter(1)
  ROOT c = f32[8,8] add(a, b)
}}"""
    flags = "allow_spmd_sharding_propagation_to_parameters={{false,{}}}"
    assert run(text.replace("FLAGS", flags.format("true")))[0]["b"] == "'x', "
    assert run(text.replace("FLAGS", flags.format("false")))[0]["b"] == ", "


def test_reasons_are_decisions():
    _, context = run(f"""HloModule m, num_partitions=8
ENTRY e {{
  a = f32[8,8] parameter(0), sharding={{{MESH}, [{{'x'}}, {{}}]}}
  b = f32[8,8] parameter(1), sharding={{{MESH}, [{{'y'}}, {{}}]}}
  ROOT c = f32[8,8] add(a, b)
}}""")
    told = [(d.ok, d.subject, d.reason) for d in context.trace.decisions]
    assert (True, "a", "%a dimension 0: 'x' given") in told
    assert (False, "a", "%a dimension 0: 'y' refused at %c: it is split along 'x' where another array has it") in told


def test_what_runs_asynchronously_has_no_reasons():
    found, _ = run(f"""HloModule m, num_partitions=8
rest {{
  p = f32[8,8] parameter(0)
  ROOT n = f32[8,8] negate(p)
}}
ENTRY main {{
  a = f32[8,8] parameter(0), sharding={{{MESH}, [{{'x'}}, {{}}]}}
  s = ((f32[8,8]), f32[8,8], u32[]) async-start(a), calls=rest
  d = f32[8,8] async-done(s)
  ROOT r = f32[8,8] add(d, a)
}}""")
    assert found["r"].startswith("'x'")


def test_a_scalar_keeps_its_sharding():
    module = parse(f"""HloModule m, num_partitions=8, allow_spmd_sharding_propagation_to_parameters={{false}}
ENTRY main {{
  a = f32[] parameter(0), sharding={{{MESH}, replicated}}
  ROOT s = f32[] custom-call(a), custom_call_target="Sharding", sharding={{{MESH}, unreduced}}
}}""")
    PassContext().run_pass(ShardingPropagation(), module)
    assert not ProgramShardings.read(module).of(module.entry.parameters[0]).unreduced


@pytest.mark.parametrize(
    "marker",
    [
        'custom-call(VALUE), custom_call_target="Sharding", sharding={unknown shard_as 0}',
        'custom-call(VALUE), custom_call_target="xla.sdy.ShardingGroup", custom_call_has_side_effect=true, '
        'frontend_attributes={xla.sdy.sharding_group_id="0 : i64"}',
    ],
)
def test_an_unused_member_of_a_group_counts(marker: str) -> None:
    """JAX's shard_alike(x, y)[1]: nothing uses x, whose sharding y shall have."""
    shape = "()" if "ShardingGroup" in marker else "s32[4,4]"
    lines = [
        "HloModule m, num_partitions=4\nENTRY e {",
        "x = s32[4,4] parameter(0), sharding={devices=[2,2]<=[4]}",
        "i = s32[4,4] iota(), iota_dimension=0",
        f"a = {shape} {marker.replace('VALUE', 'x')}",
        f"b = {shape} {marker.replace('VALUE', 'i')}",
        "ROOT r = s32[4,4] negate(i)\n}" if shape == "()" else "ROOT r = s32[4,4] negate(b)\n}",
    ]
    module = parse("\n".join(lines).replace("ENTRY", "\nENTRY"))
    module.header["allow_spmd_sharding_propagation_to_output"] = (True,)
    sharded().run(module, PassContext())
    found = module.entry.root.sharding
    assert found is not None and found.plain == parse_sharding("{devices=[2,2]<=[4]}")
