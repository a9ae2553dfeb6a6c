"""The shardings of a program: read from its text, asked, changed and written."""

from __future__ import annotations

import pytest

from heron.analysis.sharding.program import ProgramShardings
from heron.errors import HeronError
from heron.hlo.sharding import ShardGroup
from heron.hlo.sharding.atoms import TensorSharding
from heron.hlo.text import parse

MESH = "mesh['x'=2,'y'=4]"
PROGRAM = f"""HloModule m, num_partitions=8

ENTRY e {{
  a = f32[8,4] parameter(0), sharding={{{MESH}, [{{'y'}}, {{'x', ?}}p1]}}
  b = f32[8,4] parameter(1), sharding={{replicated}}
  c = f32[8,4] add(a, b)
  t = (f32[8,4], (f32[8,4], f32[])) custom-call(c), custom_call_target="f", sharding={{{{{MESH}, [{{?}}, {{}}]}}, {{manual}}, {{{MESH}, replicated}}}}
  d = f32[8,4] custom-call(c), custom_call_target="Sharding", sharding={{{MESH}, [{{?}}, {{?}}] shard_as 7}}
  m = f32[8,4] custom-call(c), custom_call_target="g", custom_call_has_side_effect=true, sharding={{maximal device=3}}
  ROOT r = (f32[8,4], f32[8,4]) tuple(c, d)
}}
"""  # noqa: E501


def _named(program: str = PROGRAM):
    module = parse(program)
    return module, {i.name: i for i in module.instructions()}


def test_read():
    module, at = _named()
    s = ProgramShardings.read(module)
    assert s.mesh.sizes == (2, 2, 2)
    assert s.of(at["a"]) == TensorSharding(((1, 2), (0,)), (False, True), priority=(0, 1))
    assert s.of(at["b"]) == TensorSharding.whole(2)
    assert s.of(at["c"]) == TensorSharding.free(2)
    assert s.of(at["r"], (1,)) == TensorSharding.free(2)
    assert s.of(at["t"], (0,)) == TensorSharding(((), ()), (True, False))
    assert s.of(at["t"], (1, 0)) == TensorSharding.whole(2, manual=(0, 1, 2))
    assert s.of(at["t"], (1, 1)) == TensorSharding.whole(0)
    assert s.groups == {at["d"]: ShardGroup(7)}
    assert not s.has(at["m"]) and not s.has(at["c"])


def test_written_and_read_again():
    module, at = _named()
    s = ProgramShardings.read(module)
    s.set(at["r"], (1,), TensorSharding.closed(((0,), ())))
    s.write(module)
    assert at["r"].extras["sharding"] == f"{{{{{MESH}, [{{?}}, {{?}}]}}, {{{MESH}, [{{'x'}}, {{}}]}}}}"
    assert at["m"].extras["sharding"] == "{maximal device=3}"
    copy, there = _named(str(module))
    again = ProgramShardings.read(copy)
    for name, i in at.items():
        for index, _ in i.shape.leaves():
            assert again.of(there[name], index) == s.of(i, index)
    assert again.groups == {there["d"]: ShardGroup(7)}
    before = str(copy)
    again.write(copy)
    assert str(copy) == before


def test_without_shardings_the_mesh_has_one_axis():
    s = ProgramShardings.read(parse("HloModule m, num_partitions=6\n\nENTRY e {\n  ROOT a = f32[] parameter(0)\n}\n"))
    assert s.mesh.sizes == (3, 2)


@pytest.mark.parametrize(
    ("sharding", "why"),
    [
        ("{devices=[8,1]<=[8]}", "not by the axes"),
        ("{mesh['x'=8], [{'x'}, {}]}", "one mesh"),
        (f"{{{MESH}, [{{'x'}}]}}", "1 dimensions"),
    ],
)
def test_refused(sharding: str, why: str):
    with pytest.raises(HeronError, match=why) as error:
        ProgramShardings.read(parse(PROGRAM.replace("{replicated}", sharding, 1)))
    assert error.value.code == "HLO027" and "%b" in str(error.value)


def test_a_mesh_has_the_devices_of_the_program():
    with pytest.raises(HeronError, match="a mesh of 8 devices in a program for 4") as error:
        ProgramShardings.read(parse(PROGRAM.replace("num_partitions=8", "num_partitions=4")))
    assert error.value.code == "HLO027" and "%a" in str(error.value) and "num_partitions" in str(error.value.hint)
