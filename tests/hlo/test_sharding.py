"""Shardings: text in and out, equality, and questions, against XLA's own."""

from __future__ import annotations

import json
import subprocess
import sys
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.errors import HeronError
from heron.hlo import text
from heron.hlo.ir.metadata import Metadata
from heron.hlo.ir.shape import row_major, tuple_
from heron.hlo.ir.types import F32
from heron.hlo.sharding import Axis, Iota, Kind, Mesh, NamedSharding, ShardGroup, Sharding, Split, parse

#: XLA prints these as they are
PRINTED = """{replicated}
{manual}
{unknown}
{unreduced}
{maximal device=3}
{replicated shard_as 3}
{maximal device=3 shard_like 7}
{devices=[2,2]0,1,2,3}
{devices=[2,2]3,1,2,0}
{devices=[1,1]<=[1]}
{devices=[2,2]<=[4] shard_like 7}
{devices=[2,2]<=[2,2]T(1,0)}
{devices=[2,4]<=[2,2,2]T(1,0,2)}
{devices=[2,1,2]<=[4] last_tile_dim_replicate}
{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dims={manual}}
{devices=[1,2,2,2]<=[8] last_tile_dims={manual, replicated}}
{devices=[1,2,2,2]<=[8] last_tile_dims={unreduced, replicated}}
{devices=[2,2]1,0,3,2 last_tile_dims={manual} shard_as 2}
{}
{{devices=[2]<=[2]}, {replicated}, {mesh['x'=2], [{'x'}]}}
{mesh['x'=2,'y'=4], replicated}
{mesh['x'=2,'y'=4], manual}
{mesh['x'=2,'y'=4], unreduced}
{mesh['x'=2,'y'=4], [{}, {}]}
{mesh['x'=2,'y'=4], [{'y'}, {'x'}]}
{mesh['x'=2,'y'=4], [{'x', 'y'}, {}]}
{mesh['x'=2,'y'=4], [{'x', ?}, {?}]}
{mesh['x'=2,'y'=4], [{'y':(2)2}, {}], replicated={'x'}}
{mesh['x'=2,'y'=4], [{'y':(2)2}, {'y':(1)2}]}
{mesh['x'=2,'y'=4], [{}, {}], unreduced={'x'}, manual={'y'}}
{mesh['x'=2,'y'=4,'z'=2], [{'x'}, {}], manual={'z'}}
{mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)), [{'x'}, {'y'}]}
{mesh['x'=2,'y'=2], device_ids=(3,1,2,0), [{'x'}, {}]}
{mesh['x'=2,'y'=6], device_ids=([4,3]T(1,0)), [{'y'}, {}]}
{mesh['x'=2,'y'=6], device_ids=([3,4]T(1,0)), [{'y'}, {'x'}]}
{maximal_mesh[device_id=5]}""".splitlines()

#: XLA prints these otherwise
CANONICAL = """{devices=[2,2]<=[2,1,2]T(2,1,0)}
{devices=[2,4]<=[2,2,2]T(2,0,1)}
{devices=[1,1,4]<=[4] last_tile_dim_replicate}
{devices=[1,1,8]<=[8] last_tile_dims={manual}}
{devices=[2,2,1]<=[4] last_tile_dim_replicate}
{devices=[1,2,2,2]<=[8] last_tile_dims={replicated, manual}}
{devices=[1,2,2,2]<=[8] last_tile_dims={manual, manual}}
{devices=[1,2,1,2,2]<=[8] last_tile_dims={unreduced, manual, replicated}}
{devices=[2,1,4,2]<=[16] last_tile_dims={replicated, unreduced}}
{devices=[2,4]<=[2,2,2]T(1,2,0) last_tile_dim_replicate}
{devices=[2,3,1,1,2]<=[3,4]T(1,0) last_tile_dims={replicated, manual}}
{devices=[2,2]3,2,1,0 last_tile_dim_replicate}""".splitlines()


@pytest.fixture
def xla() -> Any:
    return pytest.importorskip("jaxlib._hlo").HloSharding


@pytest.mark.parametrize("line", PRINTED)
def test_text(line: str, xla: Any) -> None:
    theirs = xla.from_string(line)
    assert str(theirs) == line
    assert str(parse(line)) == line
    assert parse(line) is parse(line)
    if not line.startswith("{{") and line != "{}":
        assert str(parse(line).canonical()) == str(theirs.v3_to_v2_sharding())


@pytest.mark.parametrize("line", CANONICAL)
def test_canonical_form(line: str, xla: Any) -> None:
    assert str(parse(line)) == line
    assert str(parse(line).canonical()) == str(xla.from_string(line))


def test_can_be_imported_first() -> None:
    ran = subprocess.run([sys.executable, "-c", "import heron.hlo.sharding"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_metadata_is_kept_and_does_not_count() -> None:
    for line in (
        '{replicated metadata={op_name="s" source_line=2}}',
        '{devices=[2]<=[2] metadata={{op_name="s"}, {op_name="t"}}}',
        "{mesh['x'=2], [{'x'}], metadata={{op_name=\"s\"}}}",
    ):
        s = parse(line)
        assert str(s) == line
        assert s == s.with_metadata() and hash(s) == hash(s.with_metadata())
        assert str(s.with_metadata(Metadata(op_name="n"))).count('op_name="n"') == 1


# -- made up ---------------------------------------------------------------------------------------------------------
@st.composite
def iotas(draw: st.DrawFn) -> Iota:
    dims = draw(st.lists(st.sampled_from((1, 2, 3, 4)), min_size=1, max_size=4))
    return Iota.of(dims, draw(st.permutations(range(len(dims)))))


def _factored(draw: st.DrawFn, n: int, count: int) -> list[int]:
    dims = []
    for _ in range(count - 1):
        dims.append(draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0])))
        n //= dims[-1]
    return draw(st.permutations([*dims, n]))


@st.composite
def tilings(draw: st.DrawFn) -> Sharding:
    iota = draw(iotas())
    subgroups = draw(st.lists(st.sampled_from((Kind.MANUAL, Kind.UNREDUCED, Kind.REPLICATED)), max_size=2))
    dims = _factored(draw, iota.size, draw(st.integers(1, 3)) + len(subgroups))
    devices: Any = iota
    if draw(st.booleans()):
        devices = draw(st.permutations(range(iota.size)))
    return Sharding.tile(dims, devices, subgroups)


@st.composite
def meshes(draw: st.DrawFn) -> Sharding:
    """As XLA writes them: no parts of an axis side by side that make one part, no lists or iotas without need."""
    sizes = draw(st.lists(st.sampled_from((2, 3, 4, 8)), min_size=1, max_size=3))
    devices: Any = draw(st.sampled_from((None, "iota", "list")))
    if devices == "iota":
        found = Iota.of(draw(st.permutations(sizes)), draw(st.permutations(range(len(sizes))))).canonical
        devices = found if len(found.dims) > 1 else None
    elif devices == "list":
        shuffled = draw(st.permutations(range(prod(sizes))))
        devices = None if shuffled == sorted(shuffled) else tuple(shuffled)
    parts: list[Axis] = []
    for n, size in enumerate(sizes):
        whole = size < 4 or draw(st.booleans())
        parts += [Axis(n)] if whole else [Axis(n, 1, 2), Axis(n, 2, size // 2)]
    places: list[list[Axis]] = [[] for _ in range(6)]  # 3 dimensions, replicated, unreduced, manual
    for axis in draw(st.permutations(parts)):
        places[draw(st.integers(0, 5))].append(axis)
    for axes in places[3:]:
        axes.sort(key=lambda a: (a.number, a.before))
    for axes in places:
        for k in range(len(axes) - 1, 0, -1):
            if axes[k - 1].number == axes[k].number and axes[k - 1].before < axes[k].before:
                axes[k - 1 : k + 1] = [Axis(axes[k].number)]
    splits = tuple(Split(tuple(axes), draw(st.booleans())) for axes in places[:3])
    mesh = Mesh(tuple((f"a{n}", size) for n, size in enumerate(sizes)), devices)
    return Sharding.of_axes(NamedSharding(mesh, splits, *map(tuple, places[3:])))


@given(st.one_of(tilings(), meshes()), st.one_of(st.none(), st.builds(ShardGroup, st.integers(0, 9), st.booleans())))
@settings(max_examples=200)
def test_any_sharding_reads_as_it_prints(s: Sharding, group: ShardGroup | None) -> None:
    if s.named is None and group is not None:
        s = Sharding(s.kind, tiles=s.tiles, subgroups=s.subgroups, group=group)
    again = parse(str(s))
    assert again == s and str(again) == str(s)


@given(tilings())
@settings(max_examples=200)
def test_lists_and_iotas_are_one(s: Sharding) -> None:
    old = s.as_list()
    assert old == s and hash(old) == hash(s)
    assert old.tiles is not None and s.tiles is not None and old.tiles.devices == s.tiles.devices
    assert (s.tiles.iota is None) == ("<=" not in str(s))
    assert s.canonical().as_list() == old.canonical()


_ASK = """
import json, sys
from jaxlib import _hlo
for line in json.load(sys.stdin):
    print(line, _hlo.HloSharding.from_string(line).v3_to_v2_sharding(), sep="\\t", flush=True)
"""


def test_canonical_form_is_xlas() -> None:
    """In a process of its own: XLA aborts on shardings that it does not expect."""
    pytest.importorskip("jaxlib")
    found: dict[str, Sharding] = {}

    @given(st.one_of(tilings(), meshes()))
    @settings(max_examples=400, derandomize=True, database=None)
    def collect(s: Sharding) -> None:
        if s.num_devices != 1:  # XLA refuses a list of one device
            found[str(s)] = s

    collect()
    ran = subprocess.run([sys.executable, "-c", _ASK], input=json.dumps([*found]), capture_output=True, text=True)
    answers = [line.split("\t") for line in ran.stdout.splitlines()]
    assert len(answers) == len(found) > 200, (list(found)[len(answers)], ran.stderr[:300])
    for line, theirs in answers:
        assert str(found[line].canonical()) == theirs, line


@given(tilings(), st.data())
@settings(max_examples=100)
def test_tiles_cover_the_shape(s: Sharding, data: st.DataObject) -> None:
    dims = tuple(data.draw(st.integers(0, 9)) for _ in s.data_dims)
    shape = row_major(F32, *dims)
    assert s.num_devices is not None
    seen: dict[tuple[int, ...], tuple[tuple[int, int], ...]] = {}
    for device in range(s.num_devices):
        index = s.tile_index(device)
        assert device in s.devices_of(index)
        begin, end = s.tile_offset(shape, device), s.tile_limit(shape, device)
        box = tuple(zip(begin, end, strict=True))
        assert seen.setdefault(index, box) == box
        assert s.tile_shape(shape, device).dims == tuple(e - b for b, e in box)
        assert all(
            n <= whole for n, whole in zip(s.tile_shape(shape, device).dims, s.tile_shape(shape).dims, strict=True)
        )
    assert len(seen) == s.num_tiles
    assert sum(prod(e - b for b, e in box) for box in seen.values()) == shape.num_elements


# -- questions -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("line", [n for n in PRINTED if "{{" not in n and n != "{}"])
def test_questions(line: str, xla: Any) -> None:
    ours, theirs = parse(line), xla.from_string(line)
    plain = theirs.v3_to_v2_sharding()
    assert ours.is_replicated == plain.is_replicated()
    assert ours.is_unreduced == plain.is_unreduced()
    assert ours.is_tile_maximal == plain.is_maximal()
    assert ours.is_tiled == plain.is_tiled()
    if ours.plain.tiles is not None:
        assert ours.plain.tiles.dims == tuple(plain.tile_assignment_dimensions())
        assert list(ours.plain.tiles.devices) == list(plain.tile_assignment_devices())
        assert ours.num_devices == plain.num_devices()
        assert ours.named is not None or (ours.plain.tiles.iota is not None) == plain.is_tile_assignment_iota()


@pytest.mark.parametrize("dims", [(8, 12), (5, 7), (1, 3), (0, 4)])
@pytest.mark.parametrize(
    "line", [n for n in PRINTED if n.startswith(("{devices=[2,2]<", "{devices=[2,4]", "{devices=[1,2"))]
)
def test_shapes_of_tiles_are_xlas(line: str, dims: tuple[int, ...], xla: Any) -> None:
    import numpy as np

    hlo = pytest.importorskip("jaxlib._hlo")
    theirs = xla.from_string(line).tile(hlo.Shape.array_shape(np.dtype(np.float32), dims))
    assert parse(line).tile_shape(row_major(F32, *dims)).dims == theirs.dimensions()


def test_subgroups() -> None:
    s = parse("{devices=[2,1,2,2]<=[8] last_tile_dims={manual, replicated}}")
    assert (s.data_dims, s.num_tiles, s.num_devices) == ((2, 1), 2, 8)
    assert (s.subgroup_dim(Kind.MANUAL), s.subgroup_dim(Kind.REPLICATED), s.subgroup_dim(Kind.UNREDUCED)) == (
        2,
        3,
        None,
    )
    assert s.devices_of((1, 0)) == (4, 5, 6, 7)
    assert s.tile_index(6) == (1, 0)


def test_devices() -> None:
    assert parse("{maximal device=3}").unique_device == 3
    assert parse("{maximal device=3}").uses_device(3) and not parse("{maximal device=3}").uses_device(2)
    assert parse("{devices=[2]<=[2]}").unique_device is None
    assert parse("{replicated}").uses_device(77)
    assert parse("{{maximal device=1}, {maximal device=1}}").unique_device == 1
    assert parse("{{maximal device=1}, {replicated}}").unique_device is None


def test_tuples() -> None:
    shape = tuple_((row_major(F32, 4), tuple_((row_major(F32, 2, 2), row_major(F32)))))
    s = parse("{{devices=[2]<=[2]}, {devices=[1,2]<=[2]}, {replicated}}")
    s.check(shape, 2)
    assert str(s.for_leaf(shape, (1, 0))) == "{devices=[1,2]<=[2]}"
    assert Sharding.replicated().spread(shape) == parse("{{replicated}, {replicated}, {replicated}}")
    assert Sharding.replicated().for_leaf(shape, (0,)) is Sharding.replicated()
    assert Sharding.replicated().spread(shape).is_replicated and not s.is_replicated


def test_instructions_carry_them() -> None:
    module = text.parse("HloModule m\nENTRY e { ROOT x = f32[4] parameter(0), sharding={devices=[2]<=[2]} }")
    x = module.entry.root
    assert x.sharding is parse("{devices=[2]<=[2]}")
    x.sharding = Sharding.maximal(1)
    assert "sharding={maximal device=1}" in str(x)
    x.sharding = None
    assert x.sharding is None and "sharding" not in str(x)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "found the end"),
        ("{" * 100, "none of which is a tuple"),
        ("{replicated} trailing", "expected nothing more"),
        ("{replicate}", "expected replicated, maximal"),
        ("{devices=[2,2]0,1,2}", "4 tiles and 3 devices"),
        ("{devices=[3]<=[4]}", "3 tiles and 4 devices"),
        ("{devices=[0]<=[0]}", "at least 1"),
        ("{devices=[4]<=[2,2]T(0,0)}", "does not permute"),
        ("{devices=[4]<=[2,2]T(0)}", "does not permute"),
        ("{devices=[99999999999]<=[99999999999]}", "the limit is"),
        ("{devices=[2]<=[2] last_tile_dims={manual,manual}}", "2 kinds of subgroups"),
        ("{devices=[2]<=[2] last_tile_dims={maximal}}", "expected manual, unreduced"),
        ("{replicated last_tile_dim_replicate}", "expected '}'"),
        ("{mesh['x'=2], [{'y'}]}", "expected an axis of the mesh (x)"),
        ("{mesh['x'=2], [{'x'}, {'x'}]}", "used twice"),
        ("{mesh['x'=2,'x'=3], [{'x'}]}", "one name"),
        ("{mesh['x'=8], [{'x':(3)2}]}", "no part of an axis of size 8"),
        ("{mesh['x'=4], [{'x':(0)2}]}", "no part of an axis"),
        ("{mesh['x'=4], [{?, 'x'}]}", "at the end only"),
        ("{mesh['x'=99999999999], [{'x'}]}", "the limit is"),
        ("{mesh['x'=2], device_ids=(1,2,3), [{'x'}]}", "lists 3"),
        ("{mesh['x'=2], sideways}", "expected dimensions, axes or metadata"),
    ],
)
def test_what_is_no_sharding(line: str, message: str) -> None:
    with pytest.raises(HeronError) as caught:
        parse(line)
    assert caught.value.code == "HLO027" and message in str(caught.value)
    assert caught.value.where == line[:200]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{devices=[2]<=[2]}", "tiles along 1 dimensions for f32[4,4]{1,0}"),
        ("{mesh['x'=2], [{'x'}]}", "tiles along 1 dimensions"),
        ("{mesh['x'=1], [{}, {}, {}]}", "3 dimensions are split"),
        ("{maximal device=4}", "there is no device 4"),
        ("{devices=[2,1]0,9}", "there is no device 9"),
        ("{devices=[8,1]<=[8]}", "there is no device 7"),
        ("{devices=[2,1]0,-1}", "there is no device -1"),
        ("{devices=[2,1]1,1}", "a device has two tiles"),
        ("{{replicated}, {replicated}}", "2 elements for the 1 leaves"),
    ],
)
def test_what_does_not_fit(line: str, message: str) -> None:
    with pytest.raises(HeronError) as caught:
        parse(line).check(row_major(F32, 4, 4), 4)
    assert caught.value.code == "HLO027" and message in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "{mesh['x'=2,'y'=4], [{'x', ?}p1, {'y'}, {}p12]}",
        "{mesh['x'=2], [{?}] shard_as 3}",
        "{mesh['x'=2], manual shard_like 0}",
    ],
)
def test_priorities_and_groups_of_named_axes(line: str) -> None:
    assert str(parse(line)) == line
    assert str(parse(line.replace("}p12", "}p0"))) == line.replace("}p12", "}")
