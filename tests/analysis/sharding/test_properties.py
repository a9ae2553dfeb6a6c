"""What holds of propagation in any program with any shardings."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from heron.analysis.sharding.program import ProgramShardings
from heron.analysis.sharding.propagate import propagate
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.sharding import Mesh
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from tests.hlo.generate import programs

MESHES = [(("x", 2),), (("x", 2), ("y", 2)), (("x", 2), ("y", 4)), (("x", 3), ("y", 2)), (("x", 2), ("y", 2), ("z", 2))]


def _sharding(rank: int, mesh: AtomicMesh, rng: random.Random) -> TensorSharding:
    """A random sharding: some atoms on some dimensions, some kept whole, some dimensions closed."""
    atoms = list(range(len(mesh.sizes)))
    rng.shuffle(atoms)
    atoms = atoms[: rng.randint(0, len(atoms))]
    dims: list[list[int]] = [[] for _ in range(rank)]
    replicated = set()
    for atom in atoms:
        place = rng.randint(-1, rank - 1)
        if place < 0:
            replicated.add(atom)
        else:
            dims[place].append(atom)
    is_open = tuple(rng.random() < 0.6 for _ in dims)
    priority = tuple(rng.randint(0, 2) for _ in dims) if rng.random() < 0.2 else ()
    return TensorSharding(tuple(map(tuple, dims)), is_open, frozenset(replicated), priority=priority)


def _shard(module: Module, mesh: AtomicMesh, rng: random.Random) -> dict[Instruction, TensorSharding]:
    """Shardings for parameters and some other values; not for tuples and calls, which hand on others' values."""
    given: dict[Instruction, TensorSharding] = {}
    for i in module.entry.instructions:
        if {Trait.TUPLE, Trait.CALL} & set(i.op.traits):
            continue
        if i.shape.is_array and i.shape.rank and (i.opcode == "parameter" or rng.random() < 0.1):
            given[i] = _sharding(i.shape.rank, mesh, rng)
    return given


def _run(module: Module, mesh: AtomicMesh, given: dict[Instruction, TensorSharding]):
    shardings = ProgramShardings(mesh)
    for i, s in given.items():
        shardings.set(i, (), s)
    return shardings, propagate(module, shardings)


@settings(max_examples=80, deadline=None)
@given(programs(), st.sampled_from(MESHES), st.integers(0, 2**32))
def test_shardings_fit(program, axes, seed: int) -> None:
    """Each atom once, none that must stay whole; closed dimensions as given; a second run changes nothing."""
    module, mesh = program.module, AtomicMesh.of(Mesh(axes))
    given = _shard(module, mesh, random.Random(seed))
    shardings, done = _run(module, mesh, given)
    for i in done.flow.leaves:
        for index, leaf in i.shape.leaves():
            if not leaf.is_array:
                continue
            s = shardings.of(i, index)
            used = [a for dim in s.dims for a in dim]
            assert s.rank == leaf.rank and len(used) == len(set(used)) and not any(s.is_open)
    for i, s in given.items():
        found = shardings.of(i)
        assert not s.replicated & found.used
        for d, axes_of_dim in enumerate(s.dims):
            assert found.dims[d][: len(axes_of_dim)] == axes_of_dim or s.is_open[d]
            assert s.is_open[d] or found.dims[d] == axes_of_dim
    assert _run(module, mesh, given)[1].final == done.final
