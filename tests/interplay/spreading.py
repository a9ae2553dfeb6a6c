"""Joint programs for several devices: what goes into every fragment and comes out of it is constrained at random.

Meshes have up to eight devices, and arrays any sizes, so that many parts are uneven. Where the rows of a map divide by
an axis of the mesh, the map is a `shard_map` over that axis, half of the time. The program's meaning stays what it is on
one device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.interplay.fragment import Fragment
from tests.interplay.joins import Arrays, Function
from tests.interplay.traced import Traced

MESHES = ((8,), (2, 4), (4, 2), (2, 2, 2), (3, 2), (2,), (4,))


class Spread(Traced):
    """Joins as JAX's own control flow, on arrays with shardings drawn from a number."""

    def __init__(self, seed: int, devices: int) -> None:
        from jax.sharding import AbstractMesh

        self.rng = np.random.default_rng(seed)
        known = [m for m in MESHES if np.prod(m) <= devices]
        sizes = known[int(self.rng.integers(len(known)))]
        self.mesh = AbstractMesh(sizes, tuple("xyz"[: len(sizes)]))
        self.manual = False

    def part(self, fragment: Fragment, arrays: Arrays) -> Arrays:
        return [self.kept(o) for o in super().part(fragment, [self.kept(a) for a in arrays])]

    def mapped(self, function: Function, arrays: Arrays) -> Arrays:
        import jax
        from jax.sharding import PartitionSpec

        rows = arrays[0].shape[0]
        axes = [a for a, size in self.mesh.shape.items() if rows % size == 0]
        if self.manual or not axes or self.rng.random() < 0.5:
            return super().mapped(function, arrays)
        split = PartitionSpec(axes[int(self.rng.integers(len(axes)))])
        self.manual = True
        try:
            local = jax.shard_map(
                lambda *a: super(Spread, self).mapped(function, list(a)),
                mesh=self.mesh, in_specs=split, out_specs=split, check_vma=False,
            )  # fmt: skip
            return local(*arrays)
        finally:
            self.manual = False

    def kept(self, x: Any, always: bool = False) -> Any:
        """The array with a constraint: each axis splits a dimension or none, and dimensions are closed or left open."""
        from jax import lax
        from jax.sharding import NamedSharding, PartitionSpec

        if self.manual or not x.ndim or (self.rng.random() < 0.3 and not always):
            return x
        dims: list[list[str]] = [[] for _ in range(x.ndim)]
        for axis in self.rng.permutation(list(self.mesh.shape)):
            if self.rng.random() < 0.7:
                dims[int(self.rng.integers(x.ndim))].append(str(axis))
        spec = [tuple(d) or (PartitionSpec.UNCONSTRAINED if self.rng.random() < 0.2 else None) for d in dims]
        return lax.with_sharding_constraint(x, NamedSharding(self.mesh, PartitionSpec(*spec)))
