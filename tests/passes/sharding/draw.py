"""Random meshes, shardings and programs for the properties of the partitioner."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from heron.hlo.builder import Builder
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import ElementType
from heron.hlo.sharding import Mesh, Sharding
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding

MESHES = (
    Mesh((("x", 2),)),
    Mesh((("x", 4),)),
    Mesh((("x", 2), ("y", 4))),
    Mesh((("x", 2), ("y", 2), ("z", 2))),
    Mesh((("x", 3), ("y", 2))),
    Mesh((("x", 2), ("y", 3)), (0, 3, 1, 4, 2, 5)),
)


class Draw:
    """A program being drawn: its random numbers, mesh, builder and inputs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.mesh = AtomicMesh.of(self.random.choice(MESHES))
        self.b = Builder(f"seed_{seed}")
        self.inputs: list[np.ndarray] = []

    def sharding(self, dims: Sequence[int]) -> str:
        """A sharding of an array: the atoms are dealt out to its dimensions. Few parts lie behind the array's end."""
        axes: list[tuple[int, ...]] = [()] * len(dims)
        atoms = list(range(len(self.mesh.sizes)))
        self.random.shuffle(atoms)
        for atom in atoms:
            d = self.random.randrange(-1, len(dims))
            if d >= 0 and (self.mesh.size((*axes[d], atom)) <= max(dims[d], 1) or self.random.random() < 0.1):
                axes[d] = (*axes[d], atom)
        return str(self.mesh.write(TensorSharding.closed(axes)))

    def parameter(self, t: ElementType, array: np.ndarray) -> Instruction:
        """A parameter with a random sharding, and its value."""
        made = self.b.parameter(len(self.inputs), row_major(t, *array.shape))
        made.extras["sharding"] = self.sharding(array.shape)
        self.inputs.append(array.astype(t.dtype))
        return made

    def array(self, t: ElementType, dims: Sequence[int]) -> Instruction:
        """A parameter of small integers, whose sums are exact in any order."""
        return self.parameter(t, self.numbers.integers(-4, 5, tuple(dims)))

    def sizes(self, rank: int, most: int = 9) -> list[int]:
        """Sizes of dimensions, two thirds of them multiples of the mesh's."""
        return [self.random.choice((2, 4, 8, 6, 4, 8, self.random.randint(1, most))) for _ in range(rank)]

    def module(self, root: Instruction) -> Module:
        """The program, with random shardings of its results."""
        leaves = [self.sharding(s.dims) for _, s in root.shape.leaves()]
        text = [Sharding.tuple([_parsed(s) for s in leaves])] if root.shape.is_tuple else leaves
        root.extras["sharding"] = str(text[0])
        module = self.b.build(root)
        module.set_counts(num_partitions=self.mesh.count)
        return module


def _parsed(text: str) -> Sharding:
    from heron.hlo.sharding import parse

    return parse(text)
