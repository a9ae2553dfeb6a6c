"""The pass large-reshards, and its options through a compile."""

from __future__ import annotations

import pytest

from heron.errors import HeronError
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework.context import PassContext
from heron.passes.sharding.large_reshards import LargeReshards

GATHER = """HloModule m, num_partitions=4
ENTRY e {
  x = f32[8,64] parameter(0)
  g = f32[32,64] all-gather(x), dimensions={0}, channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true,
    metadata={op_name="jit(f)/dot_general" source_file="model.py" source_line=12}
  ROOT n = f32[32,64] negate(g)
}
"""
LOOP = """HloModule m, num_partitions=4
body {
  p = (s32[], f32[1024], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[1024] get-tuple-element(p), index=1
  x = f32[8] get-tuple-element(p), index=2
  y = f32[8] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  ROOT t = (s32[], f32[1024], f32[8]) tuple(j, a, y)
}
cond {
  q = (s32[], f32[1024], f32[8]) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  n = s32[] constant(100)
  ROOT lt = pred[] compare(k, n), direction=LT
}
ENTRY e {
  a = f32[1024] parameter(0)
  z = s32[] constant(0)
  b = f32[1024] negate(a)
  x = f32[8] slice(b), slice={[0:8]}
  init = (s32[], f32[1024], f32[8]) tuple(z, b, x)
  ROOT loop = (s32[], f32[1024], f32[8]) while(init), condition=cond, body=body
}
"""


def run(text: str, **options: object) -> PassContext:
    context = PassContext(Options().replace(**options))
    assert not context.run_pass(LargeReshards(), parse(text))
    return context


def test_a_note_names_the_line() -> None:
    (note,) = run(GATHER).trace.notes
    assert "%g at model.py:12 dot_general" in note and "6,144 of 16,384 bytes, 38 %" in note


def test_the_share_is_an_option() -> None:
    assert run(GATHER, reshard_share=50).trace.notes == []


def test_rounds_of_a_loop_count() -> None:
    assert run(LOOP).trace.notes and not run(LOOP.replace("constant(100)", "constant(2)")).trace.notes


def test_a_warning() -> None:
    with pytest.warns(UserWarning, match="model.py:12") as raised:
        run(GATHER, large_reshards="warn")
    assert [(w.filename, w.lineno) for w in raised] == [("model.py", 12)]


def test_a_warning_without_a_line_is_at_the_caller() -> None:
    with pytest.warns(UserWarning, match="a large reshard: %g: ") as raised:
        run(
            GATHER.replace(' source_file="model.py" source_line=12', "").replace("dot_general", ""),
            large_reshards="warn",
        )
    assert [w.filename for w in raised] == [__file__]


def test_an_error() -> None:
    with pytest.raises(HeronError, match="SPMD030") as error:
        run(GATHER, large_reshards="error")
    assert "model.py:12" in error.value.what and "38 %" in (error.value.why or "")


def test_through_a_compile() -> None:
    from heron.backends.compiler import Compilation
    from heron.targets import get
    from heron.trace import Trace

    mesh = "mesh['x'=4]"
    text = f"""HloModule m, num_partitions=4
ENTRY e {{
  x = f32[64,64] parameter(0), sharding={{{mesh}, [{{'x'}}, {{}}]}}
  n = f32[64,64] negate(x)
  ROOT r = f32[64,64] custom-call(n), custom_call_target="Sharding", sharding={{{mesh}, [{{}}, {{'x'}}]}}
}}"""
    with pytest.raises(HeronError, match="SPMD030"):
        options = Options().replace(large_reshards="error", reshard_share=10)
        Compilation(parse(text), get("cpu"), options, Trace()).passes("partitioned")
