"""Groups and pairs of devices in the texts of collectives, worked out once for each list of atoms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from heron.hlo.ir.replica_groups import spelled
from heron.hlo.sharding.atoms import AtomicMesh, Axes

Pairs = tuple[tuple[int, int], ...]


class Devices:
    """The devices of a mesh in groups."""

    def __init__(self, mesh: AtomicMesh) -> None:
        self.mesh = mesh
        self._groups: dict[Axes, str] = {}
        self._moves: dict[tuple[Axes, Axes], Pairs] = {}

    @cached_property
    def are_in_order(self) -> bool:
        """Whether the mesh numbers its devices 0, 1, 2, …, the last axis fastest."""
        return bool((self.mesh.devices.reshape(-1) == np.arange(self.mesh.count)).all())

    @cached_property
    def places(self) -> np.ndarray:
        """For each device its place in the mesh, row-major; s32."""
        places = np.empty(self.mesh.count, np.int32)
        places[self.mesh.devices.reshape(-1)] = np.arange(self.mesh.count, dtype=np.int32)
        return places

    def groups(self, axes: Axes) -> str:
        """The replica groups of devices that differ in these atoms alone, in row-major order of the atoms."""
        found = self._groups.get(axes)
        if found is None:
            found = self._groups[axes] = self._iota(axes) if self.are_in_order else self._listed(axes)
        return found

    def _listed(self, axes: Axes) -> str:
        return spelled(self.mesh.groups(axes).tolist())

    def _iota(self, axes: Axes) -> str:
        """``[4,2]<=[2,4]T(1,0)``; atoms that stay neighbours are one dimension."""
        sizes = self.mesh.sizes
        order = [a for a in range(len(sizes)) if a not in axes] + list(axes)
        runs: list[list[int]] = []
        for atom in order:
            if runs and runs[-1][-1] + 1 == atom:
                runs[-1].append(atom)
            else:
                runs.append([atom])
        member = self.mesh.size(axes)
        text = f"[{self.mesh.count // member},{member}]<=["
        if len(runs) == 1:
            return f"{text}{self.mesh.count}]"
        by_place = sorted(range(len(runs)), key=lambda n: runs[n][0])
        dims = ",".join(str(self.mesh.size(runs[n])) for n in by_place)
        return f"{text}{dims}]T({','.join(str(by_place.index(n)) for n in range(len(runs)))})"

    def pairs(self, axes: Axes, target: Callable[[int], int | None]) -> Pairs:
        """Source and target of every device, where member n of a group along `axes` sends to member ``target(n)``."""
        groups = self.mesh.groups(axes)
        ends = [(n, to) for n in range(groups.shape[1]) if (to := target(n)) is not None]
        return tuple(
            (s, t) for n, to in ends for s, t in zip(groups[:, n].tolist(), groups[:, to].tolist(), strict=True)
        )

    def moves(self, old: Sequence[Axes], new: Sequence[Axes]) -> Pairs:
        """The pairs that bring tiles split by `old` atoms to where `new` ones want them.

        Both have the same number of tiles along each dimension. A device that has its new tile already keeps it where
        the atoms that no list names allow that.
        """
        key = tuple(a for axes in old for a in axes), tuple(a for axes in new for a in axes)
        found = self._moves.get(key)
        if found is None:
            found = self._moves[key] = self._find_moves(*key)
        return found

    def _find_moves(self, old: Axes, new: Axes) -> Pairs:
        sizes = self.mesh.sizes
        coordinates = np.indices(sizes).reshape(len(sizes), -1)
        both = [a for a in range(len(sizes)) if a not in old and a not in new]
        free_of_old = [*both, *(a for a in new if a not in old)]
        free_of_new = [*both, *(a for a in old if a not in new)]
        sources = np.argsort(_code(coordinates, sizes, [*old, *free_of_old]), kind="stable")
        targets = np.argsort(_code(coordinates, sizes, [*new, *free_of_new]), kind="stable")
        devices = self.mesh.devices.reshape(-1)
        order = np.argsort(devices[sources], kind="stable")
        return tuple(zip(devices[sources][order].tolist(), devices[targets][order].tolist(), strict=True))


def _code(coordinates: np.ndarray, sizes: Sequence[int], axes: Sequence[int]) -> np.ndarray:
    """For each device its number along these atoms, row-major."""
    code = np.zeros(coordinates.shape[1], np.int64)
    for axis in axes:
        code = code * sizes[axis] + coordinates[axis]
    return code
