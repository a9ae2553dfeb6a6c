"""Propagation: what follows from the shardings that the user gave."""

from __future__ import annotations

import pytest

from heron.analysis.sharding.program import ProgramShardings
from heron.analysis.sharding.propagate import Propagated, propagate
from heron.analysis.sharding.reasons import Reasons, sharding_text
from heron.errors import HeronError
from heron.hlo.text import parse

MESH = "mesh['x'=2,'y'=4]"


def shardings(body: str, mesh: str = MESH, calls: str = "", **allowed: tuple[bool, ...]) -> dict[str, str]:
    """The sharding of each leaf by name; in `body` an annotation ``@[{'x'}, {}]`` stands for ``sharding=``."""
    return {name: text for name, text in _run(body, mesh, calls, **allowed)[0].items()}


def _run(
    body: str, mesh: str = MESH, calls: str = "", **allowed: tuple[bool, ...]
) -> tuple[dict[str, str], Propagated, dict]:
    def spelled(text: str) -> str:
        return text.replace("@@[", f"{{{mesh}, [").replace("@[", f"sharding={{{mesh}, [")

    lines = [line + ("}" if "@[" in line else "") for line in spelled_lines(body, calls)]
    module = parse(spelled("HloModule m, num_partitions=8\n" + "\n".join(lines)))
    found = ProgramShardings.read(module)
    done = propagate(module, found, **allowed)
    named = {i.name: i for i in module.instructions() if i in done.flow.leaves}
    texts: dict[str, str] = {}
    for name, i in named.items():
        for index, leaf in i.shape.leaves():
            if leaf.is_array:
                texts[name + "".join(f".{n}" for n in index)] = sharding_text(done, found.of(i, index))
    return texts, done, named


def spelled_lines(body: str, calls: str) -> list[str]:
    return [*calls.splitlines(), "ENTRY e {", *body.splitlines(), "}"]


def test_a_product_has_the_axes_of_both_operands():
    s = shardings("""
      a = f32[8,16] parameter(0), @[{'x'}, {}]
      b = f32[16,8] parameter(1), @[{}, {'y'}]
      d = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT n = f32[8,8] negate(d)""")
    assert s["d"] == s["n"] == "[{'x'}, {'y'}]"


def test_users_pass_axes_back_to_operands():
    s = shardings("""
      a = f32[8,16] parameter(0)
      b = f32[16,8] parameter(1)
      d = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT n = f32[8,8] negate(d), @[{'x'}, {'y'}]""")
    assert s["a"] == "[{'x'}, {}]" and s["b"] == "[{}, {'y'}]"


def test_a_contracted_dimension_passes_sideways():
    s = shardings("""
      a = f32[8,16] parameter(0), @[{?}, {'x'}]
      b = f32[16,8] parameter(1)
      ROOT d = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}""")
    assert s["b"] == "[{'x'}, {}]" and s["d"] == "[{}, {}]"


@pytest.mark.parametrize(
    "first, second, result",
    [
        ("{'x'}", "{'x', ?}", "{'x'}"),
        ("{'x', 'y'}", "{?}", "{'x', 'y'}"),
        ("{'x', 'y'}", "{'x', ?}", "{'x', 'y'}"),
        ("{'x'}", "{'y'}", "{}"),  # nothing is agreed on
        ("{'x', 'y':(1)2}", "{'x', 'y'}", "{'x', 'y'}"),
        ("{'x', 'y':(1)2}", "{'x', 'y':(2)2}", "{'x'}"),
    ],
)
def test_the_longest_list_that_all_agree_on(first: str, second: str, result: str):
    s = shardings(f"""
      a = f32[16] parameter(0), @[{first}]
      b = f32[16] parameter(1), @[{second}]
      ROOT c = f32[16] add(a, b)""")
    assert s["c"] == f"[{result}]"


def test_what_the_user_closed_stays():
    s = shardings("""
      a = f32[8,8] parameter(0), @[{'x'}, {}]
      b = f32[8,8] parameter(1), @[{}, {'y'}]
      c = f32[8,8] add(a, b)
      ROOT r = f32[8,8] negate(c), @[{'x', ?}, {}]""")
    assert s["a"] == "[{'x'}, {}]" and s["b"] == "[{}, {'y'}]" and s["r"] == "[{'x'}, {}]"


def test_replicated_axes_are_not_used():
    s = shardings("""
      a = f32[8,8] parameter(0), @[{'x'}, {'y'}]
      n = f32[8,8] negate(a), @[{?}, {?}], replicated={'x'}
      ROOT r = f32[8,8] negate(n)""")
    assert s["n"] == s["r"] == "[{}, {'y'}]"


def test_an_axis_splits_one_dimension_of_a_value():
    """The larger operand decides."""
    s = shardings("""
      a = f32[32,8] parameter(0), @[{'x'}, {}]
      b = f32[8,16] parameter(1), @[{}, {'x'}]
      ROOT d = f32[32,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}""")
    assert s["d"] == "[{'x'}, {}]"


def test_reshape_deals_axes_out_to_factors():
    s = shardings("""
      a = f32[8,6] parameter(0), @[{'x', 'y':(1)2}, {}]
      r = f32[2,24] reshape(a)
      ROOT t = (f32[2,24]) tuple(r)""")
    assert s["r"] == "[{'x'}, {'y':(1)2}]"


def test_an_outer_factor_is_split_evenly():
    s = shardings("""
      a = f32[6,4] parameter(0), @[{'y'}, {}]
      ROOT r = f32[24] reshape(a)""")
    assert s["r"] == "[{'y':(1)2}]"


def test_later_users_see_elementwise_ops_first():
    """The product would take y, but the sum's axes come earlier."""
    s = shardings("""
      a = f32[8,16] parameter(0), @[{'y'}, {}]
      b = f32[16,8] parameter(1), @[{}, {}]
      z = f32[8,8] parameter(2), @[{'x'}, {}]
      d = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT s = f32[8,8] add(d, z)""")
    assert s["d"] == s["s"] == "[{'x'}, {}]"


def test_user_priorities_come_first():
    s = shardings("""
      a = f32[8,8] parameter(0), @[{?}, {'x', ?}p1]
      b = f32[8,8] parameter(1), @[{'x', ?}, {?}]
      ROOT s = f32[8,8] add(a, b)""")
    assert s["s"] == "[{'x'}, {}]" and s["a"] == "[{}, {'x'}]"


LOOP = """
body {
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[8,8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[8,8] negate(v)
  ROOT t = (s32[], f32[8,8]) tuple(j, w)
}
cond {
  q = (s32[], f32[8,8]) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  n = s32[] constant(5)
  ROOT lt = pred[] compare(k, n), direction=LT
}"""


def test_a_loop_has_one_sharding_for_what_it_carries():
    s = shardings(
        """
      a = f32[8,8] parameter(0), @[{'x'}, {}]
      z = s32[] constant(0)
      init = (s32[], f32[8,8]) tuple(z, a)
      loop = (s32[], f32[8,8]) while(init), condition=cond, body=body
      ROOT r = f32[8,8] get-tuple-element(loop), index=1""",
        calls=LOOP,
    )
    assert {s[n] for n in ("loop.1", "p.1", "q.1", "v", "w", "t.1", "r", "init.1")} == {"[{'x'}, {}]"}


def test_branches_give_and_take():
    calls = """
yes {
  p = f32[8,8] parameter(0)
  ROOT n = f32[8,8] negate(p)
}
no {
  q = f32[8,8] parameter(0)
  ROOT m = f32[8,8] tanh(q)
}"""
    s = shardings(
        """
      which = pred[] parameter(0)
      a = f32[8,8] parameter(1), @[{'x'}, {}]
      b = f32[8,8] parameter(2)
      ROOT c = f32[8,8] conditional(which, a, b), true_computation=yes, false_computation=no""",
        calls=calls,
    )
    assert {s[n] for n in ("p", "n", "c", "m", "q", "b")} == {"[{'x'}, {}]"}


@pytest.mark.parametrize("direction, reached", [("FORWARD", ("c", "r")), ("BACKWARD", ()), ("NONE", ())])
def test_a_barrier_lets_one_direction_through(direction: str, reached: tuple[str, ...]):
    s = shardings(f"""
      a = f32[8] parameter(0), @[{{'x'}}]
      c = f32[8] custom-call(a), custom_call_target="xla.sdy.PropagationBarrier", frontend_attributes={{xla.sdy.allowed_direction="{direction}"}}
      ROOT r = f32[8] negate(c)""")  # noqa: E501
    assert {n for n in ("c", "r") if s[n] == "[{'x'}]"} == set(reached)


def test_barriers_of_gspmd():
    s = shardings("""
      a = f32[8] parameter(0), @[{'x'}]
      f = f32[8] custom-call(a), custom_call_target="ShardBarrierFrom"
      t = f32[8] custom-call(a), custom_call_target="ShardBarrierTo"
      ROOT r = (f32[8], f32[8]) tuple(f, t)""")
    assert s["f"] == "[{}]" and s["t"] == "[{'x'}]"


def test_a_copy_of_a_tuple_has_the_shardings_of_its_parts():
    s = shardings("""
      a = f32[8] parameter(0), @[{'x'}]
      b = f32[4,4] parameter(1), @[{}, {'y'}]
      t = (f32[8], f32[4,4]) tuple(a, b)
      ROOT c = (f32[8], f32[4,4]) copy(t)""")
    assert s["c.0"] == "[{'x'}]" and s["c.1"] == "[{}, {'y'}]"


def test_an_optimization_barrier_is_passed():
    s = shardings("""
      a = f32[8] parameter(0), @[{'x'}]
      b = f32[4] parameter(1)
      t = (f32[8], f32[4]) tuple(a, b)
      o = (f32[8], f32[4]) opt-barrier(t)
      ROOT r = f32[8] get-tuple-element(o), index=0""")
    assert s["o.0"] == s["r"] == "[{'x'}]"


def test_a_group_is_sharded_alike():
    s = shardings("""
      a = f32[8,8] parameter(0), @[{'x'}, {}]
      b = f32[8,8] parameter(1)
      g = f32[8,8] custom-call(a), custom_call_target="Sharding", @[{?}, {?}] shard_as 3
      h = f32[8,8] custom-call(b), custom_call_target="Sharding", @[{?}, {?}] shard_as 3
      ROOT r = (f32[8,8], f32[8,8]) tuple(g, h)""")
    assert s["g"] == s["h"] == s["b"] == "[{'x'}, {}]"


def test_marked_values_are_sharded_as_their_group():
    """At once: the sum would take y from b otherwise."""
    s = shardings("""
      a = f32[8,8] parameter(0), @[{'x', ?}, {?}]
      b = f32[8,8] parameter(1), @[{?}, {'y', ?}]
      n = f32[8,8] negate(a)
      m = f32[8,8] negate(b)
      g = f32[8,8] custom-call(n), custom_call_target="Sharding", @[{?}, {?}] shard_as 3
      h = f32[8,8] custom-call(m), custom_call_target="Sharding", @[{?}, {?}] shard_as 3
      ROOT r = (f32[8,8], f32[8,8]) tuple(n, m)""")
    assert s["n"] == s["m"] == s["g"] == s["h"]


def test_members_with_shardings_of_their_own_keep_them():
    s = shardings("""
      a = f32[8,8] parameter(0), @[{'x'}, {}]
      b = f32[8,8] parameter(1), @[{}, {'y'}]
      g = f32[8,8] custom-call(a), custom_call_target="Sharding", @[{?}, {?}] shard_as 3
      h = f32[8,8] custom-call(b), custom_call_target="Sharding", @[{?}, {?}] shard_as 3
      ROOT r = (f32[8,8], f32[8,8]) tuple(g, h)""")
    assert s["a"] == "[{'x'}, {}]" and s["b"] == "[{}, {'y'}]" and s["g"] == s["h"]


def test_a_group_needs_one_shape():
    with pytest.raises(HeronError, match="different shapes"):
        shardings("""
      a = f32[8,8] parameter(0)
      b = f32[8,4] parameter(1)
      g = f32[8,8] custom-call(a), custom_call_target="Sharding", @[{?}, {?}] shard_as 3
      h = f32[8,4] custom-call(b), custom_call_target="Sharding", @[{?}, {?}] shard_as 3
      ROOT r = (f32[8,8], f32[8,4]) tuple(g, h)""")


def test_inside_a_manual_computation_the_other_axes_pass():
    s = shardings("""
      a = f32[8,8] parameter(0), @[{'x'}, {'y'}]
      c = f32[8,8] custom-call(a), custom_call_target="Sharding", @[{'x', ?}, {?}]
      l = f32[4,8] custom-call(c), custom_call_target="SPMDFullToShardShape", @[{?}, {?}], manual={'x'}
      n = f32[4,8] negate(l), @[{?}, {?}], manual={'x'}
      ROOT g = f32[8,8] custom-call(n), custom_call_target="SPMDShardToFullShape", @[{'x', ?}, {?}]""")
    assert s["l"] == s["n"] == "[{}, {'y'}], manual={'x'}"
    assert s["c"] == s["g"] == "[{'x'}, {'y'}]"


def test_axes_cross_the_border_where_they_divide_the_local_size():
    s = shardings("""
      l = f32[1,8] parameter(0), @[{?}, {?}], manual={'y'}
      n = f32[1,8] negate(l), @[{'x'}, {?}], manual={'y'}
      g = f32[4,8] custom-call(n), custom_call_target="SPMDShardToFullShape", @[{'y', ?}, {?}]
      ROOT r = (f32[4,8]) tuple(g)""")
    assert s["g"] == "[{'y'}, {}]"


def test_what_may_not_be_chosen_is_whole():
    body = """
      a = f32[8,8] parameter(0), @[{'x'}, {}]
      b = f32[8,8] parameter(1)
      c = f32[8,8] add(a, b)
      ROOT r = (f32[8,8], f32[8,8]) tuple(c, c)"""
    assert shardings(body)["b"] == "[{'x'}, {}]"
    s = shardings(body, parameters=(False, False), results=(False, True))
    assert s["b"] == "[{}, {}]" and s["r.0"] == "[{}, {}]" and s["r.1"] == s["c"] == "[{'x'}, {}]"


def test_results_are_split_by_whole_axes_that_divide():
    s = shardings("""
      a = f32[6,16] parameter(0)
      c = f32[6,16] custom-call(a), custom_call_target="Sharding", @[{'y'}, {'x'}]
      n = f32[6,16] negate(c)
      ROOT r = (f32[6,16]) tuple(n)""")
    assert s["n"] == "[{'y'}, {'x'}]" and s["r.0"] == "[{}, {'x'}]" and s["a"] == "[{}, {'x'}]"


def test_shardings_of_a_tuple_count_for_what_it_holds():
    s = shardings(f"""
      a = f32[8] parameter(0)
      b = f32[8] negate(a)
      t = (f32[8], f32[8]) tuple(a, b), sharding={{{{{MESH}, [{{?}}]}}, {{{MESH}, [{{'x'}}]}}}}
      ROOT r = f32[8] get-tuple-element(t), index=1""")
    assert s["b"] == s["r"] == "[{'x'}]"


def test_the_reasons_lead_back_to_what_was_given():
    _, done, at = _run("""
      a = f32[8,16] parameter(0), @[{'x'}, {}]
      b = f32[16,8] parameter(1), @[{}, {'x'}]
      c = f32[16,8] parameter(2), @[{}, {'y'}]
      s = f32[16,8] add(b, c)
      d = f32[8,8] dot(a, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      n = f32[8,8] negate(d)
      ROOT r = (f32[8,8], f32[16,8]) tuple(n, s)""")
    reasons = Reasons(done)
    assert list(map(str, reasons.chain(at["n"]))) == [
        "%n dimension 0: 'x' from %d by the negate %n (level 3, along pass-through factors)",
        "%d dimension 0: 'x' from %a by the dot %d (level 3, along pass-through factors)",
        "%a dimension 0: 'x' given",
        "%n dimension 1: 'y' from %d by the negate %n (level 3, along pass-through factors)",
        "%d dimension 1: 'y' from %c by the dot %d (level 3, along pass-through factors)",
        "%c dimension 1: 'y' given",
    ]
    assert [str(r) for r in reasons.refusals(at["c"])] == [
        "%c dimension 1: 'x' refused at %s: it is split along 'y' where another array has it"
    ]
