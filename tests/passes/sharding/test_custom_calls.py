"""Custom calls on several devices: by a user's partitioner, on one device, and on whole operands."""

from __future__ import annotations

import re

import numpy as np
import pytest

from heron.analysis.sharding.custom import PARTITIONERS, LocalCall
from heron.errors import HeronError
from heron.evaluator.calls import table
from heron.hlo.sharding import parse as parse_sharding
from heron.hlo.text import parse
from tests.passes.sharding.devices import agree, inputs_of, partition, sharded

MESH = "mesh['x'=2,'y'=4]"


def program(body: str):
    return parse(sharded(f"{MESH}\nHloModule m, num_partitions=8\nENTRY main {{\n{body}\n}}"))


@pytest.fixture
def counted(monkeypatch):
    """The calls of a custom call `add_up`, which gives its operand's sum and the operand doubled."""
    calls: list[np.ndarray] = []

    def evaluate(ev, i, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        del ev, i
        calls.append(x)
        return np.asarray(x.sum(dtype=np.float32)), x * 2

    monkeypatch.setitem(table._FUNCTIONS, "add_up", evaluate)
    return calls


CALL = """
  x = f32[10,6] parameter(0) @[{'y'}, {'x'}]@
  c = (f32[], f32[10,6]) custom-call(x), custom_call_target="add_up"%s
  s = f32[] get-tuple-element(c), index=0 @[]@
  d = f32[10,6] get-tuple-element(c), index=1 @[{}, {'x'}]@
  ROOT r = (f32[], f32[10,6]) tuple(s, d), sharding={{mesh['x'=2,'y'=4], []}, {mesh['x'=2,'y'=4], [{}, {'x'}]}}"""


def test_an_unknown_call_runs_on_whole_operands_everywhere(counted):
    agree(program(CALL % ""), inputs_of(program(CALL % "")))
    assert [x.shape for x in counted] == [(10, 6)] * 9


@pytest.mark.parametrize(
    "given", [", custom_call_has_side_effect=true", ", sharding={{maximal device=3}, {maximal device=3}}"]
)
def test_one_device_runs_a_call(counted, given):
    module = program(CALL % given)
    made = agree(module, inputs_of(module))
    assert len(counted) == 2
    assert f"constant({3 if 'maximal' in given else 0})" in str(made)


def test_a_function_of_python_is_called_once(monkeypatch):
    """Also where it has no side effects: JAX promises one call."""
    monkeypatch.setitem(table._FUNCTIONS, "xla_ffi_python_cpu_callback", lambda ev, i, x: (x + 1,))
    module = program("""
      x = f32[8,6] parameter(0) @[{'y'}, {}]@
      c = (f32[8,6]) custom-call(x), custom_call_target="xla_ffi_python_cpu_callback", api_version=API_VERSION_TYPED_FFI
      ROOT r = f32[8,6] get-tuple-element(c), index=0 @[{'x'}, {}]@""")
    assert "conditional(" in str(agree(module, inputs_of(module)))


def test_a_call_of_matrices_keeps_its_layouts():
    module = program("""
      a = f32[8,4,4] parameter(0) @[{'y','x'}, {}, {}]@
      c = (f32[8,4,4]{1,2,0}, f32[8,4]{1,0}) custom-call(a), custom_call_target="lapack_sgeqrf_ffi",
        operand_layout_constraints={f32[8,4,4]{1,2,0}}, api_version=API_VERSION_TYPED_FFI,
        sharding={{mesh['x'=2,'y'=4], [{'y','x'}, {}, {}]}, {mesh['x'=2,'y'=4], [{'y','x'}, {}]}}
      ROOT q = f32[8,4,4]{1,2,0} get-tuple-element(c), index=0 @[{'y','x'}, {}, {}]@""")
    text = str(agree(module, inputs_of(module), tolerance=1e-5))
    assert "(f32[1,4,4]{1,2,0}, f32[1,4]{1,0}) custom-call(" in text
    assert "operand_layout_constraints={f32[1,4,4]{1,2,0}}" in text
    assert "all-" not in text


def test_dimensions_that_a_users_rule_gives_to_one_array_are_whole(monkeypatch):
    """JAX writes rules of matrices so."""
    monkeypatch.setitem(table._FUNCTIONS, "turned", lambda ev, i, x: x[:, ::-1])
    rule = "#sdy.op_sharding_rule<([i, j])->([i, k]) {i=8, j=4, k=4}, custom>"
    module = program(f"""
      a = f32[8,4] parameter(0) @[{{'x'}}, {{'y'}}]@
      ROOT c = f32[8,4] custom-call(a), custom_call_target="turned",
        frontend_attributes={{xla.sdy.sharding_rule="{rule}"}} @[{{'x'}}, {{'y'}}]@""")
    assert re.search(r"f32\[\d,4\]\{1,0\} custom-call\(", str(agree(module, inputs_of(module))))


class _Rows:
    """Computes sums along rows, which are whole, in the tiles of the result."""

    def __init__(self, given: str, made: str) -> None:
        self.given, self.made = given, made

    def partition(self, call, operands, result):
        del call, operands, result
        text = """HloModule rows
          add { a = f32[] parameter(0)
            b = f32[] parameter(1)
            ROOT s = f32[] add(a, b) }
          ENTRY e {
            x = f32[5,6] parameter(0)
            zero = f32[] constant(0)
            s = f32[5] reduce(x, zero), dimensions={1}, to_apply=add
            g = f32[5] all-reduce(s), channel_id=1, replica_groups={{0},{1},{2},{3},{4},{5},{6},{7}},
              use_global_device_ids=true, to_apply=add
            ROOT t = (f32[5]) tuple(g) }"""
        return LocalCall(parse(text), (parse_sharding(self.given),), parse_sharding(self.made))


USER = """
  x = f32[10,6] parameter(0) @[{'y'}, {}]@
  c = f32[10] custom-call(x), custom_call_target="rows" @[{'x'}]@
  ROOT r = f32[10] add(c, c) @[{'y'}]@"""


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", "{devices=[2,4]<=[8] last_tile_dim_replicate}"),
        (f"{{{MESH}, [{{'x'}}, {{}}]}}", f"{{{MESH}, [{{'x'}}]}}"),
    ],
)
def test_a_users_partitioner(monkeypatch, given, made):
    monkeypatch.setitem(PARTITIONERS, "rows", _Rows(given, made))
    monkeypatch.setitem(table._FUNCTIONS, "rows", lambda ev, i, x: x.sum(1))
    module = program(USER)
    agree(module, inputs_of(module))


def test_a_users_partitioner_with_another_mesh(monkeypatch):
    tiles = "{devices=[2,1,4]0,2,4,7,1,3,5,6 last_tile_dim_replicate}"
    monkeypatch.setitem(PARTITIONERS, "rows", _Rows(tiles, "{replicated}"))
    with pytest.raises(HeronError) as error:
        partition(program(USER))
    assert error.value.code == "SPMD020"


def test_markers_that_give_nothing_go():
    module = program("""
      x = f32[10,6] parameter(0) @[{'y'}, {}]@
      c = () custom-call(x), custom_call_target="xla.sdy.ShardingGroup", custom_call_has_side_effect=true
      ROOT r = f32[10,6] add(x, x) @[{'y'}, {}]@""")
    assert "custom-call" not in str(agree(module, inputs_of(module)))
