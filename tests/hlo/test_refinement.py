"""One mesh for many assignments of devices: equal tiles on every device."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heron.errors import HeronError
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import F32
from heron.hlo.sharding import Iota, Kind, NamedSharding, Sharding, parse
from heron.hlo.sharding.refinement import named_of, refine


def _same_tiles(before: Sharding, after: Sharding, rank: int, devices: int) -> None:
    sizes = [1 + prod(before.data_dims) * 2] * rank
    shape = row_major(F32, *sizes)
    for device in range(devices):
        assert before.tile_offset(shape, device) == after.tile_offset(shape, device)
        assert before.tile_limit(shape, device) == after.tile_limit(shape, device)


@st.composite
def _iotas(draw: st.DrawFn, devices: int) -> Sharding:
    """Tiles of two dimensions, and maybe a replicated rest, in a transposed order of devices."""
    factors: list[int] = []
    left = devices
    while left > 1:
        factor = draw(st.sampled_from([f for f in range(2, left + 1) if left % f == 0]))
        factors.append(factor)
        left //= factor
    perm = draw(st.permutations(range(len(factors))))
    cut = sorted(draw(st.lists(st.integers(0, len(factors)), min_size=2, max_size=2)))
    ordered = [factors[d] for d in perm]
    parts = ordered[: cut[0]], ordered[cut[0] : cut[1]], ordered[cut[1] :]
    tiles = [prod(p) for p in parts]
    subgroups = (Kind.REPLICATED,) if tiles[2] > 1 else ()
    dims = tiles if subgroups else tiles[:2]
    return Sharding.tile(dims, Iota.of(factors or [1], perm or [0]), subgroups)


@settings(deadline=None, max_examples=200)
@given(st.data(), st.sampled_from([2, 4, 8, 6, 12]))
def test_tiles_through_atoms_are_the_same_tiles(data: st.DataObject, devices: int):
    """Powers of two always fit; other counts may not, and say so."""
    given_ = [data.draw(_iotas(devices)) for _ in range(data.draw(st.integers(1, 4)))]
    named = [named_of(s, 2, devices) for s in given_]
    try:
        found = refine(named, [], devices)
    except HeronError as error:
        assert error.code == "HLO032" and devices % 3 == 0
        assume(False)
        return
    for s, n in zip(given_, named, strict=True):
        atoms = found.convert(n)
        assert atoms is not None
        _same_tiles(s, found.mesh.write(atoms), 2, devices)


@settings(deadline=None, max_examples=50)
@given(st.permutations(range(8)), st.sampled_from([(8, 1), (4, 2), (2, 2, 2), (2, 4)]), st.data())
def test_any_order_of_devices(order: list[int], dims: tuple[int, ...], data: st.DataObject):
    """The listed order becomes that of the mesh; plain tiles beside it are kept where they still fit."""
    listed = Sharding.tile(dims, order, (Kind.REPLICATED,) if len(dims) == 3 else ())
    named = named_of(listed, 2, 8)
    other = named_of(data.draw(_iotas(8)), 2, 8)
    found = refine([named], [other], 8)
    atoms = found.convert(named)
    assert atoms is not None
    _same_tiles(listed, found.mesh.write(atoms), 2, 8)
    assert (found.convert(other) is None) == (other in found.refused)


def _mesh(*texts: str, devices: int = 8) -> str:
    found = refine([n for t in texts if (n := parse(t).named)], [], devices)
    return str(found.mesh.mesh)


@pytest.mark.parametrize(
    ("texts", "mesh"),
    [
        (("{mesh['x'=2,'y'=4], [{'x'}]}",), "mesh['x'=2,'y'=4]"),
        (("{mesh['x'=2,'one'=1,'y'=4], [{'x'}, {'one'}]}",), "mesh['x'=2,'y'=4]"),
        (("{mesh['x'=2,'y'=4], [{}]}", "{mesh['z'=8], [{'z'}]}"), "mesh['z'=8]"),
        (("{mesh['x'=2,'y'=4], [{'y'}]}", "{mesh['z'=8], [{'z'}]}"), "mesh['z'=8]"),
        (("{mesh['a'=4,'b'=2], [{'a'}]}", "{mesh['x'=2,'y'=4], [{'y'}]}"), "mesh['a'=4,'b'=2]"),
        (("{mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)), [{'x'}]}",), "mesh['y'=4,'x'=2]"),
        (("{mesh['x'=2,'y'=4], device_ids=(3,1,2,0,7,6,5,4), [{'x'}, {'y'}]}",),
         "mesh['x'=2,'y'=4], device_ids=(3,1,2,0,7,6,5,4)"),
    ],
)  # fmt: skip
def test_the_common_mesh(texts: tuple[str, ...], mesh: str):
    assert _mesh(*texts) == mesh


def test_sub_axes_that_cut_primes_make_axes_of_their_own():
    assert _mesh("{mesh['x'=6], [{'x':(2)3}]}", devices=6) == "mesh['axis_0'=2,'axis_1'=3]"
    assert _mesh("{mesh['x'=6], [{'x':(3)2}]}", devices=6) == "mesh['x'=6]"


def test_open_dimensions_priorities_and_subgroups_stay():
    named = parse("{mesh['x'=2,'y'=4], [{'x', ?}p1, {}], replicated={'y':(1)2}, unreduced={'y':(2)2}}").named
    assert named is not None
    atoms = refine([named], [], 8).convert(named)
    assert atoms is not None
    assert atoms.dims == ((0,), ()) and atoms.is_open == (True, False) and atoms.priority == (1, 0)
    assert atoms.replicated == {1} and atoms.unreduced == {2}
    tiles = named_of(parse("{devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}"), 2, 8, open_dims=(0, 1))
    atoms = refine([tiles], [], 8).convert(tiles)
    assert atoms is not None and len(atoms.manual) == 2 and atoms.is_open == (True, True)


def test_what_has_no_tiles():
    def converted(text: str):
        named = named_of(parse(text), 1, 4)
        return refine([named], [], 4).convert(named)

    assert converted("{replicated}") == converted("{maximal device=1}")
    assert converted("{unknown}").is_open == (True,)
    assert converted("{manual}").manual == {0, 1}
    assert converted("{unreduced}").unreduced == {0, 1}


def _refused(*named: NamedSharding, devices: int) -> HeronError:
    with pytest.raises(HeronError) as error:
        refine(named, [], devices)
    return error.value


def test_refused():
    three, four = (named_of(parse(f"{{devices=[{n}]<=[12]}}"), 2, 12) for n in ("3,4", "4,3"))
    error = _refused(three, four, devices=12)
    assert error.code == "HLO032" and "12 devices" in error.what
    assert refine([three], [four], 12).refused == [four]
    assert _refused(three, devices=8).code == "HLO027"
    assert _refused(named_of(parse("{devices=[2]0,5}"), 1, 2), devices=2).code == "HLO027"
