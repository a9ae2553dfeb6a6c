"""Reshards: every pair of shardings on several meshes, with sizes that divide and sizes that do not."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from heron.analysis.cost.communication import WAYS
from heron.hlo.ir.module import Module
from heron.hlo.sharding import Mesh
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.hlo.text import parse
from heron.passes.sharding.partition.plan import plan
from tests.passes.sharding.devices import agree, small_integers
from tests.passes.sharding.reshards import has_small_plan

MESHES = {
    "2x2x2": Mesh((("x", 2), ("y", 2), ("z", 2))),
    "2x4": Mesh((("x", 2), ("y", 4))),
    "3x2": Mesh((("x", 3), ("y", 2))),
    "swapped": Mesh((("x", 2), ("y", 3)), (0, 3, 1, 4, 2, 5)),
}
SHAPES = ((8,), (7,), (8, 12), (5, 7), (3, 13), (4, 6, 8), (3, 5, 2), (1, 9, 6))


def shardings(mesh: AtomicMesh, rank: int) -> list[TensorSharding]:
    """All ways to split `rank` dimensions along atoms of the mesh."""
    atoms = range(len(mesh.sizes))
    found: list[TensorSharding] = []
    for count in range(len(mesh.sizes) + 1):
        for order in itertools.permutations(atoms, count):
            for cuts in itertools.combinations_with_replacement(range(count + 1), rank - 1):
                ends = [0, *cuts, count]
                found.append(TensorSharding.closed(order[a:b] for a, b in itertools.pairwise(ends)))
    return found


def gathered(mesh: AtomicMesh, dims: tuple[int, ...], old: TensorSharding, new: TensorSharding) -> tuple[int, int]:
    """The bytes that a device sends when every dimension that changes is joined, then cut, and has in between; f32."""
    local = list(mesh.local_dims(dims, old))
    sent = 0
    for d, (a, b) in enumerate(zip(old.dims, new.dims, strict=True)):
        if a != b:
            sent += int(np.prod(local)) * 4 * (mesh.size(a) - 1)
            local[d] = dims[d]
    return sent, int(np.prod(local)) * 4


def module_of(mesh: AtomicMesh, dims: tuple[int, ...], old: TensorSharding, new: list[TensorSharding]) -> Module:
    """A program with one reshard for each of `new`."""
    shape = f"f32[{','.join(map(str, dims))}]"
    lines = [f"  r{n} = {shape} copy(x), sharding={mesh.write(s)}" for n, s in enumerate(new)]
    names, shapes = ", ".join(f"r{n}" for n in range(len(new))), ", ".join([shape] * len(new))
    root = f"  ROOT t = ({shapes}) tuple({names}), sharding={{{', '.join(str(mesh.write(s)) for s in new)}}}"
    first = f"  x = {shape} parameter(0), sharding={mesh.write(old)}"
    text = "\n".join([f"HloModule m, num_partitions={mesh.count}", "ENTRY main {", first, *lines, root, "}"])
    return parse(text)


@pytest.mark.parametrize("dims", SHAPES, ids=str)
@pytest.mark.parametrize("name", MESHES)
def test_values(name: str, dims: tuple[int, ...]) -> None:
    mesh = AtomicMesh.of(MESHES[name])
    every = shardings(mesh, len(dims))
    random.seed(f"{name} {dims}")
    for old in random.sample(every, 3):
        module = module_of(mesh, dims, old, random.sample(every, min(len(every), 12)))
        agree(module, [small_integers(module.entry.parameters[0].shape)])


@pytest.mark.parametrize("dims", SHAPES, ids=str)
@pytest.mark.parametrize("name", MESHES)
def test_no_more_bytes_than_gathers(name: str, dims: tuple[int, ...]) -> None:
    mesh = AtomicMesh.of(MESHES[name])
    every = shardings(mesh, len(dims))
    random.seed(f"{name} {dims}")
    for _ in range(40):
        old, new = random.choice(every), random.choice(every)
        found = plan(mesh.sizes, dims, 4, old.dims, frozenset(), new.dims, frozenset())
        sent, peak = gathered(mesh, dims, old, new)
        ends = max(4 * int(np.prod(mesh.local_dims(dims, s))) for s in (old, new))
        assert found.bytes <= sent + 1e-9 or peak > ends, (old.dims, new.dims, found)
        assert found.within or not has_small_plan(mesh, dims, old, new), (old.dims, new.dims, found)


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("size", [3, 5, 7, 13])
def test_one_uneven_dimension_within_memory(name: str, size: int) -> None:
    """Every pair of ways to split it; other borders and other axes come in one step, in which shares do not grow."""
    mesh = AtomicMesh.of(MESHES[name])
    every = shardings(mesh, 1)
    for old in every:
        for new in every:
            found = plan(mesh.sizes, (size,), 4, old.dims, frozenset(), new.dims, frozenset())
            assert found.within, (old.dims, new.dims, found)
        agree(module_of(mesh, (size,), old, every), [np.arange(size, dtype=np.float32)])


def test_a_large_gather_is_one_collective() -> None:
    """Where each device of 64 has an uneven share: not by 64 permutes, though these send less."""
    found = plan((2,) * 12, (50257,), 4, (tuple(range(12)),), frozenset(), (tuple(range(6)),), frozenset())
    assert [s.kind for s in found.steps] == ["all-gather", "retile"]


def test_shares_become_summands_without_transfers() -> None:
    mesh = AtomicMesh.of(MESHES["2x4"])
    old, new = TensorSharding.closed([(0, 1), (2,)]), TensorSharding.closed([(0,), ()], [1, 2])
    module = module_of(mesh, (9, 6), old, [new])
    made = agree(module, [small_integers(module.entry.parameters[0].shape)])
    assert not [i for i in made.entry.instructions if i.opcode in WAYS and i.opcode != "collective-permute"]
    even = module_of(mesh, (8, 6), old, [new, TensorSharding.closed([(), ()], [0])])
    agree(even, [small_integers(even.entry.parameters[0].shape)])


@pytest.mark.parametrize(
    ("old", "new", "bytes_"),
    [
        # a free axis goes where the others leave, so that all move at once and less moves
        (((), (0,), ()), ((), (), (0, 1, 2)), 448),
        # axes of other dimensions change places after cuts, without an exchange
        (((), (0,), ()), ((0, 1), (2,), ()), 512),
        # an axis is replaced by a smaller one, then joined
        (((0, 1, 2), (), ()), ((2,), (), ()), 2048),
    ],
)
def test_few_bytes(old: tuple[tuple[int, ...], ...], new: tuple[tuple[int, ...], ...], bytes_: int) -> None:
    mesh = AtomicMesh.of(MESHES["2x2x2"])
    found = plan(mesh.sizes, (16, 8, 8), 4, old, frozenset(), new, frozenset())
    assert found.within and found.bytes <= bytes_, found


def test_latency_counts_on_a_machine() -> None:
    """Of small arrays more bytes in fewer collectives take less time; of large ones they do not."""
    sizes = AtomicMesh.of(MESHES["2x2x2"]).sizes

    def kinds(scale: int, latency: float) -> list[str]:
        dims = 16 * scale, 8 * scale, 8
        found = plan(sizes, dims, 4, ((0, 1), (), (2,)), frozenset(), ((), (1,), ()), frozenset(), latency)
        assert found.cost == found.bytes + latency * sum(s.kind != "slice" for s in found.steps)
        return [s.kind for s in found.steps]

    assert kinds(1, 0) == kinds(64, 1e5) == ["all-to-all", "all-gather", "all-gather"]
    assert kinds(1, 1e5) == ["all-gather", "slice", "all-gather"]


def test_ways_are_known() -> None:
    mesh = AtomicMesh.of(MESHES["2x4"])
    found = plan(mesh.sizes, (8, 8), 4, ((0,), (1, 2)), frozenset(), ((1, 2), (0,)), frozenset())
    assert {s.kind for s in found.steps} <= {*WAYS, "slice", "retile", "spread"}
