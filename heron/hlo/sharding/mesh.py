"""Shardings by the axes of a mesh: which axes split each dimension, and what the others do.

``{mesh['x'=2,'y'=4], [{'x'}, {'y':(1)2}]}``: devices form a 2 x 4 mesh, dimension 0 is split along x, dimension 1 along
the outer half of y (the part of size 2 that comes after a part of size 1); data is replicated along the rest.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain
from math import prod

from heron.hlo.ir.quoting import quote
from heron.hlo.sharding.tiles import Iota, TileAssignment, reject
from heron.records import dataclass


@dataclass(frozen=True)
class Mesh:
    """Devices in an array with named axes: in order, as an iota, or as listed. A mesh without axes is one device."""

    axes: tuple[tuple[str, int], ...]
    devices: Iota | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        names = [name for name, _ in self.axes]
        if len(set(names)) != len(names):
            reject("two axes of a mesh have one name", f"they are {', '.join(names)}")
        if any(size < 1 for _, size in self.axes):
            reject("an axis of a mesh has no size", f"the sizes are {[size for _, size in self.axes]}")
        if self.devices is None:
            return
        given = self.devices.size if isinstance(self.devices, Iota) else len(self.devices)
        if given != self.size:
            reject(f"a mesh of {self.size} devices lists {given}")

    def __str__(self) -> str:
        if not self.axes and isinstance(self.devices, tuple):
            return f"maximal_mesh[device_id={self.devices[0]}]"
        text = "mesh[" + ",".join(f"{_quoted(name)}={size}" for name, size in self.axes) + "]"
        if isinstance(self.devices, Iota):
            return f"{text}, device_ids=({self.devices})"
        return text if self.devices is None else f"{text}, device_ids=({','.join(map(str, self.devices))})"

    @property
    def is_maximal(self) -> bool:
        """Whether this stands for one device by number."""
        return not self.axes and isinstance(self.devices, tuple)

    @property
    def size(self) -> int:
        """The number of devices."""
        return prod(size for _, size in self.axes)

    @property
    def tiles(self) -> TileAssignment:
        """The devices in an array of the axes' sizes."""
        dims = tuple(size for _, size in self.axes) or (1,)
        if isinstance(self.devices, tuple):
            return TileAssignment(dims, None, self.devices)
        return TileAssignment(dims, self.devices or Iota.of((self.size,)))


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a mesh by number, or a part of it: of size `size`, after a part of size `before`."""

    number: int
    before: int = 1
    size: int | None = None

    def span(self, mesh: Mesh) -> tuple[int, int]:
        """The sizes before and after which the part begins and ends, counted from the outside."""
        whole = mesh.axes[self.number][1]
        return self.before, whole if self.size is None else self.before * self.size

    def text(self, mesh: Mesh) -> str:
        """``'x'`` or ``'x':(1)2``."""
        name = _quoted(mesh.axes[self.number][0])
        return name if self.size is None else f"{name}:({self.before}){self.size}"


@dataclass(frozen=True, slots=True)
class Split:
    """The axes that split one dimension, outermost first; an open one may be split further by propagation.

    Propagation takes dimensions in the order of their priority, 0 first.
    """

    axes: tuple[Axis, ...] = ()
    is_open: bool = False
    priority: int = 0

    def text(self, mesh: Mesh) -> str:
        """``{'x', 'y', ?}``, and ``{'x'}p1`` with a priority."""
        inner = ", ".join([*(a.text(mesh) for a in self.axes), *("?" * self.is_open)])
        return f"{{{inner}}}p{self.priority}" if self.priority else f"{{{inner}}}"


@dataclass(frozen=True)
class NamedSharding:
    """Splits of each dimension, and axes along which data is replicated, unreduced (to be summed), or manual.

    Raises HLO027 for axes that are not there, used twice, or do not divide.
    """

    mesh: Mesh
    splits: tuple[Split, ...] = ()
    replicated: tuple[Axis, ...] = ()
    unreduced: tuple[Axis, ...] = ()
    manual: tuple[Axis, ...] = ()

    def __post_init__(self) -> None:
        taken: dict[int, list[tuple[int, int]]] = {}
        for axis in self.axes:
            if not 0 <= axis.number < len(self.mesh.axes):
                reject(f"the mesh has no axis {axis.number}", f"the mesh is {self.mesh}")
            begin, end = axis.span(self.mesh)
            whole = self.mesh.axes[axis.number][1]
            if begin < 1 or end <= begin and axis.size is not None or whole % max(end, 1) or end % begin:
                reject(f"{axis.text(self.mesh)} is no part of an axis of size {whole}")
            spans = taken.setdefault(axis.number, [])
            if any(begin < e and b < end for b, e in spans):
                reject(f"{axis.text(self.mesh)} is used twice")
            spans.append((begin, end))

    def __str__(self) -> str:
        mesh = self.mesh
        parts = [str(mesh)]
        others = [(n, found) for n in ("replicated", "unreduced", "manual") if (found := getattr(self, n))]
        whole = self._alike
        if whole is not None:
            return f"{parts[0]}, {whole}"
        if self.splits or others:
            parts.append("[" + ", ".join(s.text(mesh) for s in self.splits) + "]")
        elif not mesh.is_maximal:
            parts.append("replicated")
        parts += [f"{name}={{{', '.join(a.text(mesh) for a in found)}}}" for name, found in others]
        return ", ".join(parts)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Every axis and part of an axis that is named."""
        return (*(a for s in self.splits for a in s.axes), *self.replicated, *self.unreduced, *self.manual)

    @property
    def _alike(self) -> str | None:
        """``manual`` or ``unreduced`` when all axes are just that and dimensions are not spoken of."""
        everything = tuple(map(Axis, range(len(self.mesh.axes))))
        if self.splits or not everything:
            return None
        named = self.replicated, self.unreduced, self.manual
        return {((), everything, ()): "unreduced", ((), (), everything): "manual"}.get(named)

    @cached_property
    def tiles(self) -> tuple[TileAssignment, tuple[str, ...]]:
        """As tiles: one dimension a split, then one each for manual, unreduced and replicated axes, which are named."""
        parts = [(n, span) for n in range(len(self.mesh.axes)) for span in self._cuts(n)]
        position = {part: k for k, part in enumerate(parts)}
        fine = self.mesh.tiles.reshape([end // begin for _, (begin, end) in parts] or (1,))
        groups = [self._positions(s.axes, position) for s in self.splits]
        subgroups = {
            "manual": self._positions(self.manual, position),
            "unreduced": self._positions(self.unreduced, position),
        }
        used = {*chain(*groups, *subgroups.values())}
        subgroups["replicated"] = [k for k in range(len(parts)) if k not in used]
        kinds = tuple(kind for kind, group in subgroups.items() if group)
        groups += [subgroups[kind] for kind in kinds]
        order = [*chain(*groups)]
        arranged = fine.transpose(order) if order else fine
        dims = [prod(fine.dims[k] for k in group) for group in groups]
        return arranged.reshape(dims or (1,)), kinds

    def _cuts(self, number: int) -> list[tuple[int, int]]:
        """An axis in consecutive spans so fine that every part named begins and ends with one."""
        whole = self.mesh.axes[number][1]
        spans = [a.span(self.mesh) for a in self.axes if a.number == number]
        ends = sorted({1, whole, *(end for span in spans for end in span)})
        for a, b in zip(ends, ends[1:], strict=False):
            if b % a:
                reject(f"parts of {_quoted(self.mesh.axes[number][0])} do not divide each other", f"they end at {ends}")
        return list(zip(ends, ends[1:], strict=False))

    def _positions(self, axes: tuple[Axis, ...], position: dict[tuple[int, tuple[int, int]], int]) -> list[int]:
        found: list[int] = []
        for axis in axes:
            begin, end = axis.span(self.mesh)
            found += [k for (n, (b, e)), k in position.items() if n == axis.number and begin <= b and e <= end]
        return found


def _quoted(name: str) -> str:
    return "'" + quote(name)[1:-1] + "'"
