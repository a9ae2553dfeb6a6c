"""Shardings over atomic axes: reading, writing, and the groups of devices."""

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from heron.hlo.sharding import Axis, Mesh, NamedSharding, Sharding, Split, parse
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding, prime_factors

MESH = AtomicMesh.of(Mesh((("x", 2), ("y", 4), ("z", 6))))


def test_atoms_of_a_mesh():
    assert MESH.sizes == (2, 2, 2, 3, 2)
    assert MESH.text((0, 1, 2)) == "'x', 'y'"
    assert MESH.text((2, 3)) == "'y':(2)2, 'z':(1)3"


def test_groups_are_devices_that_differ_in_the_axes_alone():
    mesh = AtomicMesh.of(Mesh((("x", 2), ("y", 4))))
    assert mesh.groups((1, 2)).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert mesh.groups((0,)).tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert mesh.groups((2, 0)).tolist() == [[0, 4, 1, 5], [2, 6, 3, 7]]
    assert mesh.groups(()).shape == (8, 1)


def test_a_mesh_of_one_device():
    mesh = AtomicMesh.of(Mesh((("x", 1),)))
    assert mesh.sizes == () and mesh.groups(()).tolist() == [[0]]
    assert mesh.read(parse("{mesh['x'=1], [{'x'}]}"), 1).dims == ((),)


@given(st.permutations(range(5)), st.integers(0, 5), st.integers(0, 5), st.booleans())
def test_written_and_read_again(order: list[int], first: int, second: int, is_open: bool):
    dims = (tuple(order[: min(first, second)]), tuple(order[min(first, second) : max(first, second)]))
    rest = order[max(first, second) :]
    sharding = TensorSharding(dims, (is_open, False), frozenset(rest[:1]), manual=frozenset(rest[1:]))
    assert MESH.read(MESH.write(sharding), 2) == sharding


def test_local_dims_are_rounded_up():
    sharding = Sharding.of_axes(NamedSharding(MESH.mesh, (Split((Axis(1),)), Split())))
    assert MESH.local_dims((13, 7), MESH.read(sharding, 2)) == (4, 7)


@given(st.integers(1, 5000))
def test_prime_factors(number: int):
    assert prod(prime_factors(number)) == number
