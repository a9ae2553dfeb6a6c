"""A random program being written for the partitioner, and the families of such programs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from heron.hlo.sharding import Mesh
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding

MESHES = (
    Mesh((("x", 2),)),
    Mesh((("x", 2), ("y", 2))),
    Mesh((("x", 4),)),
    Mesh((("x", 2), ("y", 4))),
    Mesh((("x", 2), ("y", 2), ("z", 2))),
    Mesh((("x", 3), ("y", 2))),
    Mesh((("x", 2), ("y", 3)), (0, 3, 1, 4, 2, 5)),
)
REDUCERS = """
add_f32 { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
maximum_f32 { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
minimum_f32 { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] minimum(a, b) }
multiply_f32 { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] multiply(a, b) }
both_f32 {
  a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  s = f32[] add(a, c) m = f32[] maximum(d, b) ROOT r = (f32[], f32[]) tuple(s, m)
}
linked_f32 {
  a = f32[] parameter(0) b = f32[] parameter(1)
  p = f32[] multiply(a, b) s = f32[] add(a, b) ROOT r = f32[] add(p, s)
}
second_f32 { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }
greater { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
"""
STARTS = {"add_f32": "0", "maximum_f32": "-inf", "minimum_f32": "inf", "multiply_f32": "1"}


@dataclass
class Case:
    """A program being written: lines of the entry, and the values in it by name with their sizes."""

    draw: random.Random
    mesh: AtomicMesh
    lines: list[str] = field(default_factory=list)
    parameters: int = 0
    calls: list[str] = field(default_factory=list)

    def sharding(self, rank: int, sums: bool = False) -> TensorSharding:
        """A random split of so many dimensions; with `sums` sometimes a partial sum along atoms that split none."""
        atoms = list(range(len(self.mesh.sizes)))
        self.draw.shuffle(atoms)
        dims: list[list[int]] = [[] for _ in range(rank)]
        for atom in atoms:
            if rank and self.draw.random() < 0.7:
                dims[self.draw.randrange(rank)].append(atom)
        free = [a for a in atoms if not any(a in axes for axes in dims)]
        return TensorSharding.closed(dims, free if sums and self.draw.random() < 0.3 else ())

    def written(self, rank: int, kind: str = "f32") -> str:
        """The text of a random sharding of a value."""
        return str(self.mesh.write(self.sharding(rank, kind == "f32")))

    def size(self) -> int:
        """A size of a dimension; one in three does not divide by the parts."""
        return self.draw.choice((1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 8, 9, 12))

    def sizes(self, rank: int) -> list[int]:
        """Sizes of an array."""
        return [self.size() for _ in range(rank)]

    def add(self, text: str, dims: Sequence[int], kind: str = "f32", last: bool = False) -> str:
        """An instruction with a random sharding; its name."""
        name = f"v{len(self.lines)}"
        written = self.written(len(dims), kind)
        root = "ROOT " * last
        self.lines.append(f"  {root}{name} = {kind}[{','.join(map(str, dims))}] {text}, sharding={written}")
        return name

    def parameter(self, dims: Sequence[int], kind: str = "f32") -> str:
        """A new parameter."""
        self.parameters += 1
        return self.add(f"parameter({self.parameters - 1})", dims, kind)

    def scalar(self, value: str, kind: str = "f32") -> str:
        """A constant."""
        return self.add(f"constant({value})", (), kind)

    def text(self, result: str, dims: Sequence[int], kind: str = "f32") -> str:
        """The program, whose result is a value in one more random sharding."""
        self.add(f"copy({result})", dims, kind, last=True)
        head = f"HloModule case, num_partitions={self.mesh.count}\n" + REDUCERS + "\n".join(self.calls)
        return head + "\nENTRY main {\n" + "\n".join(self.lines) + "\n}\n"


Value = tuple[str, list[int], str]
FAMILIES: dict[str, Callable[[Case], Value]] = {}


def family(make: Callable[[Case], Value]) -> Callable[[Case], Value]:
    """Register a way to make a program."""
    FAMILIES[make.__name__] = make
    return make
