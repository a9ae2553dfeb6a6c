"""Results that nobody fixed keep an axis along which they would be gathered; others stay as propagation wants them."""

from __future__ import annotations

from collections.abc import Callable

from heron.hlo.ir.module import Module
from heron.hlo.sharding import parse as parse_sharding
from heron.hlo.text import parse
from heron.passes.devices import device_pipelines
from heron.passes.framework.context import PassContext
from tests.passes.sharding.devices import agree_compiled, agree_open, inputs_of, sharded
from tests.passes.sharding.programs import wire_bytes

MESH = "mesh['x'=2,'y'=4]"
MERGED = sharded(f"""{MESH}
HloModule merged, num_partitions=8

ENTRY main {{
  a = f32[16,8] parameter(0) @[{{'x'}}, {{'y'}}]@
  b = f32[8,6] parameter(1) @[{{'x','y'}}, {{}}]@
  u = f32[4,4,8] reshape(a)
  t = f32[4,4,8] transpose(u), dimensions={{1,0,2}}
  v = f32[16,8] reshape(t)
  w = f32[4,12] reshape(b)
  ROOT r = (f32[16,8], f32[4,12]) tuple(v, w)
}}
""")


SUMMED = sharded("""mesh['x'=4]
HloModule step, num_partitions=4

ENTRY main {
  p = f32[8,4] parameter(0) @[{}, {}]@
  x = f32[16,8] parameter(1) @[{'x'}, {}]@
  y = f32[16,4] parameter(2) @[{'x'}, {}]@
  g = f32[8,4] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT n = f32[8,4] subtract(p, g)
}
""")


def results(text: str, agree: Callable[..., Module] = agree_open) -> tuple[list[str], list[str], float]:
    """The dimensions of the results' shardings, the collectives, and the bytes on the wire of the program of one
    device, whose values are those of the global one."""
    module = parse(text)
    made = agree(module, inputs_of(module))
    sharding = parse_sharding(made.spmd_output_sharding or "")
    dims = [str(s).split(", ", 1)[1][:-1] for s in sharding.elements or (sharding,)]
    sent, kinds = wire_bytes(made)
    return dims, sorted(kinds), sent


def test_data_is_not_gathered_for_results():
    dims, kinds, sent = results(MERGED)
    assert dims == ["[{'x'}, {'y'}]", "[{'x'}, {'y'}]"]
    assert kinds == ["all-to-all", "collective-permute"]
    assert sent == 32 + 12 + 24  # 136 where both are gathered


def test_one_result_keeps_an_axis_too():
    """The value that is returned is split by parts of an axis, which results are not."""
    dims, _, _ = results(MERGED.replace("ROOT r = (f32[16,8], f32[4,12]) tuple(v, w)", "ROOT n = f32[4,12] negate(w)"))
    assert dims == ["[{'x'}, {'y'}]"]


def test_a_result_that_is_constrained_stays():
    constraint = f"""custom-call(v), custom_call_target="Sharding", sharding={{{MESH}, [{{}}, {{'y'}}]}}"""
    text = MERGED.replace("ROOT r = (f32[16,8], f32[4,12]) tuple(v, w)", f"ROOT c = f32[16,8] {constraint}")
    assert results(text, agree_compiled)[:2] == (["[{}, {'y'}]"], ["all-gather"])


def test_what_follows_a_constraint_stays():
    text = sharded("""mesh['x'=2,'y'=2]
HloModule follows, num_partitions=4

ENTRY main {
  a = f32[8,2] parameter(0) @[{'x'}, {'y'}]@
  c = f32[8,2] custom-call(a), custom_call_target="Sharding" @[{'x'}, {}]@
  ROOT n = f32[8,2] negate(c)
}
""")
    module = parse(text)
    for pipeline in device_pipelines().values():
        pipeline.run(module, PassContext())
    assert module.spmd_output_sharding == "{mesh['x'=2,'y'=2], [{'x'}, {}]}"


def test_a_result_in_the_memory_of_a_parameter_stays_as_large():
    alias = "num_partitions=8, input_output_alias={ {0}: (2, {}, may-alias) }"
    text = MERGED.replace("num_partitions=8", alias).replace(
        "  u =", "  c = f32[16,8] parameter(2) @[{}, {'y'}]@\n  u ="
    )
    dims, _, _ = results(sharded(f"{MESH}\n{text}"))
    assert dims == ["[{}, {'y'}]", "[{'x'}, {'y'}]"]


def test_a_sum_is_the_same_on_all_devices():
    """New parameters of a train step: the next call takes them as the first one did."""
    assert results(SUMMED)[:2] == (["[{}, {}]"], ["all-reduce"])


def test_slices_and_products_stay():
    """As users of JAX know them: what the other sharding of a dimension would give is no part of the data."""
    text = sharded("""mesh['x'=2,'y'=2]
HloModule slices, num_partitions=4

ENTRY main {
  a = f32[8,4] parameter(0) @[{'x'}, {'y'}]@
  s = f32[8,1] slice(a), slice={[0:8], [3:4]}
  t = f32[4,8] transpose(a), dimensions={1,0}
  d = f32[8,8] dot(a, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[8,1], f32[8,8]) tuple(s, d)
}
""")
    assert results(text)[0] == ["[{'x'}, {}]", "[{'x'}, {}]"]
