"""Shardy's text of meshes and shardings."""

from __future__ import annotations

import pytest

from heron.errors import HeronError
from heron.hlo.ir import replica_groups
from heron.hlo.proto import from_proto, to_proto
from heron.hlo.sharding import Mesh
from heron.hlo.sharding.shardy import read_group, read_manual_axes, read_meshes, read_sharding, read_shardings
from heron.hlo.text import parse
from heron.hlo.verifier import verify

MESHES = read_meshes(
    '{mesh = #sdy.mesh<["x"=2, "y"=4]>, turned = #sdy.mesh<["a"=2], device_ids=[1, 0]>, '
    "empty = #sdy.mesh<[]>, one = #sdy.mesh<[], device_ids=[3]>}"
)


def test_meshes():
    assert MESHES == {
        "mesh": Mesh((("x", 2), ("y", 4))),
        "turned": Mesh((("a", 2),), (1, 0)),
        "empty": Mesh(()),
        "one": Mesh((), (3,)),
    }
    assert read_meshes("{}") == {}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('<@mesh, [{"x", ?}, {"y":(1)2}p1]>', "{mesh['x'=2,'y'=4], [{'x', ?}, {'y':(1)2}p1]}"),
        ('#sdy.sharding<@mesh, [{?}], replicated={"x"}>', "{mesh['x'=2,'y'=4], [{?}], replicated={'x'}}"),
        ('<@mesh, [], unreduced={"y"}>', "{mesh['x'=2,'y'=4], [], unreduced={'y'}}"),
        ('<mesh<["q"=3]>, [{"q"}]>', "{mesh['q'=3], [{'q'}]}"),
        ("<@turned, []>", "{mesh['a'=2], device_ids=(1,0), replicated}"),
        ("<@one, []>", "{maximal device=3}"),
    ],
)
def test_shardings(text: str, wanted: str):
    assert str(read_sharding(text, MESHES)) == wanted


def test_shardings_of_several_values():
    text = '#sdy.sharding_per_value<[<@mesh, [{"x"}]>, #sdy.sharding<@mesh, []>]>'
    assert [str(s) for s in read_shardings(text, MESHES)] == [
        "{mesh['x'=2,'y'=4], [{'x'}]}",
        "{mesh['x'=2,'y'=4], replicated}",
    ]
    assert read_shardings("#sdy.sharding_per_value<[]>", MESHES) == []
    assert len(read_shardings("#sdy.sharding<@mesh, []>", MESHES)) == 1


def test_axes_and_groups():
    assert read_manual_axes('#sdy<manual_axes{"x", "a b"}>') == ("x", "a b")
    assert read_group("7 : i64") == 7


@pytest.mark.parametrize("text", ["<@other, []>", '<@mesh, [{"z"}]>', "<@mesh, []", '<@mesh, [{"x"}, {"x"}]>', "<>"])
def test_refused(text: str):
    with pytest.raises(HeronError) as error:
        read_sharding(text, MESHES)
    assert error.value.code == "HLO027"


def test_groups_over_a_mesh_with_devices_in_another_order():
    """XLA writes them so for every group that is no plain iota."""
    line = (
        "  ROOT %r = f32[8]{0} all-gather(%a), channel_id=1, replica_groups=mesh['axis_0'=2,'axis_1'=4], "
        "device_ids=([4,2]T(1,0)) {'axis_0'}, dimensions={0}, use_global_device_ids=true\n"
    )
    text = (
        "HloModule m, entry_computation_layout={(f32[4]{0})->f32[8]{0}}, num_partitions=8\n\n"
        f"ENTRY %e (a: f32[4]) -> f32[8] {{\n  %a = f32[4]{{0}} parameter(0)\n{line}}}\n"
    )
    module = parse(text)
    assert line in str(module)
    verify(module)
    assert replica_groups.parse(module.entry.root.replica_groups) == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert str(from_proto(to_proto(module))) == str(module)
